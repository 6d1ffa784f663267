#include <cella/passes/simplify/dce.hpp>
#include <span>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr auto with_dead_code = [](var x, var y) {
  const var dead = exp(x * y);
  const var used = x + 1;
  (void)(dead * used);
  return -used;
};
static_assert(node_count(graph_of(with_dead_code)) == 8);
static_assert(node_count(dce(graph_of(with_dead_code))) == 5);
static_assert(check(dce(graph_of(with_dead_code))).empty());

}  // namespace

TEST_CASE("what no output needs goes, and inputs stay") {
  const graph g = dce(graph_of(with_dead_code));
  CHECK(formula(g).view() == "neg(add(x, 1))");
  CHECK(g.nodes.size() == 5);
  CHECK(g.regions[0].inputs.size() == 2);
  CHECK(g.operand_pool.size() == 4);  // two of add, one of neg, the output
  CHECK(same_values(run(graph_of(with_dead_code), 3), run(g, 3)));
}

TEST_CASE("afterwards order is the id and inputs stand in front") {
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  const var y = exp(x);
  const var late{&b, b.input(t, input_role::parameter, "late")};
  const std::array out{(y * late).id};
  b.end(out);
  b.g.outputs.push_back({});
  const graph g = dce(b.g);
  CHECK(g.regions[0].inputs == ids{0, 1});
  CHECK(g.regions[0].nodes == ids{0, 1, 2, 3});
  CHECK(formula(g).view() == "mul(exp(x), late)");
  CHECK(std::string(check(g).view()) == "");
}

TEST_CASE("a region that no live node owns goes with its nodes") {
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  b.begin(std::span(&t, 1));
  const std::array inner{exp(var{&b, b.g.regions.back().inputs[0]}).id};
  b.end(inner);
  const std::array out{x.id};
  b.end(out);
  b.g.outputs.push_back({});
  const graph g = dce(b.g);
  CHECK(g.regions.size() == 1);
  CHECK(g.nodes.size() == 1);
}

TEST_CASE("a live control node keeps its regions, shared ones once") {
  static constexpr op_info owner{.name = "owner", .kind = op_kind::control};
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  std::array<int, 3> bodies{};
  for (int& r : bodies) {
    r = b.begin(std::span(&t, 1));
    const var inner{&b, b.g.regions.back().inputs[0]};
    (void)exp(inner);  // dead
    const std::array inner_out{(-inner).id};
    b.end(inner_out);
  }
  // A control node made by hand: its own rules are not needed to keep it.
  auto own = [&](int first, int second) {
    const var like = -x;
    node& n = b.g.nodes[std::size_t(like.id)];
    n.op = &owner;
    n.regions = {first, second};
    return like;
  };
  const var one = own(bodies[2], bodies[0]);
  const var two = own(bodies[2], -1);
  (void)own(bodies[1], -1);  // dead
  const std::array out{one.id, two.id};
  b.end(out);
  b.g.outputs.assign(2, {});
  const graph g = dce(b.g);
  REQUIRE(g.regions.size() == 3);
  CHECK(g.nodes.size() == 3 + 2 + 2);
  CHECK(g.nodes[1].regions == std::array{1, 2});
  CHECK(g.nodes[2].regions == std::array{1, -1});
  CHECK(g.regions[1].nodes == ids{3, 4});
  CHECK(g.regions[2].nodes == ids{5, 6});
  CHECK(std::string(check(g).view()) == "");
}

TEST_CASE("random graphs compute the same, and cleaning twice changes nothing") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const graph before = random_graph(seed);
    const graph after = dce(before);
    REQUIRE(std::string(check(after).view()) == "");
    REQUIRE(same_values(run(before, seed), run(after, seed)));
    REQUIRE(dce(after).nodes.size() == after.nodes.size());
  }
}
