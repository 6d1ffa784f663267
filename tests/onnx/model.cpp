// Models of ONNX as graphs. That operators compute what ONNX says is the business of its own tests,
// which tools/onnx_nodes.cpp runs.
#include <doctest/doctest.h>

#include <cella/interop/onnx_model.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/ops/list.hpp>
#include <cella/ops/padding.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/transform/trace.hpp>
#include <fstream>
#include <numeric>

#include "model_proto.hpp"
#include "run_graph.hpp"
#include "support/scratch_directory.hpp"

using namespace cella;
using test::model_proto;
using test::says;

namespace {

std::vector<float> counted(std::size_t n, float first = 0, float step = 1) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = first + step * float(i);
  return all;
}
/// The first result of a graph of one f32 argument.
std::vector<float> run(const graph& g, std::vector<float> x) {
  return test::run_graph(g, {std::move(x)}).at(0);
}
/// y = relu(x w + b) of x [2, 3].
model_proto dense() {
  model_proto m;
  m.value("x", {2, 3});
  m.floats("w", {3, 2}, {1, -1, 0, 2, 1, 0});
  m.floats("b", {2}, {0.5f, -1});
  m.node("Gemm", {"x", "w", "b"}, {"h"}).set_name("first");
  m.node("Relu", {"h"}, {"y"});
  m.result("y", {2, 2});
  return m;
}

}  // namespace

TEST_CASE("a model becomes a graph") {
  const graph g = dense().read();
  CHECK(g.inputs.size() == 1);
  CHECK(g.view(g.inputs[0].name) == "x");
  CHECK(g.view(g.outputs[0].name) == "y");
  CHECK(g.type(g.regions[0].outputs[0]) == tensor_type{dtype::f32, {2, 2}});
  bool named = false;
  for (const node& n : g.nodes) named |= g.view(n.cell) == "first";
  CHECK(named);
  // Row 0: 1*1 + 3*1 + 0.5 = 4.5; -1 + 2*2 - 1 = 2. Row 1: -1 + 1 + 0.5 = 0.5; 1 - 4 - 1 < 0.
  CHECK(run(g, {1, 2, 3, -1, -2, 1}) == std::vector<float>{4.5f, 2, 0.5f, 0});
}

TEST_CASE("a model of a file runs on the kernels") {
  const test::scratch_directory folder("onnx_run");
  const std::filesystem::path path = folder / "net.onnx";
  std::ofstream(path, std::ios::binary) << dense().bytes();
  std::vector<float> image{1, 2, 3, -1, -2, 1};

  const graph g = compiled_once::optimize(load_onnx(path));
  loaded_program program(g, dtype::f32);
  program.bind(0, reinterpret_cast<std::byte*>(image.data()));
  program();
  const tensor_ref scores = program.result(0);

  CHECK(scores.type == tensor_type{dtype::f32, {2, 2}});
  CHECK(reinterpret_cast<const float*>(scores.data)[0] == 4.5f);
}

TEST_CASE("a model of a file, its weights in a file beside it") {
  const test::scratch_directory folder("onnx");
  model_proto m;
  m.value("x", {4});
  auto& w = m.floats("w", {4}, {});
  w.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto say = [&](const char* key, const char* value) {
    auto* e = w.add_external_data();
    e->set_key(key), e->set_value(value);
  };
  say("location", "weights.bin"), say("offset", "8"), say("length", "16");
  m.node("Mul", {"x", "w"}, {"y"});
  m.result("y", {4});
  std::ofstream(folder / "m.onnx", std::ios::binary) << m.bytes();
  const std::vector<float> stored = counted(6);
  std::ofstream(folder / "weights.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(stored.data()), 24);
  CHECK(run(load_onnx(folder / "m.onnx"), {1, 1, 2, 2}) == std::vector<float>{2, 3, 8, 10});

  std::filesystem::resize_file(folder / "weights.bin", 20);
  CHECK_THROWS_WITH_AS(load_onnx(folder / "m.onnx"), doctest::Contains("beyond the end"),
                       file_error);
  for (const char* elsewhere : {"../weights.bin", "/etc/passwd", ""}) {
    w.mutable_external_data(0)->set_value(elsewhere);
    CHECK_THROWS_WITH_AS(m.read(), doctest::Contains("beside the model"), file_error);
  }
  CHECK_THROWS_WITH_AS(load_onnx(folder / "none.onnx"), doctest::Contains("none.onnx"), file_error);
}

TEST_CASE("extents and values that a model leaves open") {
  model_proto m;
  m.value("x", {-1, 3});
  m.value("target", {2}, 7);
  m.node("Reshape", {"x", "target"}, {"y"});
  m.result("y", {});
  CHECK_THROWS_WITH_AS(m.read(), doctest::Contains("\"x.0\""), file_error);

  onnx_settings settings{.extents = {{"x.0", 2}}};
  CHECK_THROWS_AS(m.read(settings), onnx_value_needed);
  try {
    (void)m.read(settings);
  } catch (const onnx_value_needed& e) {
    CHECK(e.input == "target");
    CHECK(std::string(e.what()).find("node 0 (Reshape)") != std::string::npos);
  }
  settings.values["target"] = test::integers({3, -1});
  const graph g = m.read(settings);
  CHECK(g.inputs.size() == 1);
  CHECK(g.type(g.regions[0].outputs[0]).shape == shape{3, 2});

  settings.values["other"] = test::integers({1});
  CHECK_THROWS_WITH_AS(m.read(settings), doctest::Contains("its inputs are \"x\", \"target\""),
                       file_error);

  // The name that the model gives to the extent.
  m.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch");
  const graph h = m.read({.extents = {{"batch", 4}}, .values = {{"target", test::integers({-1})}}});
  CHECK(h.type(h.regions[0].outputs[0]).shape == shape{12});
}

TEST_CASE("shapes that are computed from shapes are known") {
  // y = reshape(x, [shape(x)[0], -1]), as exporters write it.
  model_proto m;
  m.value("x", {2, 3, 4});
  m.node("Shape", {"x"}, {"s"});
  auto& picked = m.node("Gather", {"s", "zero"}, {"n"});
  model_proto::set(picked, "axis", 0);
  auto* zero = m.graph().add_initializer();
  zero->set_name("zero"), zero->set_data_type(7), zero->add_dims(1), zero->add_int64_data(0);
  auto* rest = m.graph().add_initializer();
  rest->set_name("rest"), rest->set_data_type(7), rest->add_dims(1), rest->add_int64_data(-1);
  model_proto::set(m.node("Concat", {"n", "rest"}, {"target"}), "axis", 0);
  m.node("Reshape", {"x", "target"}, {"y"});
  m.result("y", {2, 12});
  const graph g = m.read();
  CHECK(g.type(g.regions[0].outputs[0]).shape == shape{2, 12});
}

TEST_CASE("the last window of a pool begins before the padding, and counts what is there") {
  // What ONNX Runtime 1.32 and PyTorch have.
  using ints = std::vector<std::int64_t>;
  const auto pooled = [](const std::string& op, int extent, int kernel, int pad, bool counts) {
    model_proto m(19);
    m.value("x", {1, 1, extent, extent});
    auto& n = m.node(op, {"x"}, {"y"});
    model_proto::set(n, "kernel_shape", ints{kernel, kernel});
    model_proto::set(n, "strides", ints{2, 2});
    model_proto::set(n, "pads", ints{pad, pad, pad, pad});
    model_proto::set(n, "ceil_mode", 1);
    if (counts) model_proto::set(n, "count_include_pad", 1);
    m.result("y", {1, 1, 2, 2});
    return run(m.read(), counted(std::size_t(extent) * std::size_t(extent), 1));
  };
  using numbers = std::vector<float>;
  CHECK(pooled("MaxPool", 3, 2, 1, false) == numbers{1, 3, 7, 9});
  CHECK(pooled("AveragePool", 3, 2, 1, true) == numbers{0.25f, 1.25f, 2.75f, 7});
  CHECK(pooled("AveragePool", 3, 2, 1, false) == numbers{1, 2.5f, 5.5f, 7});
  CHECK(pooled("AveragePool", 4, 3, 0, true) == numbers{6, 7.5f, 12, 13.5f});
  CHECK(pooled("AveragePool", 4, 3, 0, false) == numbers{6, 7.5f, 12, 13.5f});
}
TEST_CASE("activations of a recurrent layer take the numbers that they need, in order") {
  model_proto m(14);
  m.value("x", {2, 1, 1});
  m.floats("w", {1, 4, 1}, {0.5f, 0.4f, -0.3f, -0.7f});
  m.floats("r", {1, 4, 1}, {0.1f, 0.2f, 0.3f, -0.4f});
  auto& n = m.node("LSTM", {"x", "w", "r"}, {"y"});
  model_proto::set(n, "hidden_size", 1);
  model_proto::set(n, "activations", std::vector<std::string>{"Sigmoid", "LeakyRelu", "Tanh"});
  auto* alpha = n.add_attribute();
  alpha->set_name("activation_alpha");
  alpha->set_type(::onnx::AttributeProto::FLOATS);
  alpha->add_floats(0.3f);
  m.result("y", {2, 1, 1, 1});
  const auto y = run(m.read(), {1, -2});
  // ONNX Runtime 1.32
  CHECK(y[0] == doctest::Approx(-0.07781563));
  CHECK(y[1] == doctest::Approx(0.08906838));
}
TEST_CASE("one number is folded, too") {
  const auto folded = [](const std::string& op) {
    model_proto m(13);
    m.value("x", {});
    m.node(op, {"x"}, {"y"});
    m.result("y", {});
    return run(m.read(), {-3}).at(0);
  };
  CHECK(folded("ReduceL1") == 3);
  CHECK(folded("ReduceL2") == 3);
  CHECK(folded("ReduceSumSquare") == 9);
  CHECK(folded("ReduceLogSumExp") == -3);
  CHECK(folded("ReduceMax") == -3);
  // So is each of many where no axis is.
  model_proto m(18);
  m.value("x", {2, 2});
  model_proto::set(m.node("ReduceSumSquare", {"x"}, {"y"}), "noop_with_empty_axes", 1);
  m.result("y", {2, 2});
  CHECK(run(m.read(), {1, -2, 3, -4}) == std::vector<float>{1, 4, 9, 16});
}
TEST_CASE("pixels go to channels in either order") {
  const auto moved = [](const std::string& mode) {
    model_proto m(18);
    m.value("x", {1, 2, 2, 2});
    auto& n = m.node("SpaceToDepth", {"x"}, {"y"});
    model_proto::set(n, "blocksize", 2);
    model_proto::set(n, "mode", mode);
    m.result("y", {1, 8, 1, 1});
    return run(m.read(), counted(8));
  };
  CHECK(moved("DCR") == std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(moved("CRD") == counted(8));
}
TEST_CASE("numbers that are nearly alike are normalized") {
  model_proto m(13);
  m.value("x", {1, 1, 1, 3});
  m.node("MeanVarianceNormalization", {"x"}, {"y"});
  m.result("y", {1, 1, 1, 3});
  const auto y = run(m.read(), {4096, 4097, 4098});
  const float expected = std::sqrt(1.5f);
  CHECK(y[0] == doctest::Approx(-expected));
  CHECK(y[1] == 0);
  CHECK(y[2] == doctest::Approx(expected));
}
TEST_CASE("numbers of 16 bits are normalized, whose squares they cannot hold") {
  const auto normalized = [](const std::string& by, std::vector<float> x) {
    model_proto m(18);
    m.value("x", {1, 1, 1, 4});
    model_proto::set(m.node("Cast", {"x"}, {"narrow"}), "to", 10);  // f16
    auto& n = m.node(by, {"narrow"}, {"scaled"});
    if (by == "LRN") model_proto::set(n, "size", 1);
    model_proto::set(m.node("Cast", {"scaled"}, {"y"}), "to", 1);
    m.result("y", {1, 1, 1, 4});
    return run(m.read(), std::move(x));
  };
  for (const float size : {400.f, 0x1p-13f}) {
    const auto unit = normalized("LpNormalization", {size, -size, size, size});
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(unit[i] == doctest::Approx(i == 1 ? -0.5 : 0.5).epsilon(1e-3));
    const auto apart = normalized("MeanVarianceNormalization", {size, -size, size, -size});
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(apart[i] == doctest::Approx(i % 2 ? -1 : 1).epsilon(1e-3));
  }
  // 400 / (1 + 1e-4 400^2)^0.75
  CHECK(normalized("LRN", {400, 0, 0, 0})[0] ==
        doctest::Approx(400 / std::pow(17, 0.75)).epsilon(1e-3));
}
TEST_CASE("what is wrong with a model is said") {
  model_proto m = dense();
  m.node("NoSuchOperator", {"y"}, {"z"});
  says(
      fault(m),
      "node 2 (NoSuchOperator) applies the operator \"NoSuchOperator\", which Cella does not have");

  m = dense();
  m.node("Add", {"y", "missing"}, {"z"});
  says(fault(m), "has no value \"missing\" before it is used");

  m = dense();
  m.node("Add", {"y", "w"}, {"z"});
  says(fault(m), "node 2 (Add): add: ");
  says(fault(m), "[2,2]");

  m = dense();
  m.node("Transpose", {"y"}, {"z"}).add_attribute()->set_name("perm");
  says(fault(m), "has the attribute \"perm\", which must be INTS");

  m = dense();
  m.proto().mutable_opset_import(0)->set_domain("org.example");
  says(fault(m), "node 0 (Gemm \"first\") is of a domain whose opset the model does not say");

  m = dense();
  m.graph().mutable_initializer(0)->add_float_data(7);
  says(fault(m), "the initializer \"w\" is f32[3,2], but has 28 bytes instead of 24");

  m = dense();
  m.graph().mutable_initializer(0)->set_data_type(8);
  says(fault(m), "has elements of the type string, which Cella lacks");

  m = dense();
  m.graph().mutable_input(0)->mutable_type()->mutable_sequence_type();
  says(fault(m), "is no tensor");

  const std::string damaged = "no model at all";
  CHECK_THROWS_WITH_AS(onnx_from_bytes(std::as_bytes(std::span(damaged)), {}, "it"),
                       doctest::Contains("it is no ONNX file"), file_error);
}

// ---- the other way

namespace {

/// What a graph of one argument and its parameters computes, before it was written and after.
template <class Net>
void check_round_trip(Net& net, const shape& s, double tolerance = 1e-6) {
  const parameter_store store(net, 7);
  const graph g = trace(net, std::array{tensor_type{dtype::f32, s}});
  const onnx_values values = [&](std::string_view name, const tensor_type&) {
    const tensor_ref v = store.value(*store.find(name));
    return std::span<const std::byte>(v.data, std::size_t(v.type.bytes()));
  };
  const graph back = onnx_from_bytes(onnx_to_bytes(g, values));
  REQUIRE(back.inputs.size() == 1);
  const tensor_type result = g.type(g.regions[0].outputs[0]);
  REQUIRE(back.type(back.regions[0].outputs[0]) == result);

  std::vector<float> x = counted(std::size_t(s.size()), -0.5f, 1.0f / float(s.size()));
  loaded_program before(compiled_once::optimize(g), dtype::f32);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const auto* const p = store.find(g.view(g.inputs[i].name));
    before.bind(int(i), p ? store.value(*p).data : reinterpret_cast<std::byte*>(x.data()));
  }
  before();
  const auto* const wanted = reinterpret_cast<const float*>(before.result(0).data);
  const std::vector<float> found = run(back, x);
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(double(wanted[i])));
    difference = std::max(difference, std::abs(double(found[i]) - wanted[i]));
  }
  CHECK(largest > 0);
  CHECK(difference <= tolerance * largest);
}

}  // namespace

TEST_CASE("nets are written, and read again") {
  models::lenet5 lenet;
  check_round_trip(lenet, {2, 1, 28, 28});
  models::resnet20 resnet;
  check_round_trip(resnet, {1, 3, 32, 32});
}
TEST_CASE("a written model names what it has") {
  const test::scratch_directory folder("onnx_written");
  const std::filesystem::path path = folder / "net.onnx";

  models::lenet5 net;
  const parameter_store store(net, 1);
  save_onnx(trace(net, std::array{tensor_type{dtype::f32, {1, 1, 28, 28}}}), path, store);

  ::onnx::ModelProto m;
  std::ifstream in(path, std::ios::binary);
  REQUIRE(m.ParseFromIstream(&in));
  CHECK(m.opset_import(0).version() == 18);
  CHECK(m.graph().input(0).name() == "x");
  CHECK(m.graph().output(0).name() == "result0");
  bool weight = false, convolution = false;
  for (const auto& t : m.graph().initializer()) weight |= t.name() == "conv1.weight";
  for (const auto& n : m.graph().node())
    convolution |=
        n.name() == "conv1/conv2d" && n.op_type() == "Conv" && n.input(1) == "conv1.weight";
  CHECK(weight);
  CHECK(convolution);
}
TEST_CASE("operations that ONNX has under another form") {
  struct all_forms {
    constexpr list<var> operator()(var x) const {
      const var i = cast(x * 8, dtype::i32);
      return {rsqrt(square(x) + 1),
              expm1(x) + log1p(abs(x)) + log2(abs(x) + 1) + trunc(x * 4) + erfc(x),
              gelu(x) + gelu_tanh(x),
              clamp(x, -0.25, 0.25),
              slice(x, 1, 4, 0, -2),
              pad(x, {1, 0}, {0, 2}),
              broadcast_to(reshape(x, {3, 1, 5}), {3, 2, 5}),
              cumsum(x, 1, true, true),
              max(x, {0}) + min(x, {0}) + prod(x, {0}),
              one_hot(argmax(x, 1), 5, dtype::f32),
              one_hot(i, 5, dtype::f32),
              one_hot(cast(i, dtype::i8), 5, dtype::f32),
              cast(floor_div(i, 3), dtype::f32) + floor_div(x, 0.3),
              cast(mod(i, 3), dtype::f32) + fmod(x, 0.3),
              select(not_equal(i, 1), x, zeros_like(x)),
              cast(right_shift(cast(abs(i), dtype::u8), 1), dtype::f32),
              matmul(x, x, false, true),
              fake_quantize(x, 0.1, 3, dtype::i8),
              cast(matmul_integer(quantize(x, 0.02, 3, dtype::u8),
                                  transpose(quantize(x, 0.01, 0, dtype::i8), {1, 0}), 3),
                   dtype::f32),
              cast(conv2d_integer(reshape(quantize(x, 0.02, 3, dtype::u8), {1, 1, 3, 5}),
                                  reshape(quantize(x, 0.01, 0, dtype::i8), {1, 1, 3, 5}),
                                  {{1, 2}, {1, 0}, {2, 1}}, 3),
                   dtype::f32),
              matmul(x, x, true, false),
              tensor_dot(reshape(x, {3, 1, 5}), x, {0, 2}, {0, 1}),
              gather(x, constant(x, {std::int64_t{2}, std::int64_t{0}}), 0) + 1,
              log_softmax(x, 0)};
    }
  };
  all_forms f;
  const graph g = trace(f, std::array{tensor_type{dtype::f32, {3, 5}}});
  const graph back = onnx_from_bytes(onnx_to_bytes(g));
  std::vector<float> x = counted(15, -0.71f, 0.1f);
  auto all = [&](const graph& h) {
    value_store values;
    values.bind(h.input(0), {reinterpret_cast<std::byte*>(x.data()), h.type(h.input(0))});
    interpret(h, values);
    std::vector<std::vector<float>> results;
    for (node_id n : h.regions[0].outputs) {
      const tensor_ref v = values.value(n);
      const auto* const first = reinterpret_cast<const float*>(v.data);
      results.emplace_back(first, first + v.type.size());
    }
    return results;
  };
  const auto wanted = all(g), found = all(back);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    CAPTURE(k);
    REQUIRE(found[k].size() == wanted[k].size());
    for (std::size_t i = 0; i < wanted[k].size(); ++i)
      CHECK(found[k][i] == doctest::Approx(wanted[k][i]).epsilon(1e-5));
  }
}
TEST_CASE("what ONNX does not have is said before anything is written") {
  struct draws {
    constexpr var operator()(var x) const { return random_uniform(x); }
  };
  draws f;
  const graph g = trace(f, std::array{tensor_type{dtype::f32, {3}}});
  const test::scratch_directory folder("onnx_refused");
  CHECK_THROWS_WITH_AS(save_onnx(g, folder / "f.onnx"), doctest::Contains("save_onnx: "), error);
  CHECK_FALSE(std::filesystem::exists(folder / "f.onnx"));
  models::lenet5 net;
  CHECK_THROWS_WITH_AS(
      onnx_to_bytes(trace(net, std::array{tensor_type{dtype::f32, {1, 1, 28, 28}}})),
      doctest::Contains("conv1.weight, f32[6,1,5,5], is not there"), error);
}

TEST_CASE("the operators are sorted, and there are many") {
  const std::vector<std::string> all = onnx_operators();
  CHECK(std::ranges::is_sorted(all));
  CHECK(std::ranges::adjacent_find(all) == all.end());
  CHECK(all.size() > 150);
}
