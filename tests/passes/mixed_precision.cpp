#include <cella/nn/attention.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/passes/pass.hpp>
#include <cella/passes/simplify/mixed_precision.hpp>
#include <cella/transform/trace.hpp>
#include <map>
#include <string>

#include "graph_values.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct mixed_net {
  nn::conv2d<2, 4, 3> conv{};
  nn::batch_norm<4> norm{};
  nn::dense<16, 8> first{};
  nn::layer_norm<8> second{};
  nn::dense<8, 3> last{};
  constexpr var operator()(var x) const {
    x = max_pool(relu(norm(conv(x))), 2);
    x = gelu_tanh(first(flatten(x)));
    return softmax(last(second(x)));
  }
};
struct sequence_net {
  nn::self_attention<8, 2> attention{};
  constexpr var operator()(var x) const { return x + attention(x); }
};
template <class Net>
graph net_graph(const shape& s) {
  Net net{};
  return trace(net, std::array{tensor_type{dtype::f32, s}}, {true, dtype::f32});
}
/// In which type each operation yields its results.
std::map<std::string, std::string> types_of(const graph& g) {
  std::map<std::string, std::string> types;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    std::string& t = types[std::string(x.op->name)];
    const std::string own(name(x.result_count ? g.result_type(n, 0).element : x.type.element));
    if (t.find(own) == std::string::npos) t += (t.empty() ? "" : " ") + own;
  }
  return types;
}
constexpr shape image{2, 2, 6, 6};

}  // namespace

TEST_CASE("products and what follows them are of 16 bits; norms, sums and softmax of f32") {
  for (const dtype narrow : {dtype::bf16, dtype::f16}) {
    const std::string low(name(narrow));
    const graph g = optimize(mixed_precision(net_graph<mixed_net>(image), narrow),
                             std::array{pass{"cse", cse}, pass{"dce", dce}});
    CHECK(check(g).empty());
    auto types = types_of(g);
    CHECK(types["conv2d"] == low);
    CHECK(types["matmul"] == low);
    CHECK(types["relu"] == low);
    CHECK(types["gelu_tanh"] == low);
    for (const char* exact : {"batch_norm", "max_pool", "rsqrt", "sum", "square", "softmax"}) {
      CAPTURE(exact);
      CHECK(types[exact] == "f32");
    }
    for (node_id o : g.regions[0].outputs) CHECK(g.type(o).element == dtype::f32);
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      CHECK(g.type(g.input(int(i))).element == dtype::f32);
  }
}

TEST_CASE("products inside attention are of f32, those with weights are not") {
  const graph g = mixed_precision(net_graph<sequence_net>({2, 5, 8}), dtype::bf16);
  int narrow = 0, wide = 0;
  for (node_id n : g.regions[0].nodes) {
    if (!is<matmul_op>(g.nodes[std::size_t(n)])) continue;
    ++(g.type(n).element == dtype::bf16 ? narrow : wide);
  }
  CHECK(narrow == 2);
  CHECK(wide == 2);
}

TEST_CASE("in 16 bits a net computes what it does, up to their rounding") {
  const graph exact = net_graph<mixed_net>(image);
  const auto expected = values_of(exact);
  for (const auto& [narrow, limit] :
       {std::pair{dtype::bf16, 0x1p-6}, std::pair{dtype::f16, 0x1p-9}}) {
    const auto rounded = values_of(mixed_precision(net_graph<mixed_net>(image), narrow));
    CHECK(rounded != expected);
    check_close(rounded, expected, limit);
    check_close(values_of(optimize(mixed_precision(net_graph<mixed_net>(image), narrow))), rounded,
                limit);
  }
  CHECK(values_of(mixed_precision(net_graph<mixed_net>(image), dtype::f32)) == expected);
}

TEST_CASE("what is widened once more much later is converted again") {
  builder b;
  const var x{&b, b.input({dtype::bf16, {3}}, input_role::argument, "x")};
  const var wide = cast(x, dtype::f32);
  var y = wide;
  for (int i = 0; i < 50; ++i) y = sin(y);
  const var near = y * wide, far = near - wide;
  b.g.outputs.push_back({});
  b.end(std::array{far.id});
  const graph apart = casts_apart(std::move(b.g));
  CHECK(check(apart).empty());
  int casts = 0;
  for (node_id n : apart.regions[0].nodes) casts += is<cast_op>(apart.nodes[std::size_t(n)]);
  CHECK(casts == 2);
}
TEST_CASE("parts of what is converted again are taken again") {
  builder b;
  const var x{&b, b.input({dtype::bf16, {6}}, input_role::argument, "x")};
  const var part = reshape(slice(cast(x, dtype::f32), 0, 2, 6), {2, 2});
  var y = part;
  for (int i = 0; i < 50; ++i) y = sin(y);
  const var far = y * part - part;
  b.g.outputs.push_back({});
  b.end(std::array{far.id});
  const std::vector<double> expected = values_of(b.g);
  const graph apart = casts_apart(std::move(b.g));
  CHECK(check(apart).empty());
  const auto count = [&]<class Op>(const Op&) {
    int all = 0;
    for (node_id n : apart.regions[0].nodes) all += is<Op>(apart.nodes[std::size_t(n)]);
    return all;
  };
  CHECK(count(cast_op{}) == 2);
  CHECK(count(slice_op{}) == 2);
  CHECK(count(reshape_op{}) == 2);
  CHECK(values_of(apart) == expected);
}
