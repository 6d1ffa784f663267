#include <doctest/doctest.h>

#include <cella/nn/attention.hpp>
#include <cella/nn/losses.hpp>
#include <cella/runtime/executable.hpp>
#include <cmath>
#include <string>
#include <vector>

using namespace cella;

namespace {

template <class Cell>
std::string fault_of(const tensor_type& argument) {
  Cell cell{};
  try {
    const graph g = trace(cell, std::array{argument});
    return "no fault in " + std::to_string(g.nodes.size()) + " nodes";
  } catch (const model_error& e) { return e.what(); }
}
bool contains(const std::string& s, std::string_view part) {
  return s.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("layer norm gives each vector the mean and spread of its bias and weight") {
  using cell = nn::layer_norm<6>;
  cell c;
  parameter_store store(c, 1);
  for (float& w : c.weight.values()) w = 3;
  for (float& b : c.bias.values()) b = -2;
  store.touch();
  executable<inference_program<cell, tensor<dtype::f32, 2, 3, 6>>> run(store);
  std::vector<float> x(36);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * i % 17);
  run(x);
  const auto y = run.result<0>();
  for (std::size_t r = 0; r < 6; ++r) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      mean += double{y[r * 6 + i]} / 6;
      square += double{y[r * 6 + i] + 2} * double{y[r * 6 + i] + 2} / 6;
    }
    CHECK(mean == doctest::Approx(-2));
    CHECK(std::sqrt(square) == doctest::Approx(3).epsilon(1e-4));
  }
}

TEST_CASE("an embedding looks up a row for each word") {
  using cell = nn::embedding<5, 3>;
  cell c;
  parameter_store store(c, 1);
  for (std::size_t i = 0; i < 15; ++i) c.weight.values()[i] = float(i);
  store.touch();
  executable<inference_program<cell, tensor<dtype::i32, 2, 2>>> run(store);
  const std::int32_t words[] = {4, 0, 1, 4};
  run(words);
  const auto y = run.result<0>();
  CHECK(std::vector<float>(y.begin(), y.end()) ==
        std::vector<float>{12, 13, 14, 0, 1, 2, 3, 4, 5, 12, 13, 14});
}

TEST_CASE("cells of sequences refuse other widths and name both") {
  const std::string norm = fault_of<nn::layer_norm<6>>({dtype::f32, {2, 5}});
  CAPTURE(norm);
  CHECK(contains(norm, "needs 6 values along the last axis: x is [2,5]"));
  const std::string attention = fault_of<nn::self_attention<8, 2>>({dtype::f32, {2, 3, 6}});
  CAPTURE(attention);
  CHECK(contains(attention, "needs a sequence [...,T,8]: x is [2,3,6]"));
}

TEST_CASE("the loss of tokens takes labels in the shape of the places or in a row") {
  const auto loss = [](var logits, var a, var b) {
    const nn::token_cross_entropy f;
    return std::array{f(logits, a), f(logits, b)};
  };
  struct cell {
    decltype(loss) f;
    constexpr auto operator()(var z, var a, var b) const { return f(z, a, b); }
  };
  using P = inference_program<cell, tensor<dtype::f32, 2, 3, 4>, tensor<dtype::i32, 2, 3>,
                              tensor<dtype::i32, 6>>;
  cell c{loss};
  parameter_store store(c, 1);
  executable<P> run(store);
  std::vector<float> z(24);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = float(i % 5) - 2;
  const std::int32_t labels[] = {0, 1, 2, 3, 2, 1};
  run(z, labels, labels);
  double expected = 0;
  for (std::size_t r = 0; r < 6; ++r) {
    double total = 0;
    for (std::size_t i = 0; i < 4; ++i) total += std::exp(double{z[r * 4 + i]});
    expected += (std::log(total) - double{z[r * 4 + std::size_t(labels[r])]}) / 6;
  }
  CHECK(double{run.result<0>()[0]} == doctest::Approx(expected));
  CHECK(run.result<1>()[0] == run.result<0>()[0]);
  const tensor_type logits{dtype::f32, {2, 3, 4}};
  CHECK(nn::token_cross_entropy::target(logits) == tensor_type{dtype::i32, {2, 3}});
  CHECK(nn::token_cross_entropy::classes(logits) == 4);
}

TEST_CASE("a layer of nothing is refused by the name of its parameter") {
  struct net {
    nn::dense<8, 0> head;
    constexpr var operator()(var x) const { return head(x); }
  };
  net n;
  CHECK_THROWS_WITH_AS(
      trace(n, std::array{tensor_type{dtype::f32, {4, 8}}}),
      "head.weight is f32[0,8]; the extents of parameters and states must be positive",
      model_error);
}
