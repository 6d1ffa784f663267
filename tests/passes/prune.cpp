#include <cella/graph/check.hpp>
#include <cella/ops/functions.hpp>
#include <cella/passes/simplify/prune.hpp>
#include <cella/transform/recursion.hpp>

#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr tensor_type vector3{dtype::f64, {3}};
constexpr tensor_type scalar_type{dtype::f64, {}};

/// The pruned graph of f(x, k).
template <class F>
constexpr graph pruned(F f) {
  builder b;
  const var x{&b, b.input(vector3, input_role::argument, "x")};
  const var k{&b, b.input(scalar_type, input_role::argument, "k")};
  const var y = f(x, k);
  b.g.outputs.push_back({});
  b.end(std::array{y.id});
  return prune(std::move(b.g));
}
template <class Op>
const node* find(const graph& g) {
  for (const node& n : g.nodes) {
    if (is<Op>(n)) return &n;
  }
  return nullptr;
}
bool has(const graph& g, std::string_view op) {
  for (const node& n : g.nodes) {
    if (n.op->name == op) return true;
  }
  return false;
}

constexpr auto two_carries = [](var x, var k) {
  // The second state and the ys are never read; exp feeds the second state only.
  const auto [last, ys] = scan(
      [&](std::pair<var, var> s, var u) {
        return std::pair{std::pair{s.first + u, exp(s.second) * k}, s.second};
      },
      std::pair{k, k}, x);
  return last.first;
};
static_assert(check(pruned(two_carries)).empty());

}  // namespace

TEST_CASE("unused carries and results go, with what made them") {
  const graph g = pruned(two_carries);
  const node* n = find<scan_op>(g);
  REQUIRE(n);
  CHECK(n->result_count == 1);
  CHECK(n->operand_count == 2);
  CHECK(n->attributes.as<scan_options>().carries == 1);
  CHECK_FALSE(has(g, "exp"));
  CHECK(g.regions[0].inputs.size() == 2);
}

TEST_CASE("a carry that another one needs stays") {
  const graph g = pruned([](var x, var k) {
    const auto [last, ys] = scan(
        [](std::pair<var, var> s, var u) {
          return std::pair{std::pair{s.first + s.second, exp(s.second)}, u};
        },
        std::pair{k, k}, x);
    return last.first;
  });
  CHECK(find<scan_op>(g)->result_count == 2);
  CHECK(find<scan_op>(g)->operand_count == 2);  // x is not needed
  CHECK(find<scan_op>(g)->attributes.as<scan_options>().xs == 0);
  CHECK(has(g, "exp"));
}

TEST_CASE("what the condition of a loop needs stays, whatever is read of the loop") {
  const graph g = pruned([](var x, var k) {
    const auto [a, b, c] = while_loop([](var, var n, var) { return n < 3; },
                                      [](var p, var n, var q) {
                                        return std::tuple{p * 2, n + 1, exp(q)};
                                      },
                                      std::tuple{x, k, k});
    return a;
  });
  CHECK(find<while_op>(g)->result_count == 2);
  CHECK_FALSE(has(g, "exp"));
  CHECK(check(g).view() == "");
}

TEST_CASE("a cond keeps the arguments that either branch reads") {
  const graph g = pruned([](var x, var k) {
    const auto [a, b] = cond(
        k > 0,
        [&] {
          return std::pair{x * 2, exp(x)};
        },
        [&] {
          return std::pair{x, x * k};
        });
    return a;
  });
  CHECK(find<cond_op>(g)->result_count == 1);
  CHECK(find<cond_op>(g)->operand_count == 2);  // the predicate and x
  CHECK_FALSE(has(g, "exp"));
  CHECK(check(g).view() == "");
}

TEST_CASE("a called function keeps its signature, and recursion stays closed") {
  const graph g = pruned([](var x, var k) {
    return recursive(
        [](auto self, var y, var n) {
          return cond(
              n > 0, [&] { return self(y * 2, n - 1); }, [&] { return y; });
        },
        vector3, x, k);
  });
  CHECK(check(g).view() == "");
  const node* n = find<call_op>(g);
  REQUIRE(n);
  CHECK(n->operand_count == 2);
  CHECK(run_graph(g, {f64({3}, {1, 2, 3}), scalar(3)})[0].values == reals{8, 16, 24});
}

TEST_CASE("a graph without regions is left as it is") {
  builder b;
  const var x{&b, b.input(vector3, input_role::argument, "x")};
  exp(x);
  b.g.outputs.push_back({});
  b.end(std::array{(x + 1).id});
  CHECK(prune(b.g).nodes.size() == b.g.nodes.size());
}
