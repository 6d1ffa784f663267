// Results that the caller wants in places of its own.
#include <doctest/doctest.h>

#include <cella/models/lenet.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/control.hpp>
#include <utility>
#include <vector>

using namespace cella;

namespace {

constexpr int guard = 3;
constexpr float untouched = -77;

/// Calls both programs twice; their results must be equal, and nothing else may be written.
template <class Program, class Cell, class... Arrays>
void compare(Cell& cell, const Arrays&... arguments) {
  parameter_store here(cell, 5), there(cell, 5);
  executable<Program> plain(here);
  executable<with_bound_results<Program>> bound(there);
  for (int i = 0; i < Program::count(input_role::scalar); ++i) {
    plain.scalar(i, 0.1);
    bound.scalar(i, 0.1);
  }
  [&]<int... K>(std::integer_sequence<int, K...>) {
    std::array<std::vector<float>, sizeof...(K)> places{
        std::vector<float>(plain.template result<K>().size() + guard, untouched)...};
    (bound.template bind<K>(std::span(places[K]).first(places[K].size() - guard)), ...);
    for (int call = 0; call < 2; ++call) {
      plain(arguments...);
      bound(arguments...);
      const auto check = [&](const auto& expected, const std::vector<float>& found) {
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(expected[i] == found[i]);
        for (std::size_t i = expected.size(); i < found.size(); ++i) CHECK(found[i] == untouched);
      };
      (check(plain.template result<K>(), places[K]), ...);
      const bool where_wanted = ((bound.template result<K>().data() == places[K].data()) && ...);
      CHECK(where_wanted);
    }
  }
  (std::make_integer_sequence<int, Program::plan.result_count>{});
}

/// Results of every kind of kernel; one that comes twice, one that is an argument, a part of one,
/// and one that another one follows from.
struct many {
  constexpr std::vector<var> operator()(var x, var y) const {
    const var product = matmul(x, y);
    const var power = exp(product * 0.1f);
    const var state = for_i(
        4, [&](var, var s) { return tanh(s + slice(x, 0, 1, 2)); }, sum(x, {0}, true));
    return {product,
            power,
            sum(power, {1}),
            softmax(transpose(power)),
            power,
            x,
            slice(y, 0, 2, 5),
            reshape(transpose(x), {35}),
            concat({sum(x, {1}), sum(y, {0})}, 0),
            state};
  }
};
/// What depends on parameters only is made once.
struct scaled {
  parameter<7, 7> w{initializer::fan_in_uniform(7)};
  constexpr std::array<var, 2> operator()(var x) {
    const var w2 = exp(transpose(w));
    return {matmul(x, w2), w2};
  }
};

}  // namespace

TEST_CASE("results lie where they are wanted") {
  std::vector<float> x(35), y(35);
  for (std::size_t i = 0; i < 35; ++i) {
    x[i] = float(i % 11) * 0.1f - 0.4f;
    y[i] = 0.3f - float(i % 7) * 0.1f;
  }
  many cell;
  compare<inference_program<many, tensor<dtype::f32, 5, 7>, tensor<dtype::f32, 7, 5>>>(cell, x, y);
  scaled net;
  compare<inference_program<scaled, tensor<dtype::f32, 5, 7>>>(net, x);
}
TEST_CASE("of a network, and of its training step") {
  std::vector<float> x(32 * 784);
  std::vector<std::int32_t> y(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 37 % 101) * 0.01f - 0.5f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::int32_t(i * 7 % 10);
  models::lenet5 net;
  compare<inference_program<models::lenet5, tensor<dtype::f32, 32, 1, 28, 28>>>(net, x);
  using step = training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{}>>;
  compare<
      program<step, true, dtype::f32, tensor<dtype::f32, 32, 1, 28, 28>, tensor<dtype::i32, 32>>>(
      net, x, y);
}
