// Sequences and optional values of ONNX, which are taken apart, and loops that are unrolled. What
// single operators do is the business of ONNX's own tests.
#include <doctest/doctest.h>

#include "model_proto.hpp"
#include "run_graph.hpp"

using namespace cella;
using test::model_proto;
using test::says;
using floats = std::vector<float>;
using all_floats = std::vector<floats>;

namespace {

using shapes = std::vector<shape>;

std::vector<std::string> names(const graph& g, bool results) {
  std::vector<std::string> all;
  for (const input_info& i : g.inputs)
    if (!results) all.emplace_back(g.view(i.name));
  for (const output_info& o : g.outputs)
    if (results) all.emplace_back(g.view(o.name));
  return all;
}
/// y = the sequence x with t at the place p.
model_proto inserts() {
  model_proto m;
  m.sequence("x");
  m.value("t", {1});
  m.value("p", {}, 7);
  m.node("SequenceInsert", {"x", "t", "p"}, {"y"});
  m.result("y", {});
  return m;
}

}  // namespace

TEST_CASE("elements of a sequence are arguments and results of their own") {
  const onnx_settings settings{.values = {{"p", {{dtype::i64, {}}, test::integers({-1}).bytes}}},
                               .elements = {{"x", shapes{{2}, {1, 3}}}}};
  const graph g = inserts().read(settings);
  CHECK(names(g, false) == std::vector<std::string>{"x[0]", "x[1]", "t"});
  CHECK(names(g, true) == std::vector<std::string>{"y[0]", "y[1]", "y[2]"});
  // Before the last one, as a list of Python does.
  CHECK(test::run_graph(g, {{1, 2}, {3, 4, 5}, {9}}) == all_floats{{1, 2}, {9}, {3, 4, 5}});

  // An element may be a value that is known.
  onnx_settings known = settings;
  known.values["x[0]"] = {{dtype::f32, {2}}, std::vector<std::byte>(8)};
  CHECK(names(inserts().read(known), false) == std::vector<std::string>{"x[1]", "t"});
}

TEST_CASE("what must be known of sequences is said") {
  const onnx_tensor far{{dtype::i64, {}}, test::integers({3}).bytes};
  says(fault(inserts(), {}), "the input \"x\" is a sequence; say whether it is there");
  says(fault(inserts(), {.elements = {{"x", std::nullopt}}}), "cannot be missing");
  says(fault(inserts(), {.elements = {{"x", shapes{}}, {"t", shapes{}}}}),
       "has no sequence or optional input \"t\"");
  says(fault(inserts(), {.values = {{"p", far}}, .elements = {{"x", shapes{{1}}}}}),
       "node 0 (SequenceInsert) names place 3 of a sequence of 1");
  CHECK_THROWS_AS(inserts().read({.elements = {{"x", shapes{{1}}}}}), onnx_value_needed);

  model_proto m = inserts();
  m.node("Relu", {"y"}, {"z"});
  says(fault(m, {.values = {{"p", far}}, .elements = {{"x", shapes{{1}, {1}, {1}}}}}),
       "node 1 (Relu) takes a tensor as operand 0, which is a sequence of 4");

  m = model_proto();
  m.optional("x");
  m.node("OptionalGetElement", {"x"}, {"y"});
  m.result("y", {});
  says(fault(m, {.elements = {{"x", std::nullopt}}}), "what an optional value holds that is empty");
  says(fault(m, {.elements = {{"x", shapes{{1}, {1}}}}}), "holds one tensor");
  auto* inner = m.graph().mutable_input(0)->mutable_type()->mutable_optional_type();
  auto* t = inner->mutable_elem_type()->mutable_tensor_type();
  t->mutable_shape()->add_dim()->set_dim_value(4);
  says(fault(m, {.elements = {{"x", shapes{{5}}}}}), "has elements of another shape than [5]");
}

TEST_CASE("a branch is taken by whether an optional value is there") {
  model_proto there, missing, m(18);
  there.node("OptionalGetElement", {"scale"}, {"s"});
  there.result("s", {});
  missing.floats("one", {1}, {1});
  missing.node("Identity", {"one"}, {"s1"});
  missing.result("s1", {});
  m.value("x", {2});
  m.optional("scale");
  m.node("OptionalHasElement", {"scale"}, {"has"});
  auto& branch = m.node("If", {"has"}, {"factor"});
  model_proto::set(branch, "then_branch", there);
  model_proto::set(branch, "else_branch", missing);
  m.node("Mul", {"x", "factor"}, {"y"});
  m.result("y", {2});
  CHECK(test::run_graph(m.read({.elements = {{"scale", std::nullopt}}}), {{2, 3}}) ==
        all_floats{{2, 3}});
  CHECK(test::run_graph(m.read({.elements = {{"scale", shapes{{1}}}}}), {{2, 3}, {5}}) ==
        all_floats{{10, 15}});
}

TEST_CASE("sequences of one form may come from a branch that is taken at run time") {
  auto branch = [](const std::string& factor, bool twice) {
    model_proto m;
    m.floats(factor, {1}, {factor == "f" ? 2.0f : 3.0f});
    m.node("Mul", {"x", factor}, {factor + "x"});
    m.node("SequenceConstruct",
           twice ? std::vector<std::string>{factor + "x", "x"} : std::vector{factor + "x"},
           {factor + "s"});
    m.result(factor + "s", {});
    return m;
  };
  auto model = [&](bool other_form) {
    model_proto m;
    m.value("x", {2});
    m.value("c", {1});
    m.floats("zero", {1}, {0});
    m.node("Greater", {"c", "zero"}, {"positive"});
    auto& n = m.node("If", {"positive"}, {"y"});
    model_proto::set(n, "then_branch", branch("f", true));
    model_proto::set(n, "else_branch", branch("g", !other_form));
    m.result("y", {});
    return m;
  };
  const graph g = model(false).read();
  CHECK(test::run_graph(g, {{1, 2}, {1}}) == all_floats{{2, 4}, {1, 2}});
  CHECK(test::run_graph(g, {{1, 2}, {-1}}) == all_floats{{3, 6}, {1, 2}});
  try {
    (void)model(true).read();
    FAIL("loaded");
  } catch (const onnx_value_needed& e) { CHECK(e.input == "c"); }
}

namespace {

/// A loop of so many steps over a tensor s [n], which begins as x [2].
model_proto loop(std::int64_t steps, const model_proto& body) {
  model_proto m(13);
  m.value("x", {2});
  m.integer("steps", steps);
  model_proto::set(m.node("Loop", {"steps", "", "x"}, {"y"}), "body", body);
  m.result("y", {});
  return m;
}
model_proto loop_body() {
  model_proto m;
  m.value("i", {}, 7);
  m.value("going", {}, 9);
  m.value("s", {-1});
  m.node("Identity", {"going"}, {"goes"});
  m.value("goes", {}, 9, true);
  return m;
}

}  // namespace

TEST_CASE("loops whose steps differ in their shapes are unrolled, others stay loops") {
  model_proto grows = loop_body();
  model_proto::set(grows.node("Concat", {"s", "s"}, {"t"}), "axis", std::int64_t{0});
  grows.result("t", {});
  CHECK(test::run_graph(loop(2, grows).read(), {{1, 2}}) == all_floats{{1, 2, 1, 2, 1, 2, 1, 2}});

  // s + the sum of the first i numbers of 1, 10, 100.
  model_proto slices = loop_body();
  slices.floats("numbers", {3}, {1, 10, 100});
  slices.integer("zero", 0);
  auto& at = slices.node("Constant", {}, {"first"});
  model_proto::set(at, "value_ints", std::vector<std::int64_t>{0});
  slices.node("Unsqueeze", {"i", "first"}, {"end"});
  slices.node("Slice", {"numbers", "first", "end"}, {"some"});
  model_proto::set(slices.node("ReduceSum", {"some"}, {"sum"}), "keepdims", std::int64_t{0});
  slices.node("Add", {"s", "sum"}, {"t"});
  slices.result("t", {});
  CHECK(test::run_graph(loop(3, slices).read(), {{1, 2}}) == all_floats{{13, 14}});

  // The first step has s, each other one s twice.
  auto branches = [](bool of_one_form) {
    model_proto first, other, body = loop_body();
    first.node("Identity", {"s"}, {"a"});
    first.result("a", {});
    if (of_one_form)
      other.node("Add", {"s", "s"}, {"b"});
    else
      model_proto::set(other.node("Concat", {"s", "s"}, {"b"}), "axis", std::int64_t{0});
    other.result("b", {});
    body.integer("none", 0);
    body.node("Equal", {"i", "none"}, {"begins"});
    auto& n = body.node("If", {"begins"}, {"t"});
    model_proto::set(n, "then_branch", first);
    model_proto::set(n, "else_branch", other);
    body.result("t", {});
    return body;
  };
  CHECK(test::run_graph(loop(2, branches(false)).read(), {{1, 2}}) == all_floats{{1, 2, 1, 2}});
  const graph taken = loop(1 << 20, branches(true)).read();
  CHECK(taken.regions[0].nodes.size() < 20);
  CHECK(test::run_graph(loop(3, branches(true)).read(), {{1, 2}}) == all_floats{{4, 8}});

  model_proto same = loop_body();
  same.node("Add", {"s", "s"}, {"t"});
  same.result("t", {});
  const graph g = loop(1000, same).read();
  CHECK(g.regions[0].nodes.size() < 20);
  CHECK(test::run_graph(loop(5, same).read(), {{1, 2}}) == all_floats{{32, 64}});
}

TEST_CASE("a loop may hand out slices until a condition fails that is known") {
  model_proto body = loop_body();
  body.integer("two", 2);
  *body.graph().mutable_node(0) = {};
  auto& less = *body.graph().mutable_node(0);
  less.set_op_type("Less");
  less.add_input("i"), less.add_input("two"), less.add_output("goes");
  body.node("Add", {"s", "s"}, {"t"});
  body.node("Identity", {"t"}, {"slice"});
  body.result("t", {});
  body.result("slice", {});
  model_proto m(13);
  m.value("x", {1});
  model_proto::set(m.node("Loop", {"", "", "x"}, {"last", "slices"}), "body", body);
  m.result("last", {});
  m.result("slices", {});
  CHECK(test::run_graph(m.read(), {{1}}) == all_floats{{8}, {2, 4, 8}});
}

TEST_CASE("a loop that never ends is not unrolled for ever") {
  // Each step replaces the only element of a sequence.
  model_proto body;
  body.value("i", {}, 7);
  body.value("going", {}, 9);
  body.sequence("before");
  body.node("Identity", {"going"}, {"goes"});
  body.node("SequenceErase", {"before"}, {"none"});
  body.node("SequenceInsert", {"none", "x"}, {"after"});
  body.value("goes", {}, 9, true);
  body.result("after", {});
  model_proto m(13);
  m.value("x", {1});
  m.node("SequenceConstruct", {"x"}, {"first"});
  model_proto::set(m.node("Loop", {"", "", "first"}, {"y"}), "body", body);
  m.result("y", {});
  CHECK_THROWS_WITH_AS(m.read(), doctest::Contains("values when its loops, sequences"),
                       onnx_not_supported);
}
