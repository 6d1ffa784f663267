#include <cella/graph/print.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "../passes/expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr print_options bare{.source = false, .cells = false};

constexpr op_info repeat{.name = "repeat", .kind = op_kind::control};
struct secret_options {
  std::int32_t a{};
  std::int32_t b{};
};
constexpr op_info secret{
    .name = "secret", .kind = op_kind::control, .options = &schema_of<secret_options>};

/// A layer, an update, a region and an operation that only its struct describes.
graph sample() {
  builder b;
  const var x{&b, b.input({dtype::f32, {4, 3}}, input_role::argument, "x")};
  const var w{&b, b.input({dtype::f32, {2, 3}}, input_role::parameter, "fc.weight")};
  b.current_cell(b.g.intern("fc"));
  const var y = matmul(x, w, false, true);
  b.current_cell({});
  const var z = w * 0.5;
  const tensor_type t = y.type();
  const int r = b.begin(std::span(&t, 1));
  const std::array body{exp(var{&b, b.g.regions[std::size_t(r)].inputs[0]}).id};
  b.end(body);
  const var looped = -y;
  b.g.nodes[std::size_t(looped.id)].op = &repeat;
  b.g.nodes[std::size_t(looped.id)].regions = {r, r};
  const var hidden = -looped;
  b.g.nodes[std::size_t(hidden.id)].op = &secret;
  b.g.nodes[std::size_t(hidden.id)].attributes = secret_options{0, 255};
  const std::array out{hidden.id, z.id};
  b.end(out);
  b.g.outputs = {{-1, b.g.intern("prediction")}, {1, {}}};
  return std::move(b.g);
}

std::string options_of(graph g) {
  const std::string s = to_string(g, bare);
  const std::size_t end = s.rfind("}\noutput");
  if (end == std::string::npos) return "";
  return s.substr(s.rfind('{', end), end - s.rfind('{', end) + 1);
}

}  // namespace

TEST_CASE("a graph prints inputs, nodes, regions and outputs, one a line") {
  CHECK(to_string(sample(), bare) ==
        "input %x: f32[4,3] (argument)\n"
        "input %fc.weight: f32[2,3] (parameter)\n"
        "%2: f32[4,2] = matmul(%x, %fc.weight) {ik,jk->ij}\n"
        "%3: f32[2,3] = constant() {value=0.5}\n"
        "%4: f32[2,3] = mul(%fc.weight, %3)\n"
        "%7: f32[4,2] = repeat(%2)\n"
        "  region 1(%5: f32[4,2])\n"
        "    %6: f32[4,2] = exp(%5)\n"
        "    yield %6\n"
        "  region 1 (above)\n"
        "%8: f32[4,2] = secret(%7) {b=255}\n"
        "output prediction = %8\n"
        "output %4 updates %fc.weight\n");
}

TEST_CASE("cell and source stand behind a node") {
  std::ostringstream s;
  s << sample();
  const std::string out = s.str();
  const std::size_t at = out.find("# fc print.cpp:");
  REQUIRE(at != std::string::npos);
  CHECK(out.rfind('\n', at) < out.rfind("matmul", at));
}

TEST_CASE("a node with several results prints their types") {
  const graph g = graph_of([](var x) { return max_pool(x, 2); }, {dtype::f32, {1, 1, 4, 4}});
  const std::string s = to_string(g, bare);
  CHECK(s.find("%1: (f32[1,1,2,2], u8[1,1,2,2]) = max_pool(%x) {stride=[2,2], kernel=[2,2]}\n") !=
        std::string::npos);
  CHECK(s.find("%2: f32[1,1,2,2] = get(%1) {result=0}\n") != std::string::npos);
}

// The printer knows options by name only; here it is held against the structs.
TEST_CASE("options of the library's operations are readable") {
  const tensor_type image{dtype::f32, {2, 3, 6, 6}};
  auto of = [&](auto f) { return options_of(graph_of(f, image)); };
  CHECK(of([](var x) { return full_like(x, -2.5); }) == "{value=-2.5}");
  CHECK(of([](var x) { return iota(*x.b, {dtype::i32, {5, 4}}, 1); }) == "{axis=1}");
  CHECK(of([](var x) { return broadcast_to(x, {7, 2, 3, 6, 6}); }) == "{axes=[1,2,3,4]}");
  CHECK(of([](var x) { return reshape(x, {6, 36}); }) == "");
  CHECK(of([](var x) { return transpose(x, {0, 2, 3, 1}); }) == "{permutation=[0,2,3,1]}");
  CHECK(of([](var x) { return slice(x, 2, 1, 5, 2); }) == "{start=[0,0,1,0], step=[1,1,2,1]}");
  CHECK(of([](var x) { return reverse(x, 3); }) == "{start=[0,0,0,5], step=[1,1,1,-1]}");
  CHECK(of([](var x) { return pad(x, {0, 0, 1, 2}, {0, 0, 0, 0}); }) == "{start=[0,0,1,2]}");
  CHECK(of([](var x) { return concat({x, x}, 1); }) == "{axis=1}");
  CHECK(of([](var x) { return cast(x, dtype::i8); }) == "");
  CHECK(of([](var x) { return one_hot(cast(x, dtype::i32), 9, dtype::f32); }) == "{depth=9}");
  CHECK(of([](var x) { return clamp(x, -1, 0.25); }) == "{low=-1, high=0.25}");
  CHECK(of([](var x) { return tensor_dot(x, x, {1, 3}, {1, 3}); }) == "{ijkl,mjnl->ikmn}");
  CHECK(of([](var x) {
          return conv2d(x, x, {.stride = {2, 1}, .before = {1, 1}, .after = {0, 1}});
        }) == "{stride=[2,1], before=[1,1], after=[0,1]}");
  CHECK(of([](var x) { return average_pool(x, 3, 1, 1, false); }) ==
        "{before=[1,1], after=[1,1], kernel=[3,3], count_padding=0}");
  CHECK(of([](var x) { return sum(x, {1, 3}); }) == "{axes=[1,3]}");
  CHECK(of([](var x) { return max(x, {0}); }) == "{axes=[0]}");
  CHECK(of([](var x) { return prod(x, {2}); }) == "{axes=[2]}");
  CHECK(of([](var x) { return argmax(x, 2); }) == "{axis=2}");
  CHECK(of([](var x) { return cumsum(x, 1, true); }) == "{axis=1, reverse=1}");
  CHECK(of([](var x) { return softmax(x); }) == "{axis=3}");
  CHECK(of([](var x) { return log_softmax(x, 1); }) == "{axis=1}");
  CHECK(of([](var x) { return random_uniform(x), random_uniform(x); }) == "{stream=1}");
}

TEST_CASE("the JSON form parses and holds every node, type, option and role") {
  const graph g = sample();
  std::ostringstream s;
  print_json(s, g);
  const auto j = nlohmann::json::parse(s.str());
  REQUIRE(j["nodes"].size() == g.nodes.size());
  const auto& product = j["nodes"][2];
  CHECK(product["op"] == "matmul");
  CHECK(product["operands"] == nlohmann::json::array({0, 1}));
  CHECK(product["type"]["element"] == "f32");
  CHECK(product["type"]["shape"] == nlohmann::json::array({4, 2}));
  CHECK(product["options"]["b"] == nlohmann::json::array({1, 2}));
  CHECK(product["cell"] == "fc");
  CHECK(product["line"].get<int>() > 0);
  CHECK(j["nodes"][3]["options"]["value"] == 0.5);
  CHECK(j["regions"].size() == 2);
  CHECK(j["regions"][1]["declared"] == 1);
  CHECK(j["inputs"][1]["role"] == "parameter");
  CHECK(j["inputs"][1]["name"] == "fc.weight");
  CHECK(j["outputs"][0]["name"] == "prediction");
  CHECK(j["outputs"][1]["updates"] == 1);
}

TEST_CASE("JSON escapes names and has no bare infinity") {
  builder b;
  const var x{&b, b.input({dtype::f32, {2}}, input_role::argument, "a\"b\\c\n")};
  const std::array out{(x + std::numeric_limits<double>::infinity()).id,
                       (x + std::numeric_limits<double>::quiet_NaN()).id};
  b.end(out);
  b.g.outputs.assign(2, {});
  std::ostringstream s;
  print_json(s, b.g);
  const auto j = nlohmann::json::parse(s.str());
  CHECK(j["inputs"][0]["name"] == "a\"b\\c\n");
  CHECK(j["nodes"][1]["options"]["value"] == "inf");
  CHECK(j["nodes"][3]["options"]["value"] == "nan");
}

TEST_CASE("the Graphviz form has a cluster per cell, an edge per operand with its type") {
  std::ostringstream s;
  print_dot(s, sample());
  const std::string dot = s.str();
  CHECK(dot.starts_with("digraph cella {\n"));
  CHECK(dot.ends_with("}\n"));
  CHECK(dot.find("subgraph cluster_1 {\n    label=\"fc\";\n    n2 [label=\"matmul "
                 "{ik,jk->ij}\"];\n  }\n") != std::string::npos);
  CHECK(dot.find("n0 [label=\"%x\", shape=ellipse];\n") != std::string::npos);
  CHECK(dot.find("n0 -> n2 [label=\"f32[4,3]\"];\n") != std::string::npos);
  CHECK(dot.find("n6 -> n7 [style=dashed];\n") != std::string::npos);
  CHECK(dot.find("n4 -> out1;\n") != std::string::npos);
  CHECK(dot.find("label=\"updates %fc.weight\"") != std::string::npos);
}
