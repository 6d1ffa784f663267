#include <cella/graph/check.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/graph/print.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/control.hpp>
#include <sstream>

#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr tensor_type vector3{dtype::f64, {3}};
constexpr tensor_type scalar_type{dtype::f64, {}};

/// A graph of one cond, one scan or one while_loop, by choice.
constexpr void build(builder& b, int which) {
  const var x{&b, b.input(vector3, input_role::argument, "x")};
  const var k{&b, b.input(scalar_type, input_role::argument, "k")};
  var y{};
  if (which == 0)
    y = cond(
        k > 0, [&] { return x * k; }, [&] { return x; });
  if (which == 1) y = scan([&](var s, var u) { return std::pair{s + u * k, s}; }, k, x).second;
  if (which == 2) y = while_loop([&](var s) { return sum(s) < k; }, [](var s) { return s + 1; }, x);
  if (which == 3) y = checkpoint([&](var s) { return s * k; })(x);
  b.g.outputs.push_back({});
  b.end(std::array{y.id});
}

node& control_node(graph& g) {
  for (node& n : g.nodes) {
    if (n.op->kind == op_kind::control) return n;
  }
  throw error("there is no control node");
}
bool mentions(const text& t, std::string_view words) {
  return t.view().find(words) != t.view().npos;
}

struct make_scan {
  constexpr graph operator()() const {
    builder b;
    build(b, 1);
    return std::move(b.g);
  }
};
static_assert(frozen<make_scan>.sizes.regions == 2);
static_assert(frozen<make_scan>.regions[1].input_count == 3);  // state, slice, captured k
static_assert(frozen<make_scan>.region_outputs(1).size() == 2);

}  // namespace

TEST_CASE("control nodes are checked against their regions") {
  for (int which = 0; which < 4; ++which) {
    INFO("node ", which);
    builder b;
    build(b, which);
    CHECK(check(b.g).view() == "");
    graph damaged = b.g;
    control_node(damaged).regions = {-1, -1};
    CHECK_FALSE(check(damaged).empty());
    damaged = b.g;
    --control_node(damaged).operand_count;
    CHECK_FALSE(check(damaged).empty());
    damaged = b.g;
    const int r = control_node(damaged).regions[which == 2];
    damaged.regions[std::size_t(r)].outputs.clear();
    CHECK(mentions(check(damaged), "yields another number of results"));
    damaged = b.g;
    const node_id out = damaged.regions[std::size_t(r)].outputs[0];
    damaged.regions[std::size_t(r)].outputs[0] = out;
    damaged.results[std::size_t(control_node(damaged).first_result)] = {dtype::f32, {7}};
    CHECK_FALSE(check(damaged).empty());
  }
}

TEST_CASE("a predicate of another type is found") {
  builder b;
  build(b, 0);
  graph damaged = b.g;
  damaged.operand_pool[std::size_t(control_node(damaged).first_operand)] = 1;
  CHECK(mentions(check(damaged), "operand 0 is f64[] instead of bool[]"));
}

TEST_CASE("regions survive freezing, thawing and taking the live part") {
  const graph thawed = thaw(frozen<make_scan>);
  CHECK(check(thawed).view() == "");
  const graph again = live_part(thawed);
  CHECK(again.nodes.size() == thawed.nodes.size());
  value_store values;
  bindings memory;
  values.bind(again.input(0), memory.store(f64({3}, {1, 2, 3})));
  values.bind(again.input(1), memory.store(scalar(10)));
  interpret(again, values);
  CHECK(read(values.value(again.regions[0].outputs[0])).values == reals{10, 20, 40});
}

TEST_CASE("a control node is printed with its regions and options") {
  std::ostringstream out;
  print(out, live_part(make_scan{}()), {false, false});
  const std::string s = out.str();
  CHECK(s.find("scan(%k, %x, %k) {carries=1, xs=1, length=3}") != std::string::npos);
  CHECK(s.find("region 1(") != std::string::npos);
  CHECK(s.find("yield ") != std::string::npos);
}

TEST_CASE("a record holds tensors of any type; a constant record holds zeros") {
  builder b;
  const var x{&b, b.input(vector3, input_role::argument, "x")};
  const var n{&b, b.input({dtype::i64, {3, 2}}, input_role::argument, "n")};
  const tensor_type records{dtype::record, {3}};
  const node_id full = detail::pack(b, {x.id, n.id}, records);
  const detail::type_list fields{vector3, {dtype::i64, {3, 2}}};
  const ids back = detail::unpack(b, full, fields);
  const ids zeros = detail::unpack(b, constant(b, 0, records).id, fields);
  const ids doubled = detail::unpack(b, detail::add(b, full, full), fields);
  const ids same = detail::unpack(b, detail::add(b, full, constant(b, 0, records).id), fields);
  // Records move like any element.
  const var turned = reverse(var{&b, full}, 0);
  const ids reversed = detail::unpack(b, turned.id, fields);
  const var total = sum_axes({&b, full}, 1, std::source_location::current());
  const ids summed = detail::unpack(b, total.id, {scalar_type, {dtype::i64, {2}}});
  CHECK(check(b.g).view() == "");
  value_store values;
  bindings memory;
  values.bind(x.id, memory.store(f64({3}, {1, 2, 3})));
  values.bind(n.id, memory.store(i64({3, 2}, {1, 2, 3, 4, 5, 6})));
  interpret(b.g, values);
  auto value = [&](node_id id) { return read(values.value(id)).values; };
  CHECK(value(back[0]) == reals{1, 2, 3});
  CHECK(value(back[1]) == reals{1, 2, 3, 4, 5, 6});
  CHECK(value(zeros[0]) == reals{0, 0, 0});
  CHECK(value(zeros[1]) == reals{0, 0, 0, 0, 0, 0});
  CHECK(value(doubled[0]) == reals{2, 4, 6});
  CHECK(value(same[1]) == reals{1, 2, 3, 4, 5, 6});
  CHECK(value(reversed[0]) == reals{3, 2, 1});
  CHECK(value(reversed[1]) == reals{5, 6, 3, 4, 1, 2});
  CHECK(value(summed[0]) == reals{6});
  CHECK(value(summed[1]) == reals{9, 12});
}
