#include <doctest/doctest.h>

#include <cella/graph/var.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/runtime/interpreter.hpp>
#include <string>

using namespace cella;

namespace {

/// The sentence by which f(x, y), on f32[2,3] and f32[4], is refused at run time, without the
/// place in the source; empty if it is not refused.
template <class F>
std::string fault(F f) {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 3}}, input_role::argument, "x")};
  const var y{&b, b.input({dtype::f32, {4}}, input_role::argument, "y")};
  try {
    f(x, y);
  } catch (const model_error& e) {
    const std::string s = e.what();
    const std::size_t colon = s.find(": ");
    return s.starts_with("var.cpp:") ? s.substr(colon + 2) : "no place: " + s;
  }
  return "";
}

/// The same in constant evaluation, place included.
template <class F>
constexpr text traced_fault(F f) {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 3}}, input_role::argument, "x")};
  const var y{&b, b.input({dtype::f32, {4}}, input_role::argument, "y")};
  f(x, y);
  return b.fault();
}

struct example {
  std::string (*run)();
  text (*trace)();
  std::string_view sentence;
};
template <auto F>
std::string run_fault() {
  return fault(F);
}
template <auto F>
constexpr text trace_fault() {
  return traced_fault(F);
}
template <auto F>
constexpr example refused(std::string_view sentence) {
  return {run_fault<F>, trace_fault<F>, sentence};
}

// clang-format off
constexpr example examples[]{
  refused<[](var x, var y) { (void)(x + y); }>("add: shapes do not broadcast: x is [2,3], y is [4]"),
  refused<[](var x, var y) { (void)(x * cast(y, dtype::f64)); }>("mul: element types differ: x is f32[2,3], cast result is f64[4]; convert one with cast()"),
  refused<[](var x, var y) { (void)matmul(x, y); }>("matmul: inner dimensions differ: x is [2,3], y is [4]"),
  refused<[](var x, var) { (void)reshape(x, {4, 2}); }>("reshape: x is [2,3] (6 elements), which does not fit [4,2] (8)"),
  refused<[](var x, var) { (void)transpose(x, {0, 0}); }>("transpose: the permutation does not name each axis of x [2,3] once"),
  refused<[](var x, var) { (void)slice(x, 1, 2, 5); }>("slice: [2, 5) by 1 does not lie within axis 1 of x [2,3]"),
  refused<[](var x, var) { (void)squeeze(x, 0); }>("squeeze: axis 0 of x [2,3] does not have extent 1"),
  refused<[](var x, var) { (void)sum(x, {2}); }>("sum: x [2,3] has no axis 2"),
  refused<[](var x, var y) { (void)select(x, y, y); }>("select: the condition x is f32[2,3]; it must be bool (compare with >, ==, ...)"),
  refused<[](var x, var) { (void)x.item(); }>("reading a value at compile time: x f32[2,3] has no value while the model is traced; branch with cond() or run in eager mode"),
  refused<[](var x, var) { (void)(x + parameter<3>()); }>("a parameter [3] is used outside its cell: it is not a member of the model that is traced"),
};
// clang-format on

constexpr bool same_sentence_in_constant_evaluation(const example& e) {
  const text t = e.trace();
  const std::string_view s = t.view();
  return s.starts_with("var.cpp:") && s.substr(s.find(": ") + 2) == e.sentence;
}
constexpr std::size_t first_different() {
  std::size_t i = 0;
  while (i < std::size(examples) && same_sentence_in_constant_evaluation(examples[i])) ++i;
  return i;
}
static_assert(first_different() == std::size(examples));

}  // namespace

TEST_CASE("a mistake throws the sentence that graph mode prints") {
  for (const example& e : examples) CHECK(e.run() == std::string(e.sentence));
}

TEST_CASE("the first fault stays, and what follows it is harmless") {
  constexpr text t = traced_fault([](var x, var y) {
    const var bad = x + y;
    (void)matmul(bad, reshape(bad, {7}));
  });
  CHECK(t.view().find("add: shapes do not broadcast") != std::string_view::npos);
}

TEST_CASE("the place is that of the operand in the user's source") {
  builder b;
  const var x{&b, b.input({dtype::f32, {2}}, input_role::argument, "x")};
  const int line = __LINE__ + 1;
  const node_id sum_id = (x + 1).id;
  CHECK(b.g.nodes[std::size_t(sum_id)].line == line);
  CHECK(std::string_view(b.g.nodes[std::size_t(sum_id)].file).ends_with("var.cpp"));
}

TEST_CASE("a number takes the type of the operand beside it") {
  builder b;
  const var x{&b, b.input({dtype::f16, {2}}, input_role::argument, "x")};
  CHECK((x + 1).type() == x.type());
  CHECK((2 - x).type() == x.type());
  CHECK(b.g.type(b.g.operand((x * 3).id, 1)) == x.type());
}

TEST_CASE("extents count from the last axis when negative") {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 3, 5}}, input_role::argument, "x")};
  CHECK(x.extent(0) == 2);
  CHECK(x.extent(-1) == 5);
  CHECK(x.rank() == 3);
}

TEST_CASE("eager values are read, branched on, and refused beyond their size") {
  builder b;
  eager_evaluator eager;
  b.eager = &eager;
  const var three = constant(b, 3, {dtype::f32, {}});
  CHECK((three * 2).item() == 6);
  if (three > 2)
    CHECK(true);
  else
    FAIL("3 > 2");
  CHECK(!bool(three < 2));
  const std::string what = [&] {
    try {
      (void)three.read(1);
    } catch (const error& e) { return std::string(e.what()); }
    return std::string();
  }();
  CHECK(what.ends_with(": element 1 of f32[] does not exist"));
}

TEST_CASE("a cell scope names the cell and restores the outer one") {
  struct cell {
    int member{};
  };
  builder b;
  const var x{&b, b.input({dtype::f32, {2}}, input_role::argument, "x")};
  const cell c;
  b.cells.declare(&c, &type_tag<cell>, b.g.intern("net.fc1"));
  node_id inside = no_node;
  {
    cell_scope scope(x, c);
    inside = (-x).id;
  }
  const node_id outside = (-x).id;
  CHECK(b.g.view(b.g.nodes[std::size_t(inside)].cell) == "net.fc1");
  CHECK(b.g.nodes[std::size_t(outside)].cell.size == 0);
}

TEST_CASE("a var that was never assigned is refused where it is used") {
  builder b;
  const var x{&b, b.input({dtype::f32, {3}}, input_role::argument, "x")};
  const var never{};
  CHECK_THROWS_WITH_AS(x + never,
                       doctest::Contains("a var is used that was declared and never assigned"),
                       model_error);
  CHECK_THROWS_AS(never * 2, model_error);
}
