// Equal blocks: their steps run the same code with addresses of their own, and steps that differ in
// anything else do not.
#include <doctest/doctest.h>

#include <array>
#include <cella/models/gpt.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/ops/functions.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <type_traits>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

template <class P, int I>
constexpr bool same_line() {
  constexpr int first = cpu::step_codes<P>[I].of;
  if constexpr (step_traits(P::plan.steps[I].kind).fuses && first != I)
    return std::is_same_v<cpu::line_of_outputs<P, I>, cpu::line_of_outputs<P, first>>;
  else
    return true;
}
template <class P, int I>
constexpr bool same_call() {
  using own = cpu::lowered<P, I>;
  using code = typename own::code;
  if (own::s.carried) return true;
  if (own::phases() != code::phases() || own::prepares() != code::prepares()) return false;
  for (int k = 0; k < own::phases(); ++k) {
    if (own::units(k) != code::units(k)) return false;
  }
  return own::scratch_bytes() == code::scratch_bytes() &&
         own::passes_caches() == code::passes_caches();
}
/// What the compiler would make of each step by itself is what it makes of the one whose code that
/// runs.
template <class P>
constexpr bool codes_fit = []<std::size_t... I>(std::index_sequence<I...>) {
  return (... && (same_line<P, int(I)>() && same_call<P, int(I)>()));
}
(std::make_index_sequence<P::plan.steps.size()>{});

/// How many different codes the steps of a kind run.
template <class P>
constexpr int codes_of(step_kind kind) {
  int n = 0;
  for (int i = 0; i < P::plan.step_count; ++i) {
    const bool counts = P::plan.steps[std::size_t(i)].kind == kind;
    n += counts && cpu::step_codes<P>[i].of == i;
  }
  return n;
}
template <class P>
constexpr int steps_of(step_kind kind) {
  int n = 0;
  for (const plan_step& s : P::plan.steps) n += s.kind == kind;
  return n;
}
template <class P>
constexpr int codes_of_all() {
  int n = 0;
  for (int i = 0; i < P::plan.step_count; ++i) n += cpu::step_codes<P>[i].of == i;
  return n;
}

template <int Blocks, auto Rule = optim::adam{}>
using gpt_step = program<
    training_step<models::gpt<100, 32, 4, Blocks, 16>, nn::token_cross_entropy, fixed<Rule>>, true,
    dtype::f32, tensor<dtype::i32, 2, 16>, tensor<dtype::i32, 32>>;

template <int Blocks>
struct residual_net {
  nn::conv2d<3, 16, 3, false> first{.padding = 1};
  std::array<models::basic_block<16, 16>, Blocks> blocks{};
  nn::dense<16, 10> last{};

  constexpr var operator()(var x) const {
    x = first(x);
    for (const auto& block : blocks) x = block(x);
    return last(global_average_pool(x));
  }
};
template <int Batch, int Blocks>
using residual_step = program<
    training_step<residual_net<Blocks>, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
    true, dtype::f32, tensor<dtype::f32, Batch, 3, 8, 8>, tensor<dtype::i32, Batch>>;

/// Products of one form, with other things to follow; the first reads an argument.
struct unlike {
  nn::dense<24, 24> first{}, a{}, b{}, c{}, d{}, e{}, last{};
  constexpr var operator()(var x) const {
    x = relu(first(x));
    x = relu(a(x));
    x = tanh(b(x));
    x = relu(c(x)) + 0.5;
    x = relu(d(x)) + 0.25;
    return relu(last(relu(e(x))));
  }
};
using unlike_program = inference_program<unlike, tensor<dtype::f32, 5, 24>>;

/// One reads the same value twice, the other two values.
struct read_twice {
  constexpr std::array<var, 2> operator()(var x, var y) const {
    return {sum(x * x, {1}), sum(x * y, {1})};
  }
};
using read_twice_program =
    inference_program<read_twice, tensor<dtype::f32, 40, 300>, tensor<dtype::f32, 40, 300>>;

/// The code of each product.
template <class P>
constexpr auto code_of_products = [] {
  std::array<int, std::size_t(steps_of<P>(step_kind::product))> code{};
  std::size_t n = 0;
  for (int i = 0; i < P::plan.step_count; ++i) {
    if (P::plan.steps[std::size_t(i)].kind == step_kind::product)
      code[n++] = cpu::step_codes<P>[i].of;
  }
  return code;
}();

reals numbers(std::size_t count) {
  reals x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = double(i * 37 % 101) / 50 - 1;
  return x;
}
reals integers(std::size_t count, std::size_t below) {
  reals x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = double(i * 7 % below);
  return x;
}

}  // namespace

TEST_CASE("steps of equal blocks run the same code") {
  static_assert(codes_of_all<gpt_step<3>>() == codes_of_all<gpt_step<2>>());
  static_assert(codes_of<gpt_step<3>>(step_kind::attention) == 1);
  static_assert(steps_of<gpt_step<3>>(step_kind::attention) == 3);
  static_assert(codes_of<gpt_step<3>>(step_kind::attention_gradient) == 1);
  static_assert(codes_of_all<residual_step<16, 4>>() == codes_of_all<residual_step<16, 3>>());
  static_assert(codes_of_all<residual_step<3, 4>>() == codes_of_all<residual_step<3, 3>>());
}

TEST_CASE("what runs for a step is what it would be compiled to") {
  static_assert(codes_fit<gpt_step<3>>);
  static_assert(codes_fit<residual_step<16, 4>>);
  static_assert(codes_fit<residual_step<3, 4>>);
}

TEST_CASE("equal blocks compute what the interpreter does, each on its own memory") {
  using gpt = gpt_step<3, optim::sgd{.momentum = 0.9}>;  // Adam divides by gradients near zero
  check_steps<gpt>({integers(32, 100), integers(32, 90)}, {0.1}, 2e-5);
  check_steps<residual_step<16, 4>>({numbers(16 * 3 * 64), integers(16, 10)}, {0.1}, 1e-4);
  check_steps<residual_step<3, 4>>({numbers(3 * 3 * 64), integers(3, 10)}, {0.1}, 1e-4);
}

TEST_CASE("what follows a kernel, constants and shared operands tell steps apart") {
  constexpr auto code = code_of_products<unlike_program>;
  static_assert(code[5] == code[1] && code[2] != code[1] && code[3] != code[1]);
  static_assert(code[4] != code[1] && code[4] != code[3]);
  static_assert(codes_fit<unlike_program>);
  check_steps<unlike_program>({numbers(5 * 24)}, {}, 2e-5);
  static_assert(codes_of_all<read_twice_program>() == read_twice_program::plan.step_count);
  check_steps<read_twice_program>({numbers(40 * 300), integers(40 * 300, 13)}, {}, 2e-5);
}
