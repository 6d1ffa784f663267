// expect: layer_in_a_model.hpp:22: matmul: inner dimensions differ: reshape result is [32,128],
// expect: out.weight is [10,512] transposed
// expect-lines: 33
#include "cells/layer_in_a_model.hpp"

#include <cella/data/dataset.hpp>
#include <cella/train/model.hpp>

namespace {

using namespace cella;
using Input = image<1, 12, 12>;
using Model = model<layer_in_a_model::Wrong, Input, cross_entropy_loss{}, optim::sgd{}>;

}  // namespace

// All that a model can be asked for, so that each of its programs is there.
double learn(const data::tensor_dataset<float, std::int32_t>& digits) {
  Model net({.seed = 1});
  net.fit(digits, {.epochs = 1});
  return net.evaluate(digits, metrics::accuracy{})["accuracy"];
}
