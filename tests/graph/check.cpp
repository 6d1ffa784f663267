#include <cella/graph/check.hpp>
#include <cella/graph/freeze.hpp>
#include <span>

#include "../passes/expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr graph sound() {
  builder b;
  const tensor_type t{dtype::f32, {1, 1, 4, 4}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  const var w{&b, b.input(t, input_role::parameter, "w")};
  const int r = b.begin(std::span(&t, 1));
  const var inner{&b, b.g.regions[std::size_t(r)].inputs[0]};
  const std::array inner_out{(inner * w).id};
  b.end(inner_out);
  const var y = x + w;           // node 6
  const var z = max_pool(y, 2);  // nodes 7 and 8
  const std::array out{y.id, z.id};
  b.end(out);
  b.g.outputs = {{1, {}}, {-1, {}}};
  return std::move(b.g);
}
static_assert(check(sound()).empty());

/// Damage, and a part of the sentence that must name it.
struct damage {
  void (*apply)(graph&);
  std::string_view expected;
};
constexpr node_id sum_node = 5;
constexpr node_id pool_node = 6;
constexpr node_id get_node = 7;

// clang-format off
constexpr damage damages[]{
  {[](graph& g) { g.regions.clear(); }, "has no main region"},
  {[](graph& g) { g.inputs.pop_back(); }, "has 2 inputs, but 1 are described"},
  {[](graph& g) { g.outputs.pop_back(); }, "has 2 outputs, but 1 are described"},
  {[](graph& g) { g.regions[1].captured.clear(); }, "region 1 has 2 inputs, but 1 are declared and 0 captured"},
  {[](graph& g) { g.regions[1].declared = 0; }, "region 1 has 2 inputs, but 0 are declared and 1 captured"},
  {[](graph& g) { g.regions[0].nodes[2] = 99; }, "%99: no such node: a region lists a node that does not exist"},
  {[](graph& g) { g.regions[0].nodes[2] = -1; }, "a region lists a node that does not exist"},
  {[](graph& g) { g.nodes[sum_node].region = 1; }, "listed in region 0 but says 1"},
  {[](graph& g) { g.nodes[sum_node].position = 0; }, "stands at 2 but says 0"},
  {[](graph& g) { g.regions[0].inputs.pop_back(); g.inputs.pop_back(); g.outputs[0].updates = -1; }, "region 0 lists 1 inputs but holds 2"},
  {[](graph& g) { g.regions[0].inputs[1] = sum_node; }, "is listed as an input but is an operation"},
  {[](graph& g) { g.regions[0].inputs[1] = 2; }, "an input is not in its region"},
  {[](graph& g) { g.regions[0].outputs[0] = 4; }, "an output of region 0 is not in it"},
  {[](graph& g) { g.nodes[sum_node].op = nullptr; }, "no operation"},
  {[](graph& g) { g.nodes[sum_node].first_operand = 1000; }, "its operands lie beyond the pool"},
  {[](graph& g) { g.nodes[sum_node].operand_count = -1; }, "its operands lie beyond the pool"},
  {[](graph& g) { g.operand_pool[std::size_t(g.nodes[sum_node].first_operand)] = 1000; }, "operand %1000 does not exist"},
  {[](graph& g) { g.operand_pool[std::size_t(g.nodes[sum_node].first_operand)] = get_node; }, "operand %7 does not precede it in region 0"},
  {[](graph& g) { g.operand_pool[std::size_t(g.nodes[sum_node].first_operand)] = sum_node; }, "operand %5 does not precede it in region 0"},
  {[](graph& g) { g.operand_pool[std::size_t(g.nodes[sum_node].first_operand)] = 4; }, "operand %4 does not precede it in region 0"},
  {[](graph& g) { g.nodes[sum_node].regions[0] = 2; }, "region 2 does not exist"},
  {[](graph& g) { g.nodes[pool_node].first_result = 5; }, "its result types lie beyond the list"},
  {[](graph& g) { g.nodes[pool_node].result_count = 0; }, "the type tuple if and only if"},
  {[](graph& g) { g.nodes[pool_node].result_count = 1; g.nodes[get_node].attributes = get_attributes{0}; }, "it has 1 results instead of 2"},
  {[](graph& g) { g.results[1].element = dtype::i8; }, "result 1 is i8[1,1,2,2], but its operands yield u8[1,1,2,2]"},
  {[](graph& g) { g.nodes[get_node].attributes = get_attributes{2}; }, "result 2 does not exist"},
  {[](graph& g) { g.nodes[get_node].attributes = get_attributes{-1}; }, "result -1 does not exist"},
  {[](graph& g) { g.nodes[get_node].type.element = dtype::f64; }, "result 0 is f32[1,1,2,2]"},
  {[](graph& g) { g.nodes[sum_node].type.shape = {16}; }, "have one shape"},
  {[](graph& g) { g.nodes[sum_node].type.element = dtype::f64; }, "its operands yield f32[1,1,4,4]"},
  {[](graph& g) { g.nodes[sum_node].operand_count = 0; }, "one to three operands"},
  {[](graph& g) { g.outputs[0].updates = 2; }, "output 0 updates input 2, which does not exist"},
  {[](graph& g) { g.outputs[1].updates = 1; }, "output 1 updates w, which is f32[1,1,4,4]"},
};
// clang-format on

constexpr bool is_found(const damage& d) {
  graph g = sound();
  d.apply(g);
  return check(g).view().find(d.expected) != std::string_view::npos;
}
constexpr std::size_t first_missed() {
  std::size_t i = 0;
  while (i < std::size(damages) && is_found(damages[i])) ++i;
  return i;
}
static_assert(first_missed() == std::size(damages));

}  // namespace

TEST_CASE("a sound graph passes, also after its live part was taken") {
  CHECK(std::string(check(sound()).view()) == "");
  CHECK(std::string(check(live_part(sound())).view()) == "");
}

TEST_CASE("each damage is found and named") {
  for (const damage& d : damages) {
    graph g = sound();
    d.apply(g);
    const std::string found(check(g).view());
    CAPTURE(found);
    CHECK(found.find(d.expected) != std::string::npos);
  }
}

TEST_CASE("the sentence shows the node at fault and its operands") {
  graph g = sound();
  g.nodes[sum_node].type.element = dtype::f64;
  CHECK(std::string(check(g).view()) ==
        "check: %5: f64[1,1,4,4] = add(%0, %1): its operands yield f32[1,1,4,4]; where "
        "%0: f32[1,1,4,4] = input(), %1: f32[1,1,4,4] = input()");
}

TEST_CASE("random damage to random graphs never reads foreign memory") {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    generator random(seed, 5);
    graph g = random_graph(seed, 8);
    auto any = [&](std::size_t n) { return std::size_t(random.below(std::uint32_t(n))); };
    const auto wild = std::int32_t(random.below(40)) - 5;
    node& n = g.nodes[any(g.nodes.size())];
    switch (any(8)) {
      case 0:
        n.first_operand = wild * 10;
        break;
      case 1:
        n.operand_count = wild > 4 ? 4 : wild;
        break;
      case 2:
        n.first_result = wild;
        break;
      case 3:
        n.result_count = wild;
        break;
      case 4:
        n.region = wild;
        break;
      case 5:
        g.operand_pool[any(g.operand_pool.size())] = wild * 3;
        break;
      case 6:
        g.regions[0].nodes[any(g.regions[0].nodes.size())] = wild * 3;
        break;
      default:
        n.regions[0] = wild;
        break;
    }
    found += !check(g).empty();
  }
  CHECK(found > 250);
}
