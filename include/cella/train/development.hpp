// What the target cella::development precompiles: the headers of models, with what those leave to
// the end of every program. g++ instantiates there what functions of headers call, whether the
// program calls them or not; what constant evaluation has called is instantiated at once.
#pragma once

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/train/model.hpp>

namespace cella::detail {

/// Makes the description of `Op`, if its struct is included.
template <class Op>
constexpr bool is_described() {
  if constexpr (requires { Op::name; })
    return !bound<Op>().name.empty();
  else
    return true;
}
#define CELLA_DESCRIBED(op) static_assert(is_described<op>());
CELLA_OPERATIONS(CELLA_DESCRIBED)
#undef CELLA_DESCRIBED

struct net_of_common_layers {
  nn::conv2d<1, 2, 3> conv{};
  nn::batch_norm<2> norm{};
  nn::dense<8, 3> fc{};

  constexpr var operator()(var x) const { return fc(flatten(max_pool(relu(norm(conv(x))), 2))); }
};
/// Traces a training step.
template <class Optimizer>
constexpr bool is_traced() {
  training_step<net_of_common_layers, cross_entropy_loss, Optimizer> step{};
  builder b;
  b.training = true;
  trace_into(b, step, std::array<tensor_type, 2>{{{dtype::f32, {2, 1, 6, 6}}, {dtype::i32, {2}}}});
  return b.open.depth() == 0;
}
static_assert(is_traced<optim::sgd>());
static_assert(is_traced<optim::adam>());

}  // namespace cella::detail
