#include <doctest/doctest.h>

#include <cella/graph/check.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/random.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/trace.hpp>

using namespace cella;

namespace {

/// Both passes select by the mask, and it is combined with another one that has one use.
struct masked {
  constexpr std::array<var, 2> operator()(var x) const {
    const auto loss = [](var y) { return sum(square(select(y > 0.5, y * 3, 0))); };
    return {grad(loss)(x), select(logical_and(x > 0.5, x < 2), x, 1)};
  }
};
struct shown {
  constexpr std::array<var, 2> operator()(var x) const {
    const var mask = x > 0;
    return {mask, select(mask, x, 1)};
  }
};

template <class Cell>
graph traced(Cell cell) {
  builder b;
  trace_into(b, cell, std::array{tensor_type{dtype::f32, {4, 5}}});
  REQUIRE(!b.failed());
  return cse(fold(std::move(b.g)));
}

/// The most uses that an elementwise truth value has.
int most_uses(const graph& g) {
  std::vector<int> uses(g.nodes.size(), 0);
  int most = 0;
  const auto use = [&](node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.type.element == dtype::boolean && x.op->pointwise)
      most = std::max(most, ++uses[std::size_t(n)]);
  };
  for (node_id n : g.regions[0].nodes) {
    for (node_id o : g.operands(n)) use(o);
  }
  for (node_id n : g.regions[0].outputs) use(n);
  return most;
}

}  // namespace

TEST_CASE("each use of a mask compares again") {
  const graph before = traced(masked{});
  CHECK(most_uses(before) > 1);
  const graph after = masks_apart(before);
  CHECK(check(after).empty());
  CHECK(most_uses(after) == 1);
}
TEST_CASE("a mask that is a result keeps its node, and its other user compares again") {
  const graph before = traced(shown{});
  CHECK(most_uses(before) == 2);
  const graph after = masks_apart(before);
  CHECK(check(after).empty());
  CHECK(most_uses(after) == 1);
  CHECK(after.regions[0].outputs[0] == before.regions[0].outputs[0]);
}
TEST_CASE("graphs without shared masks stay as they are") {
  const graph once = masks_apart(traced(masked{}));
  const graph twice = masks_apart(once);
  CHECK(once.nodes.size() == twice.nodes.size());
}
