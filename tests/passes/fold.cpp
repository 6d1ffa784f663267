#include <cella/ops/matmul.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/passes/simplify/fold.hpp>
#include <span>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// A rule at work on the smallest graph that it applies to (or must not touch).
struct example {
  std::string_view name;
  graph (*make)();
  std::string_view folded;
};
template <auto F, dtype T = dtype::f32>
constexpr graph made() {
  return graph_of(F, {T, {2, 3}});
}
template <auto F>
constexpr graph made_image() {
  return graph_of(F, {dtype::f32, {2, 3, 4, 4}});
}
/// Four times the same.
constexpr var many(var x) { return broadcast_to(x, {4, 2, 3}); }
constexpr auto half = [](var x) { return full_like(x, 0.5); };

// clang-format off
constexpr example examples[]{
  {"x + 0", made<[](var x) { return x + 0; }>, "x"},
  {"0 + x", made<[](var x) { return 0 + x; }>, "x"},
  {"x - 0", made<[](var x) { return x - 0; }>, "x"},
  {"0 - x", made<[](var x) { return 0 - x; }>, "neg(x)"},
  {"x * 1", made<[](var x) { return x * 1; }>, "x"},
  {"x / 1", made<[](var x) { return x / 1; }>, "x"},
  {"x * 0 stays", made<[](var x) { return x * 0; }>, "mul(x, 0)"},
  {"x - x stays", made<[](var x) { return x - x; }>, "sub(x, x)"},
  {"x * -1", made<[](var x) { return x * -1; }>, "neg(x)"},
  {"-(-x)", made<[](var x) { return -(-x); }>, "x"},
  {"-(-(-x))", made<[](var x) { return -(-(-x)); }>, "neg(x)"},
  {"(x * 2) * 4", made<[](var x) { return x * 2 * 4; }>, "mul(x, 8)"},
  {"2 * (x * 4)", made<[](var x) { return 2 * (x * 4); }>, "mul(x, 8)"},
  {"x * 2 * 0.5", made<[](var x) { return x * 2 * 0.5; }>, "x"},
  {"a product that overflows stays", made<[](var x) { return x * 256 * 512; }, dtype::f16>, "mul(mul(x, 256), 512)"},
  {"integer products stay in order", made<[](var x) { return x * 2 * 4; }, dtype::i32>, "mul(mul(x, 2), 4)"},
  {"-x * 3", made<[](var x) { return -x * 3; }>, "mul(x, -3)"},
  {"-(x * 3)", made<[](var x) { return -(x * 3); }>, "mul(x, -3)"},
  {"unsigned -x * 3 stays", made<[](var x) { return -x * 3; }, dtype::u8>, "mul(neg(x), 3)"},
  {"-x * -y", made<[](var x, var y) { return -x * -y; }>, "mul(x, y)"},
  {"x / 4", made<[](var x) { return x / 4; }>, "mul(x, 1/4)"},
  {"x / 3 stays", made<[](var x) { return x / 3; }>, "div(x, 3)"},
  {"integer x / 4 stays", made<[](var x) { return x / 4; }, dtype::i32>, "div(x, 4)"},
  {"x + -y", made<[](var x, var y) { return x + -y; }>, "sub(x, y)"},
  {"-x + y", made<[](var x, var y) { return -x + y; }>, "sub(y, x)"},
  {"x - -y", made<[](var x, var y) { return x - -y; }>, "add(x, y)"},
  {"-(x - y)", made<[](var x, var y) { return -(x - y); }>, "sub(y, x)"},
  {"column times row", made<[](var x, var y) { return matmul(reshape(x, {6, 1}), reshape(y, {1, 6})); }>,
   "mul(broadcast(reshape(x)), broadcast(reshape(y)))"},
  {"rows times row stays", made<[](var x, var y) { return matmul(x, y, false, true); }>, "matmul(x, y)"},
  {"x^1", made<[](var x) { return pow(x, 1); }>, "x"},
  {"x^2", made<[](var x) { return pow(x, 2); }>, "square(x)"},
  {"x^3 stays", made<[](var x) { return pow(x, 3); }>, "pow(x, 3)"},
  {"a constant goes to the right", made<[](var x) { return 3 + x; }>, "add(x, 3)"},
  {"constants compute", made<[](var x) { return half(x) * half(x) + 2; }>, "9/4"},
  {"constants compare", made<[](var x) { return cast(half(x) > 0.25, dtype::f32); }>, "1"},
  {"division by a constant zero stays", made<[](var x) { return half(x) / 0; }>, "div(1/2, 0)"},
  {"exp of a constant stays", made<[](var x) { return exp(half(x)); }>, "exp(1/2)"},
  {"select by a true constant", made<[](var x, var y) { return select(half(x) > 0, x, y); }>, "x"},
  {"select by a false constant", made<[](var x, var y) { return select(half(x) < 0, x, y); }>, "y"},
  {"select between one", made<[](var x, var y) { return select(x > y, x, x); }>, "x"},
  {"relu twice", made<[](var x) { return relu(relu(x)); }>, "relu(x)"},
  {"stop_gradient", made<[](var x) { return stop_gradient(x); }>, "x"},
  {"reshape to the same shape", made<[](var x) { return reshape(reshape(x, {6}), {2, 3}); }>, "x"},
  {"reshape twice", made<[](var x) { return reshape(reshape(x, {6}), {3, 2}); }>, "reshape(x)"},
  {"transpose twice", made<[](var x) { return transpose(transpose(x)); }>, "x"},
  {"transpose by nothing", made<[](var x) { return transpose(x, {0, 1}); }>, "x"},
  {"two rotations of axes", made_image<[](var x) { return transpose(transpose(x, {1, 2, 3, 0}), {1, 2, 3, 0}); }>, "transpose(x)"},
  {"broadcast twice", made<[](var x) { return broadcast_to(broadcast_to(x, {4, 2, 3}), {5, 4, 2, 3}); }>, "broadcast(x)"},
  {"movement of a constant", made<[](var x) { return transpose(reshape(broadcast_to(half(x), {4, 2, 3}), {6, 4})); }>, "1/2"},
  {"the whole slice", made<[](var x) { return slice(x, 1, 0, 3); }>, "x"},
  {"slice twice", made<[](var x) { return slice(slice(x, 1, 1, 3), 1, 1, 2); }>, "slice(x)"},
  {"reverse twice", made<[](var x) { return reverse(reverse(x, 1), 1); }>, "x"},
  {"slice of a constant", made<[](var x) { return slice(half(x), 1, 1, 2); }>, "1/2"},
  {"cast of a constant truncates", made<[](var x) { return cast(full_like(x, -2.5), dtype::i32); }>, "-2"},
  {"a cast that does not fit stays", made<[](var x) { return cast(full_like(x, 300), dtype::u8); }>, "cast(300)"},
  {"sum of a constant", made<[](var x) { return sum(half(x)); }>, "3"},
  {"sum of repeated rows", made<[](var x) { return sum(broadcast_to(x, {4, 2, 3}), {0}); }>, "mul(x, 4)"},
  {"sum over own and repeated axes", made<[](var x) { return sum(broadcast_to(x, {4, 2, 3}), {0, 2}); }>, "mul(sum(x), 4)"},
  {"sum over own axes only", made<[](var x) { return sum(broadcast_to(x, {4, 2, 3}), {1}); }>, "broadcast(sum(x))"},
  {"sum over one of two repeated axes", made<[](var x) { return sum(broadcast_to(x, {5, 4, 2, 3}), {0}); }>, "broadcast(mul(x, 5))"},
  {"a linear function of zero", made_image<[](var x) { return average_pool(zeros_like(x), 2); }>, "0"},
  {"zeros in each part", made<[](var x) { return concat({zeros_like(x), zeros_like(x)}, 0); }>, "0"},
  {"a function of repeated rows", made<[](var x) { return exp(many(x)); }>, "broadcast(exp(x))"},
  {"a function of two", made<[](var x, var y) { return many(x) * many(y) + 1; }>, "broadcast(add(mul(x, y), 1))"},
  {"a constant beside repeated sums", made<[](var x) { return broadcast_to(sum(x, {0}), {2, 3}) * (x * 3); }>, "mul(x, broadcast(mul(sum(x), 3)))"},
  {"a constant before repeated sums", made<[](var x) { return x * 3 * broadcast_to(sum(x, {0}), {2, 3}); }>, "mul(x, broadcast(mul(sum(x), 3)))"},
  {"a large constant beside repeated sums stays", made<[](var x) { return x * 3000 * broadcast_to(sum(x, {0}), {2, 3}); }>, "mul(mul(x, 3000), broadcast(sum(x)))"},
  {"repeated along other axes, too", made<[](var x) { return many(x) + broadcast_to(sum(x, {0}), {4, 2, 3}); }>, "broadcast(add(x, broadcast(sum(x))))"},
  {"repeated along different axes stays", made<[](var x) { return broadcast_to(x, {2, 2, 3}) * broadcast_to(reshape(x, {2, 1, 3}), {2, 2, 3}); }>, "mul(broadcast(x), broadcast(x))"},
  {"repeated behind axes of one element", made<[](var x) { return broadcast_to(reshape(sum(x, {0}), {1, 3, 1}), {1, 3, 4}); }>, "broadcast(sum(x))"},
  {"repeated in another shape stays", made<[](var x) { return broadcast_to(reshape(x, {6}), {4, 6}); }>, "broadcast(reshape(x))"},
  {"a comparison of repeated rows stays", made<[](var x) { return cast(many(x) > 1, dtype::f32); }>, "cast(greater(broadcast(x), 1))"},
  {"reshape of repeated rows", made<[](var x) { return reshape(many(x), {2, 2, 6}); }>, "broadcast(reshape(x))"},
  {"reshape that joins repeated and own axes stays", made<[](var x) { return reshape(many(x), {8, 3}); }>, "reshape(broadcast(x))"},
  {"transpose of repeated rows", made<[](var x) { return transpose(many(x), {2, 0, 1}); }>, "broadcast(transpose(x))"},
  {"transpose that moves repeated axes only", made<[](var x) { return transpose(many(x), {1, 0, 2}); }>, "broadcast(x)"},
  {"slice of repeated rows", made<[](var x) { return slice(slice(many(x), 0, 1, 3), 2, 0, 2); }>, "broadcast(slice(x))"},
  {"repeated parts", made<[](var x, var y) { return concat({many(x), many(y), zeros_like(many(x))}, 1); }>, "broadcast(concat(x, y, 0))"},
  {"parts along the repeated axis stay", made<[](var x, var y) { return concat({many(x), many(y)}, 0); }>, "concat(broadcast(x), broadcast(y))"},
  {"a product of a repeated matrix", made<[](var x, var y) { return matmul(many(x), y, false, true); }>, "broadcast(matmul(x, y))"},
  {"a product of repeated matrices", made<[](var x, var y) { return matmul(many(x), many(y), false, true); }>, "broadcast(matmul(x, y))"},
  {"a product that sums over what is repeated stays", made<[](var x, var y) { return matmul(broadcast_to(sum(x, {1}, true), {2, 3}), y, false, true); }>, "matmul(broadcast(sum(x)), y)"},
  {"zeros in one part stay", made<[](var x) { return concat({zeros_like(x), x}, 0); }>, "concat(0, x)"},
};
// clang-format on

constexpr bool folds_as_expected(const example& e) {
  const graph g = fold(e.make());
  return check(g).empty() && formula(g).view() == e.folded;
}
constexpr std::size_t first_failure() {
  std::size_t i = 0;
  while (i < std::size(examples) && folds_as_expected(examples[i])) ++i;
  return i;
}
static_assert(first_failure() == std::size(examples));

}  // namespace

TEST_CASE("each identity rewrites what it applies to and nothing else") {
  for (const example& e : examples) {
    CAPTURE(std::string(e.name));
    const graph g = fold(e.make());
    CHECK(std::string(formula(g).view()) == std::string(e.folded));
    CHECK(std::string(check(g).view()) == "");
  }
}

TEST_CASE("every example computes the same before and after folding") {
  for (const example& e : examples) {
    CAPTURE(std::string(e.name));
    CHECK(same_values(run(e.make(), 7), run(fold(e.make()), 7)));
  }
}

TEST_CASE("each rule of the table is tried for the operation that it names") {
  for (const rule& r : fold_rules::rules) {
    CAPTURE(std::string(r.name));
    if (!r.op) continue;
    const auto candidates = fold_rules::table.candidates(*r.op);
    CHECK((candidates >> (&r - fold_rules::rules.data()) & 1) == 1);
  }
}

TEST_CASE("a folded constant is rounded to its type") {
  const auto third_of_ten = [](var x) { return full_like(x, 0.1) * 3; };
  const graph g = fold(graph_of(third_of_ten));
  const node_id out = g.regions[0].outputs[0];
  REQUIRE(is<constant_op>(g.nodes[std::size_t(out)]));
  CHECK(g.nodes[std::size_t(out)].attributes.as<constant_op::options>().value ==
        double(float(double(0.1f) * 3)));
}

TEST_CASE("random graphs and their gradients compute the same after folding") {
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const graph before = random_graph(seed);
    const graph after = fold(before);
    REQUIRE(std::string(check(after).view()) == "");
    REQUIRE(same_values(run(before, seed), run(after, seed)));
    shrunk += node_count(dce(after)) < node_count(dce(before));
  }
  CHECK(shrunk > 800);
}

TEST_CASE("bodies of control nodes are folded, and their owner is kept as it is") {
  static constexpr op_info owner{.name = "owner", .kind = op_kind::control};
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const var x{&b, b.input(t, input_role::argument, "x")};
  const var doubled = x * 2;
  const var captured = doubled + 0;
  const int r = b.begin(std::span(&t, 1));
  const var inner{&b, b.g.regions[std::size_t(r)].inputs[0]};
  const std::array body{(-(-inner) + captured * 1).id};
  b.end(body);
  const var looped = -x;
  b.g.nodes[std::size_t(looped.id)].op = &owner;
  b.g.nodes[std::size_t(looped.id)].regions = {r, -1};
  const std::array out{looped.id};
  b.end(out);
  b.g.outputs.push_back({});
  const graph g = fold(b.g);
  CHECK(std::string(check(g).view()) == "");
  const region& after = g.regions[std::size_t(r)];
  const node_id sum = after.outputs[0];
  CHECK(g.operand(sum, 0) == after.inputs[0]);
  CHECK(g.operand(sum, 1) == after.inputs[1]);
  CHECK(after.captured == ids{doubled.id});
  CHECK(g.nodes[std::size_t(g.regions[0].outputs[0])].op == &owner);
  CHECK(g.nodes[std::size_t(g.regions[0].outputs[0])].regions[0] == r);
}
