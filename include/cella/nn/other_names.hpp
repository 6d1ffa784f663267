// Names that layers have in PyTorch and Keras: the compiler says in the line where one is written
// what it is called here, and goes on with that.
#pragma once

#include <cella/nn/layers.hpp>

namespace cella::nn {

template <int In, int Out, bool Bias = true>
using linear __attribute__((unavailable("write nn::dense<In, Out>"))) = dense<In, Out, Bias>;
template <int In, int Out, bool Bias = true>
using Linear __attribute__((unavailable("write nn::dense<In, Out>"))) = dense<In, Out, Bias>;
template <int In, int Out, bool Bias = true>
using Dense __attribute__((unavailable("write nn::dense<In, Out>"))) = dense<In, Out, Bias>;
template <int In, int Out, int Kernel, bool Bias = true, int Groups = 1>
using Conv2d __attribute__((unavailable("write nn::conv2d<In, Out, Kernel>"))) =
    conv2d<In, Out, Kernel, Bias, Groups>;
template <int In, int Out, int Kernel, bool Bias = true, int Groups = 1>
using Conv2D __attribute__((unavailable("write nn::conv2d<In, Out, Kernel>"))) =
    conv2d<In, Out, Kernel, Bias, Groups>;
template <int Channels>
using BatchNorm2d __attribute__((unavailable("write nn::batch_norm<Channels>"))) =
    batch_norm<Channels>;
template <int Channels>
using BatchNorm1d __attribute__((unavailable("write nn::batch_norm<Channels>"))) =
    batch_norm<Channels>;
template <int Channels>
using BatchNormalization __attribute__((unavailable("write nn::batch_norm<Channels>"))) =
    batch_norm<Channels>;
template <int Width>
using LayerNorm __attribute__((unavailable("write nn::layer_norm<Width>"))) = layer_norm<Width>;
template <int Width>
using LayerNormalization __attribute__((unavailable("write nn::layer_norm<Width>"))) =
    layer_norm<Width>;
template <int Words, int Width>
using Embedding __attribute__((unavailable("write nn::embedding<Words, Width>"))) =
    embedding<Words, Width>;
using Dropout __attribute__((unavailable("write nn::dropout"))) = dropout;

}  // namespace cella::nn
