// Residual networks with batch norm.  He et al. 2016
#pragma once

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <type_traits>

namespace cella::models {

/// The way past a residual block that keeps the shape.
struct identity {
  constexpr var operator()(var x) const { return x; }
};
/// The way past a residual block that changes the number of channels or the resolution.
template <int In, int Out, int Stride>
struct projection {
  nn::conv2d<In, Out, 1, false> conv{.stride = Stride};
  nn::batch_norm<Out> norm{};

  constexpr var operator()(var x) const { return norm(conv(x)); }
};
/// The way past a block: `identity` where channels and resolution stay, else `projection`.
template <int In, int Out, int Stride>
using shortcut =
    std::conditional_t<In == Out && Stride == 1, identity, projection<In, Out, Stride>>;

/// Two 3x3 convolutions: [N,In,H,W] -> [N,Out,H/Stride,W/Stride], rounded up.
template <int In, int Out, int Stride = 1>
struct basic_block {
  nn::conv2d<In, Out, 3, false> conv1{.stride = Stride, .padding = 1};
  nn::batch_norm<Out> bn1{};
  nn::conv2d<Out, Out, 3, false> conv2{.padding = 1};
  nn::batch_norm<Out> bn2{};
  shortcut<In, Out, Stride> downsample{};

  constexpr var operator()(var x) const {
    const var y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + downsample(x));
  }
};

/// A 3x3 convolution of few channels between two 1x1 ones: [N,In,H,W] ->
/// [N,4 Width,H/Stride,W/Stride], rounded up.
template <int In, int Width, int Stride = 1>
struct bottleneck {
  nn::conv2d<In, Width, 1, false> conv1{};
  nn::batch_norm<Width> bn1{};
  nn::conv2d<Width, Width, 3, false> conv2{.stride = Stride, .padding = 1};
  nn::batch_norm<Width> bn2{};
  nn::conv2d<Width, 4 * Width, 1, false> conv3{};
  nn::batch_norm<4 * Width> bn3{};
  shortcut<In, 4 * Width, Stride> downsample{};

  constexpr var operator()(var x) const {
    const var y = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
    return relu(y + downsample(x));
  }
};

/// One block that changes the shape and `Count` that keep it.
template <class First, class Rest, int Count>
struct stage {
  First first{};
  std::array<Rest, std::size_t(Count)> rest{};

  constexpr var operator()(var x) const {
    x = first(x);
    for (const auto& block : rest) x = block(x);
    return x;
  }
};

/// Small images [N,3,H,W] (CIFAR: 32 x 32) -> logits [N,Classes]; 272,474 parameters for 10 classes
/// (with projections, as the paper's option B).
template <int Classes = 10>
struct resnet20 {
  nn::conv2d<3, 16, 3, false> conv1{.padding = 1};
  nn::batch_norm<16> bn1{};
  stage<basic_block<16, 16>, basic_block<16, 16>, 2> layer1{};
  stage<basic_block<16, 32, 2>, basic_block<32, 32>, 2> layer2{};
  stage<basic_block<32, 64, 2>, basic_block<64, 64>, 2> layer3{};
  nn::dense<64, Classes> fc{};

  constexpr var operator()(var x) const {
    x = relu(bn1(conv1(x)));
    x = layer3(layer2(layer1(x)));
    return fc(global_average_pool(x));
  }
};

/// Images [N,3,H,W] (ImageNet: 224 x 224) -> logits [N,Classes]; 25,557,032 parameters for 1,000
/// classes. The stride stands in the 3x3 convolutions, as in PyTorch's.
template <int Classes = 1000>
struct resnet50 {
  nn::conv2d<3, 64, 7, false> conv1{.stride = 2, .padding = 3};
  nn::batch_norm<64> bn1{};
  stage<bottleneck<64, 64>, bottleneck<256, 64>, 2> layer1{};
  stage<bottleneck<256, 128, 2>, bottleneck<512, 128>, 3> layer2{};
  stage<bottleneck<512, 256, 2>, bottleneck<1024, 256>, 5> layer3{};
  stage<bottleneck<1024, 512, 2>, bottleneck<2048, 512>, 2> layer4{};
  nn::dense<2048, Classes> fc{};

  constexpr var operator()(var x) const {
    x = max_pool(relu(bn1(conv1(x))), 3, 2, 1);
    x = layer4(layer3(layer2(layer1(x))));
    return fc(global_average_pool(x));
  }
};

}  // namespace cella::models
