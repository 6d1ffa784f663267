// What checkpoints save: planned bytes of gradients, of the arena and of the frames of bodies.
// Loops that are compiled need no records: what their steps store lies in the arena.
#include <cella/backend/cpu/run/frame_bytes.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int rows = 64;
constexpr int width = 32;
constexpr std::int64_t value_bytes = 8 * rows * width;

/// The backward pass reads two values besides the input.
constexpr var block(var v, var w) { return sin(tanh(matmul(v, w)) + v); }
constexpr int values_read = 3;

enum class how { store, checkpoint, recompute };

/// A chain of eight blocks.
template <how How>
struct chain {
  static constexpr var loss(var x, var w) {
    const auto f = [w](var v) { return block(v, w); };
    for (int i = 0; i < 8; ++i) x = How == how::checkpoint ? checkpoint(f)(x) : f(x);
    return sum(square(x));
  }
};
/// 64 steps of one block.
template <how How>
struct loop {
  static constexpr var loss(var x, var w) {
    const auto f = [w](var v) { return block(v, w); };
    const auto body = [f](var, var h) { return How == how::checkpoint ? checkpoint(f)(h) : f(h); };
    return sum(square(for_i(64, body, x, {.recompute = How == how::recompute})));
  }
};
/// Eight checkpoints in a row, together a checkpoint.
struct nested_chain {
  static constexpr var loss(var x, var w) {
    const auto f = [w](var v) { return block(v, w); };
    const auto four = checkpoint([f](var v) {
      for (int i = 0; i < 4; ++i) v = checkpoint(f)(v);
      return v;
    });
    return sum(square(four(four(x))));
  }
};

template <class F>
struct gradients_of {
  constexpr std::array<var, 3> operator()(var x, var w) const {
    const auto g = value_and_grad<2>(&F::loss)(x, w);
    return {g.value, g.gradient[0], g.gradient[1]};
  }
};
template <class F>
using every_way = ways_of_cell<gradients_of<F>, tensor<dtype::f64, rows, width>,
                               tensor<dtype::f64, width, width>>;

/// In values of the state, rounded up.
template <class F>
int planned_values() {
  using program = typename every_way<F>::program;
  const std::int64_t bytes = program::plan.arena_bytes + cpu::frame_bytes<program>();
  return int((bytes + value_bytes - 1) / value_bytes);
}

std::vector<reals> arguments() {
  reals x, w;
  for (int i = 0; i < rows * width; ++i) x.push_back(std::sin(i));
  for (int i = 0; i < width * width; ++i) w.push_back(0.2 * std::cos(3 * i));
  return {x, w};
}
/// What F leaves, whichever way it is run. In eager mode blocks that hold others sum up the
/// gradient of the weights in another order.
template <class F>
const outcome& left_by() {
  static const outcome o = every_way<F>().check(arguments(), 1, 1e-9, 1e-14);
  return o;
}
template <class F, class Plain>
void check_same_results() {
  const outcome& found = left_by<F>();
  const outcome& wanted = left_by<Plain>();
  REQUIRE(found.results.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < found.results[k].size(); ++i)
      REQUIRE(found.results[k][i] == doctest::Approx(wanted.results[k][i]).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("a chain of checkpoints keeps the inputs of its blocks and the values of one") {
  const int stored = planned_values<chain<how::store>>();
  const int checkpointed = planned_values<chain<how::checkpoint>>();
  CHECK(stored >= 8 * values_read);
  CHECK(checkpointed <= 8 + values_read + 4);
  check_same_results<chain<how::checkpoint>, chain<how::store>>();
}
TEST_CASE("checkpoints in checkpoints keep less") {
  CHECK(planned_values<nested_chain>() < planned_values<chain<how::checkpoint>>());
  check_same_results<nested_chain, chain<how::store>>();
}
TEST_CASE("a loop of checkpoints keeps the state of each step and the values of one step") {
  const int stored = planned_values<loop<how::store>>();
  CHECK(stored >= 64 * values_read);
  CHECK(planned_values<loop<how::checkpoint>>() <= 64 + values_read + 8);
  CHECK(planned_values<loop<how::recompute>>() <= 64 + values_read + 8);
  check_same_results<loop<how::checkpoint>, loop<how::store>>();
  check_same_results<loop<how::recompute>, loop<how::store>>();
}
