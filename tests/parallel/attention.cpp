// Attention whose sequence is divided among ranks: a ring computes what one device does.
#include <doctest/doctest.h>

#include <cella/ops/attention.hpp>
#include <cella/parallel/divide.hpp>
#include <cella/parallel/plan_json.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/transform/gradient.hpp>
#include <sstream>

#include "on_ranks.hpp"
#include "trained_net.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

namespace {

int count(const graph& g, std::string_view op) {
  int n = 0;
  for (node_id i : g.regions[0].nodes) n += g.nodes[std::size_t(i)].op->name == op;
  return n;
}

/// attend(q, k, v), and the gradients of its inner product with a tensor; q, k and v are [2,T,12].
template <class Attend>
graph attention_graph(int places, Attend attend, bool gradient = true) {
  builder b;
  const auto input = [&](const char* name) {
    return var{&b, b.input({dtype::f64, {2, places, 12}}, input_role::argument, name)};
  };
  const list<var> in{input("q"), input("k"), input("v")};
  const var y = attend(in[0], in[1], in[2]);
  list<node_id> out{y.id};
  if (gradient)
    for (const var& d : gradients(sum(reshape(y, {2, places, 12}) * input("dy")), in))
      out.push_back(d.id);
  for (std::size_t k = 0; k < out.size(); ++k) b.g.outputs.push_back({});
  b.end(out);
  REQUIRE_FALSE(b.failed());
  return compiled_once::optimize(b.g);
}
graph heads_graph(int places, bool causal, bool gradient = true) {
  return attention_graph(
      places, [&](var q, var k, var v) { return multi_head_attention(q, k, v, 3, causal); },
      gradient);
}

std::vector<valued_tensor> random_inputs(const graph& g) {
  std::mt19937 random(5);
  std::vector<valued_tensor> values;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    values.push_back(random_tensor(g.type(g.input(int(i))), random));
    for (double& v : values.back().values) v = 6 * v - 3;
  }
  return values;
}
void check_close(const std::vector<valued_tensor>& found,
                 const std::vector<valued_tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    REQUIRE(found[k].type == expected[k].type);
    for (std::size_t i = 0; i < expected[k].values.size(); ++i)
      CHECK(found[k].values[i] == doctest::Approx(expected[k].values[i]).epsilon(1e-11));
  }
}

/// All inputs of a graph along an axis of their places.
strategy along_sequence(const graph& g, attention_kind kind) {
  strategy s{.mode = mode::semi_automatic, .attention = kind};
  for (const input_info& in : g.inputs) s.tensors.push_back({g.view(in.name), "sequence", 1});
  return s;
}

}  // namespace

TEST_CASE("attention that is put into one operation is what it was") {
  for (bool causal : {false, true}) {
    const graph g = heads_graph(7, causal), joined = join_attention(g);
    CHECK(count(joined, "attention") == 1);
    CHECK(count(joined, "attention_gradient") == 1);
    CHECK(count(joined, "softmax") == 0);
    const auto in = random_inputs(g);
    const auto expected = run_graph(g, in);
    check_close(run_graph(joined, in), expected);
    // Undivided it is taken apart again, as back ends know it.
    const partitioned whole = partition(joined, parse_mesh("a=1"), replicate(joined));
    CHECK(count(whole.graph, "softmax") == 1);
    CHECK(count(whole.graph, "matmul") == count(g, "matmul"));
    check_close(run_graph(whole.graph, in), expected);
  }
}

TEST_CASE("a ring yields the attention of one device, and its gradients") {
  for (bool causal : {false, true}) {
    for (bool gradient : {false, true}) {
      // Ten places on four ranks are 3, 3, 2 and 2.
      for (const auto& [line, places] :
           {std::pair{"sequence=2", 8}, std::pair{"sequence=4", 8}, std::pair{"sequence=3", 7},
            std::pair{"sequence=4", 10}, std::pair{"sequence=8", 9}, std::pair{"a=2,sequence=2", 6},
            std::pair{"sequence=2,a=2", 6}}) {
        INFO(line << " of " << places << " places, causal " << causal);
        const graph g = heads_graph(places, causal, gradient);
        const auto in = random_inputs(g);
        const auto expected = run_graph(g, in);
        const device_mesh m = parse_mesh(line);
        strategy s = along_sequence(g, attention_kind::ring);
        // The other axis cuts samples.
        if (m.find("a") >= 0) {
          const std::size_t inputs = s.tensors.size();
          for (std::size_t i = 0; i < inputs; ++i) s.tensors.push_back({s.tensors[i].name, "a", 0});
        }
        const divided_graph d = divide(g, m, s);
        CHECK(count(d.plan.rank.graph, "softmax") == 0);
        CHECK(count(d.plan.rank.graph, "start_exchange") > 0);
        // What is gathered are the results.
        CHECK(count(d.plan.rank.graph, "all_gather") ==
              int(expected.size()) * (m.find("a") >= 0 ? 2 : 1));
        CHECK(count(d.plan.rank.graph, "reduce_scatter") == 0);
        for (const auto& found : run_on_ranks(d.graph, m, d.plan.choices, in))
          check_close(found, expected);
      }
    }
  }
}
