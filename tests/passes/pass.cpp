#include <cella/passes/pass.hpp>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {
constexpr auto twice = [](var x) { return (x + 0) * 2 * 2 + 4 * x; };
static_assert(formula(optimize(graph_of(twice))).view() == "add(mul(x, 4), mul(x, 4))");
static_assert(node_count(optimize(graph_of(twice))) == 4);
static_assert(optimize_checked(graph_of(twice)).fault.empty());

constexpr graph lose_the_order(graph g) {
  std::swap(g.regions[0].nodes[0], g.regions[0].nodes[1]);
  return g;
}
}  // namespace

TEST_CASE("the standard passes fold, share and clean") {
  const graph g = optimize(graph_of(twice));
  CHECK(node_count(g) == 4);
  CHECK(same_values(run(g, 5), run(graph_of(twice), 5)));
}

TEST_CASE("a pass that breaks the graph is named") {
  constexpr std::array passes{pass{"fold", fold}, pass{"lose_the_order", lose_the_order}};
  const text fault = optimize_checked(graph_of(twice), passes).fault;
  CHECK(std::string(fault.view()).starts_with("after lose_the_order: check: %"));
}

TEST_CASE("a graph that is broken from the start is not blamed on a pass") {
  const text fault = optimize_checked(lose_the_order(graph_of(twice))).fault;
  CHECK(std::string(fault.view()).starts_with("check: %"));
}

TEST_CASE("random graphs and their gradients compute the same after all passes") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const graph before = random_graph(seed, 20);
    const traced_graph after = optimize_checked(before);
    REQUIRE(std::string(after.fault.view()) == "");
    REQUIRE(same_values(run(before, seed), run(after.graph, seed)));
  }
}
