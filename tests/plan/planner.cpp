#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/models/lenet.hpp>
#include <cella/passes/pass.hpp>
#include <cella/train/step.hpp>
#include <set>
#include <string_view>

using namespace cella;

namespace {

using plan = growing_plan;

template <class Cell, std::size_t N>
plan plan_of(const std::array<tensor_type, N>& arguments, bool training, int lanes = 16) {
  Cell cell{};
  const graph g = optimize(trace(cell, arguments, {.training = training}));
  plan_target machine = cpu::planning::machine;
  machine.vector_bytes = lanes * int(sizeof(float));
  const planner<cpu::planning> p(g, {dtype::f32}, machine);
  REQUIRE(p.fault().empty());
  return p.result();
}

int count(const plan& p, step_kind kind) {
  int n = 0;
  for (const plan_step& s : p.steps) n += s.kind == kind;
  return n;
}

using training =
    training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
template <int N>
constexpr std::array lenet_types{tensor<dtype::f32, N, 1, 28, 28>::type,
                                 tensor<dtype::i32, N>::type};

struct residual {
  nn::dense<8, 8> a{};
  constexpr std::array<var, 2> operator()(var x) const {
    const var h = relu(a(x) + x) * 2;
    return {h, sum(h, {1})};
  }
};

/// A chain of operations on what is stored anyhow, whose end waits for a softmax.
struct late_factor {
  constexpr var operator()(var x) const {
    const var y = exp(x);
    const var factor = -(y * x);
    return factor * softmax(matmul(y, y));
  }
};

/// Weights in two parts, as ranks send them to each other.
struct joined_weights {
  parameter<8, 16> w{}, v{};
  constexpr var operator()(var x) const {
    return matmul(x, concat({operand(w).in(*x.b), operand(v).in(*x.b)}, 1));
  }
};
/// Samples in two parts.
struct joined_samples {
  nn::dense<8, 16> a{};
  constexpr var operator()(var x) const { return concat({a(x), a(relu(x))}, 0); }
};

/// One matrix times those of samples and channels.
struct shared_left {
  parameter<3, 16> w{};
  constexpr var operator()(var x) const { return matmul(operand(w).in(*x.b), x); }
};

/// Reads the parameter that it replaces after the value that replaces it was made.
struct late_reader {
  parameter<4> w{};
  constexpr var operator()(var x) const {
    const var old = operand(w).in(*x.b);
    assign(x, w, old * 2);
    return exp(old) + x;
  }
};

/// Replaces two states by each other.
struct exchange {
  state<4> a{};
  state<4> b{};
  constexpr var operator()(var x) const {
    const var before = operand(a).in(*x.b);
    assign(x, a, operand(b).in(*x.b) + 1);
    assign(x, b, before + 1);
    return x * 2;
  }
};

}  // namespace

TEST_CASE("each kind of step has a name of its own") {
  std::set<std::string_view> names;
  for (int k = 0; k <= int(step_kind::generic); ++k) names.insert(name(step_kind(k)));
  CHECK(names.size() == std::size_t(step_kind::generic) + 1);
  CHECK(!names.contains(""));
}

TEST_CASE("LeNet-5's training step becomes few kernels, with every update inside one of them") {
  const plan p = plan_of<training>(lenet_types<32>, true);
  CHECK(int(p.steps.size()) <= 26);
  CHECK(count(p, step_kind::generic) == 0);
  CHECK(count(p, step_kind::elementwise) == 0);
  CHECK(count(p, step_kind::copy) == 0);
  CHECK(count(p, step_kind::convolution_pool) == 2);
  CHECK(count(p, step_kind::convolution_pool_weight_gradient) == 1);
  CHECK(count(p, step_kind::cross_entropy) == 1);
  // Bias gradients of the convolutions are side outputs.
  int carried = 0;
  for (int i = 0; i < int(p.steps.size()); ++i) carried += p.steps[std::size_t(i)].carried;
  CHECK(carried == 2);
  // Each of the ten parameters and their momenta is written in place.
  int in_place = 0;
  for (int i = 0; i < int(p.steps.size()); ++i) {
    const plan_step& s = p.steps[std::size_t(i)];
    for (int k = 0; k < s.output_count; ++k) {
      const auto space = s.outputs[std::size_t(k)].at.space;
      in_place += space == parameter_space || space == slot_space;
    }
  }
  CHECK(in_place == 20);
}

TEST_CASE("small batches stay plain, larger ones go into the lanes") {
  CHECK(count(plan_of<training>(lenet_types<2>, true), step_kind::border) == 0);
  const plan one =
      plan_of<models::lenet5>(std::array{tensor<dtype::f32, 1, 1, 28, 28>::type}, false);
  CHECK(count(one, step_kind::pack) == 0);
  CHECK(one.steps.size() == 5);
  const plan many =
      plan_of<models::lenet5>(std::array{tensor<dtype::f32, 16, 1, 28, 28>::type}, false);
  CHECK(count(many, step_kind::pack) == 1);
}

TEST_CASE("weights in parts leave samples in the lanes, samples in parts do not") {
  const std::array x{tensor<dtype::f32, 16, 8>::type};
  CHECK(count(plan_of<joined_weights>(x, false), step_kind::pack) == 1);
  CHECK(count(plan_of<joined_samples>(x, false), step_kind::pack) == 0);
}

TEST_CASE("a matrix is multiplied by batches along several axes in one product") {
  const plan p = plan_of<shared_left>(std::array{tensor<dtype::f32, 2, 5, 16, 8>::type}, false);
  REQUIRE(int(p.steps.size()) == 1);
  CHECK(p.steps[0].kind == step_kind::product);
}

TEST_CASE("an epilogue takes bias, residual, activation and scaling, and yields several outputs") {
  const plan p = plan_of<residual>(std::array{tensor<dtype::f32, 3, 8>::type}, false);
  CHECK(int(p.steps.size()) == 2);
  CHECK(p.steps[0].kind == step_kind::product);
  CHECK(p.steps[0].read_count == 2);
}

TEST_CASE("what waits for a later step is computed there, if that stores no more") {
  const plan p = plan_of<late_factor>(std::array{tensor<dtype::f32, 4, 4>::type}, false);
  REQUIRE(p.steps.size() == 4);
  CHECK(p.steps[0].kind == step_kind::elementwise);
  CHECK(p.steps[0].output_count == 1);
  CHECK(p.steps[3].kind == step_kind::elementwise);
}

TEST_CASE("a parameter is overwritten only after its last reader") {
  const plan p = plan_of<late_reader>(std::array{tensor<dtype::f32, 4>::type}, false);
  int writer = -1;
  int reader = -1;
  for (int i = 0; i < int(p.steps.size()); ++i) {
    const plan_step& s = p.steps[std::size_t(i)];
    for (int k = 0; k < s.output_count; ++k) {
      if (s.outputs[std::size_t(k)].at.space == parameter_space)
        writer = i;
      else
        reader = i;
    }
  }
  CHECK(writer >= 0);
  CHECK(reader >= 0);
  CHECK(reader <= writer);
}

TEST_CASE("states that replace each other go through a copy") {
  const plan p = plan_of<exchange>(std::array{tensor<dtype::f32, 4>::type}, false);
  // Whoever is written first must not destroy what the other reads.
  CHECK(count(p, step_kind::copy) >= 1);
}

TEST_CASE("the arena is within five percent of the largest live set") {
  for (const plan& p :
       {plan_of<training>(lenet_types<32>, true), plan_of<training>(lenet_types<5>, true)}) {
    CHECK(double(p.arena_bytes) <= 1.05 * double(p.live_bytes));
    CHECK(p.arena_bytes < p.arena_bytes_without_reuse);
  }
}
