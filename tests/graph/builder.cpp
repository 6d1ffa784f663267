#include <doctest/doctest.h>

#include <cella/graph/builder.hpp>
#include <cella/graph/check.hpp>
#include <cella/graph/copy.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>
#include <span>

using namespace cella;

namespace {

constexpr tensor_type pair_type{dtype::f32, {2}};

constexpr var argument(builder& b, std::string_view label = "x") {
  return {&b, b.input(pair_type, input_role::argument, label)};
}
constexpr var begin_with_one_input(builder& b) {
  const int r = b.begin(std::span(&pair_type, 1));
  return {&b, b.g.regions[std::size_t(r)].inputs[0]};
}
constexpr void end_with(builder& b, var y) {
  const std::array out{y.id};
  b.end(out);
}
constexpr const region& region_of(const builder& b, int r) { return b.g.regions[std::size_t(r)]; }

/// main{x, k; region 1{i; region 2{j; (j + i) * k}; -i}}
constexpr void nest(builder& b) {
  const var x = argument(b, "x");
  const var k = argument(b, "k");
  const var i = begin_with_one_input(b);
  const var j = begin_with_one_input(b);
  end_with(b, (j + i) * k);
  end_with(b, -i);
  end_with(b, x);
  b.g.outputs.push_back({});
}
constexpr bool nests() {
  builder b;
  nest(b);
  return check(b.g).empty() && region_of(b, 1).captured.size() == 1 &&
         region_of(b, 2).captured.size() == 2;
}
static_assert(nests());

constexpr text fault_of_escape() {
  builder b;
  const var x = argument(b);
  const var inner = begin_with_one_input(b);
  const var kept = exp(inner);
  end_with(b, kept);
  (void)(x + kept);
  return b.fault();
}
constexpr text escape = fault_of_escape();
static_assert(escape.view().find("is used outside it; return it from the body") !=
              std::string_view::npos);

}  // namespace

TEST_CASE("an outer value that a body uses becomes an input of the body, once") {
  builder b;
  const var x = argument(b);
  const var outer = exp(x);
  const var inner = begin_with_one_input(b);
  const var y = inner * outer + outer;
  const auto& r = region_of(b, 1);
  CHECK(r.inputs.size() == 2);
  CHECK(r.declared == 1);
  CHECK(r.captured == ids{outer.id});
  const node_id product = b.g.operand(y.id, 0);
  CHECK(b.g.operand(product, 0) == inner.id);
  CHECK(b.g.operand(product, 1) == r.inputs[1]);
  CHECK(b.g.operand(y.id, 1) == r.inputs[1]);
  CHECK(b.g.type(r.inputs[1]) == outer.type());
  CHECK(b.region_of(y.id) == 1);
}

TEST_CASE("two regions deep, every region between passes the value on") {
  builder b;
  nest(b);
  const auto& middle = region_of(b, 1);
  const auto& inner = region_of(b, 2);
  // k goes through region 1; i is region 1's own input.
  REQUIRE(middle.captured.size() == 1);
  CHECK(middle.captured[0] == b.g.input(1));
  REQUIRE(inner.captured.size() == 2);
  CHECK(inner.captured[0] == middle.inputs[0]);
  CHECK(inner.captured[1] == middle.inputs[1]);
  CHECK(std::string(check(b.g).view()) == "");
}

TEST_CASE("a constant is repeated in the body, not captured") {
  builder b;
  const var x = argument(b);
  const var c = full_like(x, 3);
  const var inner = begin_with_one_input(b);
  const var y = inner * c;
  CHECK(region_of(b, 1).captured.empty());
  const node_id repeated = b.g.operand(y.id, 1);
  CHECK(repeated != c.id);
  CHECK(b.region_of(repeated) == 1);
  CHECK(is<constant_op>(b.g.nodes[std::size_t(repeated)]));
  CHECK(b.g.nodes[std::size_t(repeated)].attributes == b.g.nodes[std::size_t(c.id)].attributes);
}

TEST_CASE("an outer value that a body returns is captured, too") {
  builder b;
  const var x = argument(b);
  begin_with_one_input(b);
  end_with(b, x);
  CHECK(region_of(b, 1).outputs == ids{region_of(b, 1).inputs[1]});
  CHECK(region_of(b, 1).captured == ids{x.id});
}

TEST_CASE("a value of a closed region is refused outside it") {
  builder b;
  const var x = argument(b);
  const var inner = begin_with_one_input(b);
  const var kept = exp(inner);
  end_with(b, kept);
  CHECK_THROWS_WITH_AS((void)(x + kept),
                       "exp: a value of a closed region (a loop body or a branch) is used outside "
                       "it; return it from the body",
                       model_error);
}

TEST_CASE("a value of one branch is refused in the other") {
  builder b;
  argument(b);
  const var kept = exp(begin_with_one_input(b));
  end_with(b, kept);
  const var other = begin_with_one_input(b);
  CHECK_THROWS_AS((void)(other + kept), model_error);
}

TEST_CASE("inputs are counted per role and keep their names") {
  builder b;
  argument(b, "image");
  b.input(pair_type, input_role::parameter, "weight");
  argument(b, "label");
  REQUIRE(b.g.inputs.size() == 3);
  CHECK(b.g.inputs[2].role == input_role::argument);
  CHECK(b.g.inputs[2].index == 1);
  CHECK(b.g.inputs[1].index == 0);
  CHECK(b.g.view(b.g.inputs[2].name) == "label");
}

TEST_CASE("the random state is an input that is made on first use") {
  builder b;
  const var x = argument(b);
  CHECK(!b.bodies.draws_random_numbers());
  const var inner = begin_with_one_input(b);
  const node_id key = b.bodies.random_key();
  CHECK(b.bodies.draws_random_numbers());
  CHECK(b.bodies.random_key() == key);
  CHECK(b.region_of(key) == 0);
  CHECK(b.region_of(inner.id) == 1);
  CHECK(b.g.inputs.back().role == input_role::state);
  CHECK(b.bodies.next_random_stream() == 0);
  CHECK(b.bodies.next_random_stream() == 1);
  CHECK(x.id == 0);
}

TEST_CASE("copy applies the same operation to other operands, types inferred again") {
  builder b;
  const var x = argument(b);
  const var y{&b, b.input({dtype::f64, {5}}, input_role::argument, "y")};
  const var sum = x + x;
  const std::array in{y.id, y.id};
  const node_id copied = copy_node(b, sum.id, in);
  CHECK(b.g.type(copied) == tensor_type{dtype::f64, {5}});
  CHECK(b.g.nodes[std::size_t(copied)].line == b.g.nodes[std::size_t(sum.id)].line);
}

TEST_CASE("copy from another graph brings the cell's path along") {
  builder a;
  const var x = argument(a);
  a.current_cell(a.g.intern("net.fc1"));
  const var y = exp(x);
  builder b;
  b.g.intern("something else");
  const std::array in{argument(b).id};
  const node_id copied = graph_importer(b, a.g).copy(y.id, in);
  CHECK(b.g.view(b.g.nodes[std::size_t(copied)].cell) == "net.fc1");
}

TEST_CASE("get reads one of several results, and is the node itself where there is one") {
  builder b;
  const var x{&b, b.input({dtype::f32, {1, 1, 4, 4}}, input_role::argument, "x")};
  const node_id pool =
      emit<max_pool_op>(detail::square_window(2, 0, 0), std::source_location::current(), x).id;
  CHECK(b.g.type(pool).element == dtype::tuple);
  const node_id positions = b.get(pool, 1);
  CHECK(b.g.type(positions) == tensor_type{dtype::u8, {1, 1, 2, 2}});
  CHECK(b.get(x.id, 0) == x.id);
}

TEST_CASE("an operation with more operands than fit on the stack is typed as well") {
  builder b;
  const var x = argument(b);
  const std::vector<var> parts(9, x);
  CHECK(concat(parts, 0).shape() == shape{18});
}

TEST_CASE("keys and cells are found by address and type") {
  builder b;
  const var x = argument(b);
  const int one = 0;
  const int other = 0;
  b.cells.bind(&one, x.id);
  CHECK(b.cells.find(&one) == x.id);
  CHECK(b.cells.find(&other) == no_node);
  b.cells.declare(&one, &type_tag<int>, b.g.intern("a.b"));
  const name_ref none{};
  CHECK(b.g.view(b.cells.path_of(&one, &type_tag<int>, none)) == "a.b");
  CHECK(b.cells.path_of(&one, &type_tag<float>, none).size == 0);
}
