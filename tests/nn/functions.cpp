#include <boost/hana/define_struct.hpp>
#include <cella/nn/functions.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/jacobian.hpp>
#include <string>

#include "support/compare.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

std::vector<std::string> paths(auto cell) {
  std::vector<std::string> all;
  for_each_parameter(cell, [&](std::string_view p, const parameter_base&) { all.emplace_back(p); });
  return all;
}

class described {
 public:
  BOOST_HANA_DEFINE_STRUCT(described, (nn::dense<4, 8>, first), (nn::dense<8, 2>, second));
  described() = default;  // no aggregate
};

constexpr auto activated = [](var x) { return relu(x); };
using body = nn::sequential<nn::dense<4, 8>, decltype(activated), nn::dense<8, 4>>;

/// A function of a function: twice the same layer, its input added to what it yields.
template <class F>
constexpr auto twice(F&& f) {
  return residual(compose(f, f));
}
struct decorated {
  body layers{};
  std::array<nn::dense<4, 4>, 2> tail{};
  constexpr var operator()(var x) const {
    return map_layers(tail, compose([](var v) { return tanh(v); }, twice(layers))(x));
  }
};
struct by_hand {
  body layers{};
  std::array<nn::dense<4, 4>, 2> tail{};
  constexpr var operator()(var x) const {
    const auto& first = std::get<0>(layers.layers);
    const auto& last = std::get<2>(layers.layers);
    auto once = [&](var v) { return last(relu(first(v))); };
    return tail[1](tail[0](tanh(x + once(once(x)))));
  }
};

}  // namespace

TEST_SUITE("nn/functions") {
  TEST_CASE("a class that Boost.Hana describes shows its parameters") {
    CHECK(paths(described()) ==
          std::vector<std::string>{"first.weight", "first.bias", "second.weight", "second.bias"});
  }

  TEST_CASE("elements of a sequence are numbered in parameter paths") {
    CHECK(paths(body{}) == std::vector<std::string>{"layers.0.weight", "layers.0.bias",
                                                    "layers.2.weight", "layers.2.bias"});
    CHECK(paths(decorated{})[4] == "tail.0.weight");
  }
  TEST_CASE("a net of functions of functions is the net that is written out") {
    compiled<decorated, cella::tensor<dtype::f64, 3, 4>> built(7);
    compiled<by_hand, cella::tensor<dtype::f64, 3, 4>> written(7);
    std::array<double, 12> x;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3 * double(i) - 1.5;
    check_close(built(x), written(x), 1e-14);
  }
  TEST_CASE("functions close over values, in graphs and eagerly, and are differentiated") {
    const auto f = [](const vars& x) {
      const var scale = x[1];
      const auto scaled = [scale](var v) { return v * scale; };
      const auto g =
          compose([](var v) { return sum(v); }, residual(scaled), [](var v) { return square(v); });
      return vars{g(x[0]), grad(g)(x[0])};
    };
    const std::vector<valued_tensor> in{f64({2}, {1, -3}), scalar(2)};
    for (const auto& y : {run_eagerly(f, in), run_traced(f, in)}) {
      CHECK(y[0].values == reals{30});      // 3 x^2, summed
      CHECK(y[1].values == reals{6, -18});  // 6 x
    }
  }
}
