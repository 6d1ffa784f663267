#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/passes/simplify/scale_filters.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cmath>
#include <random>

using namespace cella;

namespace {

/// A filter with and without a bias, batch norm behind both, a shortcut, and a norm that two read.
template <int Channels>
struct normed_net {
  nn::conv2d<3, Channels, 3> first{.padding = 1};
  nn::batch_norm<Channels> first_norm{};
  nn::conv2d<Channels, Channels, 3, false> second{.padding = 1};
  nn::batch_norm<Channels> second_norm{};
  nn::conv2d<Channels, Channels, 1, false> third{.stride = 2};
  nn::batch_norm<Channels> third_norm{};

  constexpr var operator()(var x) const {
    x = relu(first_norm(first(x)));
    const var y = relu(x + second_norm(second(x)));
    const var z = third(y);
    return third_norm(z) + z;  // z itself is asked for: nothing is folded there
  }
};

template <class T>
void fill(parameter_store& store, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  for (const auto& e : store.entries()) {
    for (std::int64_t i = 0; i < e.type.size(); ++i)
      write_element(store.value(e), i, uniform(random) - (e.type.rank() == 4 ? 1 : 0));
  }
  store.touch();
}

/// The net's value as the interpreter computes it from the graph as it was traced.
template <class Net>
std::vector<double> interpreted(const parameter_store& store, const std::vector<double>& x,
                                const tensor_type& type) {
  Net net;
  builder b;
  b.precision = dtype::f64;
  trace_into(b, net, std::array{type});
  REQUIRE(!b.failed());
  value_store values;
  aligned_buffer image(x.size() * 8 + 64);
  std::memcpy(image.data(), x.data(), x.size() * 8);
  for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
    const node_id n = b.g.input(int(i));
    if (b.g.inputs[i].role == input_role::argument) {
      values.bind(n, {image.data(), type});
    } else {
      const auto* p = store.find(b.g.view(b.g.inputs[i].name));
      REQUIRE(p);
      values.bind(n, store.value(*p));
    }
  }
  interpret(b.g, values);
  const tensor_ref y = values.value(b.g.regions[0].outputs[0]);
  std::vector<double> found;
  for (std::int64_t i = 0; i < y.type.size(); ++i) found.push_back(read_element(y, i));
  return found;
}

template <int Channels, int N>
void check_net() {
  using net = normed_net<Channels>;
  using image = tensor<dtype::f64, N, 3, 9, 7>;
  using call = program<net, false, dtype::f64, image>;
  net cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<call> run(store);
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> x(std::size_t(image::type.size()));
  for (double& v : x) v = normal(random);
  // New parameters are taken up by the same executable.
  for (const std::uint64_t seed : {1u, 2u}) {
    fill<double>(store, seed);
    for (int again = 0; again < 2; ++again) {
      run(x);
      const auto expected = interpreted<net>(store, x, image::type);
      const auto found = run.template result<0>();
      REQUIRE(found.size() == expected.size());
      double worst = 0, most = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        most = std::max(most, std::abs(expected[i]));
        worst = std::max(worst, std::abs(found[i] - expected[i]));
      }
      CHECK(worst < 1e-13 * most);
    }
  }
}

int count(const graph& g, const op_info& op) {
  int n = 0;
  for (node_id m : g.regions[0].nodes) n += g.nodes[std::size_t(m)].op == &op;
  return n;
}

}  // namespace

TEST_CASE(
    "scaled filters yield what the graph says, in every layout, for every set of parameters") {
  check_net<8, 2>();
  check_net<5, 1>();
  check_net<6, 8>();
}

TEST_CASE_TEMPLATE(
    "batch norm leaves one sum behind a convolution, and no multiplication in the steps", image,
    tensor<dtype::f32, 2, 3, 9, 7>, tensor<dtype::f32, 1, 3, 9, 7>) {
  using call = program<normed_net<8>, false, dtype::f32, image>;
  int prepared = 0, convolutions = 0;
  for (const plan_step& s : call::plan.steps) {
    prepared += s.constant;
    // Everything else is in the epilogues: a bias; a bias and the shortcut; mean, scale and bias.
    CHECK((s.constant || s.kind == step_kind::convolution || is_conversion(s.kind)));
    if (s.kind != step_kind::convolution) continue;
    constexpr std::array reads{1, 2, 3};
    CHECK(s.read_count == reads[std::size_t(convolutions++)]);
  }
  CHECK(convolutions == 3);
  CHECK(prepared >= 4);
}

TEST_CASE("a program that changes parameters keeps its graph") {
  normed_net<8> net;
  const std::array types{tensor_type{dtype::f32, {2, 3, 9, 7}}};
  const graph inference = optimize(trace(net, types, {.training = false}));
  const graph training = optimize(trace(net, types, {.training = true}));
  CHECK(count(inference, info_of<batch_norm_op>) == 0);
  CHECK(count(training, info_of<batch_norm_op>) == 3);
  CHECK(scale_filters(training).nodes.size() == training.nodes.size());
}

TEST_CASE("folded filters that are packed once take no place behind their packing") {
  using folded = program<normed_net<32>, false, dtype::f32, tensor<dtype::f32, 1, 3, 9, 7>>;
  std::int64_t filters = 0;
  for (const plan_step& s : folded::plan.steps) {
    if (s.kind == step_kind::convolution && s.arrangement == layout::blocked)
      filters += folded::graph.type(folded::graph.operand(s.anchor, 1)).bytes();
  }
  if (lanes_of<dtype::f32>() == 16) {
    CHECK(filters > 0);
    // Packed: filters, those of Winograd four times. The scaled ones lie where images do later.
    CHECK(folded::plan.arena_bytes < 5 * filters);
  }
}
