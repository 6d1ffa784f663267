#include <cella/ops/random.hpp>
#include <cella/passes/simplify/cse.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <span>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Nodes that are left, inputs included, when f(x, y) has been shared and cleaned.
template <class F>
constexpr int shared_size(F f) {
  return node_count(dce(cse(graph_of(f))));
}

// clang-format off
static_assert(shared_size([](var x, var y) { return (x + y) * (x + y); }) == 4);
static_assert(shared_size([](var x, var y) { return (x + y) * (y + x); }) == 4);
static_assert(shared_size([](var x, var y) { return (x - y) * (y - x); }) == 5);
static_assert(shared_size([](var x, var y) { return (x * 2 + y) * (x * 2 - y); }) == 7);
static_assert(shared_size([](var x, var y) { return x * 2 + y * 3; }) == 7);
static_assert(shared_size([](var x, var y) { return slice(x, 1, 0, 1) + slice(x, 1, 1, 2) * slice(y, 1, 0, 1); }) == 7);
static_assert(shared_size([](var x, var y) { return slice(x, 1, 0, 1) + slice(x, 1, 0, 1) * slice(y, 1, 0, 1); }) == 6);
static_assert(shared_size([](var x, var y) { return maximum(x, y) + maximum(y, x); }) == 5);
static_assert(shared_size([](var x, var y) { return exp(exp(x)) + exp(exp(x)) * y; }) == 6);
// clang-format on

}  // namespace

TEST_CASE("equal applications become one, also when the operands of a sum are exchanged") {
  const auto twice = [](var x, var y) {
    const var sum = x + y;
    return sum * (y + x);
  };
  const graph before = graph_of(twice);
  const graph after = cse(before);
  CHECK(node_count(after) == 4);
  CHECK(formula(after).view() == "mul(add(x, y), add(x, y))");
  CHECK(same_values(run(before, 1), run(after, 1)));
}

TEST_CASE("what does not commute bit for bit is not exchanged") {
  // maximum(x, NaN) is NaN, maximum(NaN, x) is x.
  CHECK(shared_size([](var x, var y) { return maximum(x, y) + maximum(y, x); }) == 5);
  CHECK(shared_size([](var x, var y) { return (x - y) * (y - x); }) == 5);
}

TEST_CASE("the same options are needed") {
  CHECK(shared_size([](var x) { return sum(x, {0, 1}) * slice(sum(x, {0}), 0, 0, 1); }) == 6);
  CHECK(shared_size([](var x) { return sum(x, {0}) * sum(x, {0}); }) == 3);
  CHECK(shared_size([](var x) { return x + 1 + (x + 2); }) == 6);
  CHECK(shared_size([](var x) { return x + 1 + (x + 1); }) == 4);
}

TEST_CASE("draws of different streams stay apart, the same draw is shared") {
  builder b;
  const var x{&b, b.input({dtype::f32, {4}}, input_role::argument, "x")};
  const var two = random_uniform(x) + random_uniform(x);
  const auto again = b.g.operand(two.id, 0);
  const std::array key{b.g.operand(again, 0)};
  const var copied{&b, copy_node(b, again, key)};
  const std::array out{(two + copied).id};
  b.end(out);
  b.g.outputs.push_back({});
  const graph after = dce(cse(b.g));
  int draws = 0;
  for (const node& n : after.nodes) draws += is<random_uniform_op>(n);
  CHECK(draws == 2);
}

TEST_CASE("values of different regions are not confused") {
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  const var y = exp(x);
  b.begin(std::span(&t, 1));
  const var inner{&b, b.g.regions.back().inputs[0]};
  const std::array inner_out{(exp(inner) + exp(inner)).id};
  b.end(inner_out);
  const std::array out{(y + exp(x)).id};
  b.end(out);
  b.g.outputs.push_back({});
  const graph after = cse(b.g);
  CHECK(after.regions[0].nodes.size() == 3);
  CHECK(after.regions[1].nodes.size() == 3);
  CHECK(std::string(check(after).view()) == "");
}

TEST_CASE("random graphs compute the same after sharing, and sharing twice changes nothing") {
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const graph before = random_graph(seed);
    const graph after = dce(cse(before));
    REQUIRE(std::string(check(after).view()) == "");
    REQUIRE(same_values(run(before, seed), run(after, seed)));
    REQUIRE(node_count(cse(after)) == node_count(after));
    shrunk += node_count(after) < node_count(dce(before));
  }
  CHECK(shrunk > 300);
}
