// Attention whose sequence is divided among ranks: a ring computes what one device does.
#include <doctest/doctest.h>

#include <cella/nn/grouped_attention.hpp>
#include <cella/nn/masks.hpp>
#include <cella/ops/attention.hpp>
#include <cella/parallel/divide.hpp>
#include <cella/parallel/plan_json.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/simulation.hpp>
#include <cella/transform/gradient.hpp>
#include <functional>
#include <sstream>

#include "on_ranks.hpp"
#include "trained_on_ranks.hpp"

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
    if (is_floating(values.back().type.element))
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

TEST_CASE("a GPT whose texts are divided has the losses of one device") {
  const trained_net t = gpt();
  const auto expected = losses_on_one_device(t, 4);
  for (const char* line :
       {"sequence=2", "sequence=3", "sequence=4", "sequence=8", "data=2,sequence=2"}) {
    for (attention_kind kind : {attention_kind::ring, attention_kind::gathered}) {
      INFO(line << " " << int(kind));
      strategy s{.mode = mode::semi_automatic, .tensors = {{"x", "sequence", 1}}};
      s.attention = kind;
      const device_mesh m = parse_mesh(line);
      if (m.find("data") >= 0) s.tensors.push_back({"x", "data", 0});
      const divided_graph d = divide(t.step, m, s);
      CHECK((count(d.plan.rank.graph, "start_exchange") > 0) == (kind == attention_kind::ring));
      const auto found = losses_on_ranks(t, d, 4);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
    }
  }
}

namespace {

/// Heads of queries that share keys, rotated by their places, in a window.
template <int Window>
struct grouped_gpt {
  nn::embedding<32, 32> word{};
  nn::layer_norm<32> norm{};
  nn::attention<32, 4, 2> first{.causal = true, .window = Window, .rotary_base = 100};
  nn::attention<32, 4> second{.causal = true};
  nn::dense<32, 32> head{};
  constexpr var operator()(var words) const {
    var x = word(words);
    x = x + first(norm(x));
    x = x + second(norm(x));
    return reshape(head(x), {-1, 32});
  }
};
template <int Window, dtype Compute>
trained_net grouped_net() {
  return make_net<grouped_gpt<Window>, Compute>({dtype::i32, {4, 16}}, {dtype::i32, {64}}, 32,
                                                optim::adam{});
}

}  // namespace

TEST_CASE("nets with windows and shared keys have the losses of one device, in 16 bits, too") {
  const auto check = [](const trained_net& t, double error, bool in_16_bits) {
    const auto expected = losses_on_one_device(t, 4);
    for (const char* line : {"sequence=2", "sequence=4", "data=2,sequence=2"}) {
      INFO(std::string(line));
      strategy s{.mode = mode::semi_automatic, .tensors = {{"x", "sequence", 1}}};
      s.attention = attention_kind::ring;
      const device_mesh m = parse_mesh(line);
      if (m.find("data") >= 0) s.tensors.push_back({"x", "data", 0});
      const divided_graph d = divide(t.step, m, s);
      CHECK(count(d.graph, "attention_gradient") == 2);
      // Keys, values, and what is sent of queries.
      int narrow = 0;
      for (node_id n : d.plan.rank.graph.regions[0].nodes)
        if (const node& x = d.plan.rank.graph.nodes[std::size_t(n)]; is<start_exchange_op>(x))
          narrow +=
              is_storage_only(d.plan.rank.graph.type(d.plan.rank.graph.operand(n, 0)).element);
      CHECK((narrow > 0) == in_16_bits);
      const auto found = losses_on_ranks(t, d, 4);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(error));
    }
  };
  const trained_net t = grouped_net<5, dtype::f32>();
  check(t, 1e-5, false);
  check(grouped_net<0, dtype::f32>(), 1e-5, false);
  check(grouped_net<5, dtype::bf16>(), 2e-2, true);
  // Found by the search, whatever it finds.
  const auto expected = losses_on_one_device(t, 3);
  const divided_graph d = divide(t.step, parse_mesh("a=2,b=2"), {.mode = mode::automatic});
  const auto found = losses_on_ranks(t, d, 3);
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
}

TEST_CASE("no rank of a ring has the keys of others, and all compute as much") {
  for (bool causal : {false, true}) {
    const graph g = heads_graph(64, causal);
    const divided_graph d =
        divide(g, parse_mesh("sequence=4"), along_sequence(g, attention_kind::ring));
    int messages = 0;
    for (int r = 0; r < 4; ++r) {
      const partitioned part = rank_of(d.plan, d.graph, r);
      int most = 0, pairs = 0;
      for (node_id n : part.graph.regions[0].nodes) {
        const node& x = part.graph.nodes[std::size_t(n)];
        if (x.op == &info_of<all_gather_op>) continue;  // the results
        for (int e : x.type.shape) most = std::max(most, e);
        if (is<max_op>(x)) {
          const shape scores = part.graph.type(part.graph.operand(n, 0)).shape;
          pairs += scores[2] * scores[3];
        }
        if (is<start_exchange_op>(x)) messages += x.attributes.as<exchange_options>().to >= 0;
      }
      CHECK(most == 16);
      // Causal, a rank's own block, one of another rank, and half of one whose queries two share.
      CHECK(pairs == (causal ? 5 : 8) * 16 * 16 / 2);
    }
    // Keys and values go round forward and backward, their gradients further, home. Causal, ranks
    // that compute for their own queries have keys and values sent, and send their gradients; the
    // others get queries and send results and logarithms, backward both, their gradient and means.
    const int own = 3 + 2, others = 1 + 2;
    CHECK(messages == (causal ? own * (2 + 4) + others * (3 + 5) : 4 * (2 * 3 + 2 * 3 + 2 * 4)));
    double moved = 0;
    for (const cell_cost& c : d.plan.costs()) moved += c.moved_bytes;
    const double part = 2 * 16 * 12 * 8, rows = 2 * 3 * 16 * 8, results = 4 * 3 * part;
    // The last rank has queries computed by the first, and half of them by the second.
    const double sent = part * (1.5 + 1.5 * 2 + 2 * 2) + rows * 1.5 * 2;
    CHECK(moved == results + (causal ? sent : part * (4 * 3 + 2 * 4)));
  }
}

TEST_CASE("blocks that a window hides are neither sent nor computed") {
  const graph g = attention_graph(64, [](var q, var k, var v) {
    return grouped_query_attention(q, k, v, {.heads = 3}, sliding_window_mask(q, 64, 64, 6));
  });
  const divided_graph d =
      divide(g, parse_mesh("sequence=8"), along_sequence(g, attention_kind::ring));
  for (int r = 0; r < 8; ++r) {
    const partitioned part = rank_of(d.plan, d.graph, r);
    CHECK(count(part.graph, "max") == (r == 0 ? 1 : 2));
    int sent = 0;
    for (node_id n : part.graph.regions[0].nodes)
      if (const node& x = part.graph.nodes[std::size_t(n)]; is<start_exchange_op>(x))
        sent += x.attributes.as<exchange_options>().to >= 0;
    // Keys and values to the rank behind, twice, and gradients to the one before.
    CHECK(sent == (r < 7 ? 4 : 0) + (r > 0 ? 2 : 0));
  }
  // Of twice as many keys the last ones: a rank's own block, whether it sees it or not, and those
  // of the five places before its queries.
  builder b;
  const auto input = [&](const char* name, int places) {
    return var{&b, b.input({dtype::f64, {2, places, 12}}, input_role::argument, name)};
  };
  const var q = input("q", 64), k = input("k", 128), v = input("v", 128);
  const var y =
      grouped_query_attention(q, k, v, {.heads = 3}, sliding_window_mask(q, 64, 128, 6, 64));
  b.g.outputs.push_back({});
  b.end(list<node_id>{y.id});
  const graph across = compiled_once::optimize(b.g);
  const divided_graph last =
      divide(across, parse_mesh("sequence=8"), along_sequence(across, attention_kind::ring));
  const std::array blocks{3, 2, 3, 2, 3, 2, 2, 1};
  for (int r = 0; r < 8; ++r)
    CHECK(count(rank_of(last.plan, last.graph, r).graph, "max") == blocks[std::size_t(r)]);
}

TEST_CASE("the cost of a ring is that of the pairs that are computed") {
  constexpr int places = 512;
  const graph full = heads_graph(places, false), causal = heads_graph(places, true);
  const graph alike = attention_graph(
      places, [](var q, var k, var v) { return scaled_dot_product_attention(q, k, v); });
  const graph window = attention_graph(places, [](var q, var k, var v) {
    return masked_attention(q, k, v, sliding_window_mask(q, places, places, 64));
  });
  for (int n : {2, 3, 4, 8}) {
    INFO("on " << n << " ranks");
    device_mesh m = parse_mesh("sequence=" + std::to_string(n));
    m.axes[0].latency = 0;
    m.axes[0].bytes_per_second = 1e15;
    const auto costs = [&](const graph& g) {
      const divided_graph d = divide(g, m, along_sequence(g, attention_kind::ring));
      const stated_space stated = space_of(d.graph, m, along_sequence(g, attention_kind::ring));
      return std::array{search(d.graph, m, stated.space).seconds, d.plan.seconds()};
    };
    const auto whole = costs(full), half = costs(causal), all = costs(alike), few = costs(window);
    // Before the search, and of the plan that it found.
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(half[k] / whole[k] == doctest::Approx((n + 1) / (2.0 * n)).epsilon(0.03));
      // The own block and the one before it, of which two ranks share the queries.
      CHECK(few[k] / all[k] == doctest::Approx(n == 2 ? 0.75 : 2.0 / n).epsilon(0.03));
    }
  }
  // Undivided, back ends leave out what a causal query does not see.
  const device_mesh alone = parse_mesh("sequence=1");
  const auto seconds = [&](const graph& g) {
    const graph one = join_attention(g);
    return search(one, alone, {}).seconds;
  };
  CHECK(seconds(causal) / seconds(full) == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("a ring is taken where it is cheaper, or where memory is short") {
  const graph g = heads_graph(256, false);
  const auto divided = [&](const device_mesh& m, attention_kind kind, double memory = 0) {
    return divide(g, m, along_sequence(g, kind), {.memory_bytes = memory});
  };
  const device_mesh near = parse_mesh("sequence=4");
  device_mesh far = near;
  far.axes[0].latency = 1e-3;
  const divided_graph ring = divided(near, attention_kind::ring);
  const divided_graph gathered = divided(near, attention_kind::gathered);
  CHECK(ring.plan.bytes_on_device < 0.5 * gathered.plan.bytes_on_device);
  CHECK(divided(near, attention_kind::cheapest).form.rings);
  // More messages than those of gathering cost more than they save.
  CHECK_FALSE(divided(far, attention_kind::cheapest).form.rings);
  const double little = (ring.plan.bytes_on_device + gathered.plan.bytes_on_device) / 2;
  CHECK(divided(far, attention_kind::cheapest, little).form.rings);
  CHECK_THROWS_AS(divided(near, attention_kind::gathered, little), model_error);

  std::ostringstream out;
  print_plan(out, ring.graph, ring.plan);
  CHECK(out.str().find("  ring/sequence") != std::string::npos);
  const strategy s = along_sequence(g, attention_kind::cheapest);
  const divided_graph again = divided_from_json(g, near, s, plan_to_json(ring.graph, ring.plan));
  CHECK(again.form.rings);
  CHECK(again.plan.choices == ring.plan.choices);
  CHECK(again.plan.seconds() == doctest::Approx(ring.plan.seconds()));
}

namespace {

/// A graph whose sequences [2,T,..], of keys and values [2,S,..], are inputs `q`, `k`, `v` and
/// `dy`, and what other inputs there are.
struct attention_case {
  const char* name;
  /// attend(input(name, type), q, k, v), and for which inputs besides there are gradients.
  std::function<var(const std::function<var(const char*, tensor_type)>&, var, var, var)> attend;
  int key_width = 24;
  std::string_view differentiated{};  ///< an input besides q, k and v
  int value_width = 0;                ///< 0: as that of keys
  int (*keys)(int queries) = [](int queries) { return queries; };
};
constexpr int query_width = 24, heads = 4;

graph graph_of(const attention_case& c, int places, dtype element, bool gradient = true) {
  builder b;
  list<var> in;
  const auto input = [&](const char* name, tensor_type t) {
    const var x{&b, b.input(t, input_role::argument, name)};
    if (c.differentiated == name) in.push_back(x);
    return x;
  };
  const var q = input("q", {element, {2, places, query_width}}),
            k = input("k", {element, {2, c.keys(places), c.key_width}}),
            v = input("v",
                      {element, {2, c.keys(places), c.value_width ? c.value_width : c.key_width}});
  for (const var& x : {q, k, v}) in.push_back(x);
  const var y = c.attend(input, q, k, v);
  list<node_id> out{y.id};
  if (gradient)
    for (const var& d : gradients(sum(y * input("dy", y.type())), in)) out.push_back(d.id);
  for (std::size_t i = 0; i < out.size(); ++i) b.g.outputs.push_back({});
  b.end(out);
  REQUIRE_FALSE(b.failed());
  return compiled_once::optimize(b.g);
}

constexpr attention_options grouped{.heads = heads, .key_value_heads = 2};
constexpr attention_options single{.heads = heads};

/// Every kind of attention that is put into one operation.
const std::vector<attention_case>& all_cases() {
  static const std::vector<attention_case> all{
      {"grouped",
       [](auto&, var q, var k, var v) { return grouped_query_attention(q, k, v, grouped); }, 12},
      {"multi-query, causal",
       [](auto&, var q, var k, var v) {
         return grouped_query_attention(q, k, v, {.heads = heads, .key_value_heads = 1},
                                        causal_mask(q, q.extent(1), q.extent(1)));
       },
       6},
      {"grouped, causal",
       [](auto&, var q, var k, var v) {
         return grouped_query_attention(q, k, v, grouped, causal_mask(q, q.extent(1), q.extent(1)));
       },
       12},
      {"window of 3",
       [](auto&, var q, var k, var v) {
         return grouped_query_attention(q, k, v, single,
                                        sliding_window_mask(q, q.extent(1), q.extent(1), 3));
       },
       24},
      {"grouped, window of 6",
       [](auto&, var q, var k, var v) {
         return grouped_query_attention(q, k, v, grouped,
                                        sliding_window_mask(q, q.extent(1), q.extent(1), 6));
       },
       12},
      {"both ways near",
       [](auto&, var q, var k, var v) {
         const var d = cella::detail::key_less_query(q, q.extent(1), q.extent(1), 0);
         return grouped_query_attention(q, k, v, grouped, logical_and(d < 3, d >= -4));
       },
       12},
      {"not before",
       [](auto&, var q, var k, var v) {
         const var d = cella::detail::key_less_query(q, q.extent(1), q.extent(1), 0);
         return grouped_query_attention(q, k, v, single, d >= 0);
       },
       24},
      {"padding",
       [](auto& input, var q, var k, var v) {
         const var n = input("lengths", {dtype::i64, {2}});
         // The queries of a text without words see nothing.
         return grouped_query_attention(q, k, v, single, padding_mask(3 * n, q.extent(1)));
       }},
      {"grouped, padding, causal",
       [](auto& input, var q, var k, var v) {
         const var n = input("lengths", {dtype::i64, {2}});
         return grouped_query_attention(q, k, v, grouped,
                                        logical_and(padding_mask(n + 2, q.extent(1)),
                                                    causal_mask(q, q.extent(1), q.extent(1))));
       },
       12},
      {"a mask for each query",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         const var m = input("m", {dtype::boolean, {2, 1, places, places}});
         return grouped_query_attention(q, k, v, single, m);
       }},
      {"a mask for each head and query, window",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         const var m = input("m", {dtype::boolean, {heads, places, places}});
         // Each query sees itself at least.
         const var self = equal(cella::detail::key_less_query(q, places, places, 0), 0);
         return grouped_query_attention(
             q, k, v, grouped,
             logical_and(sliding_window_mask(q, places, places, 5), logical_or(m, self)));
       },
       12},
      {"two masks",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         const var m = input("m", {dtype::boolean, {places, places}});
         const var n = input("n", {dtype::boolean, {2, 1, 1, places}});
         return grouped_query_attention(q, k, v, grouped, logical_and(m, n));
       },
       12},
      {"a bias that is computed",
       [](auto& input, var q, var k, var v) {
         return grouped_query_attention(q, k, v, single, {},
                                        -input("bias", {q.element(), {q.extent(1), q.extent(1)}}));
       }},
      {"a band in other words",
       [](auto&, var q, var k, var v) {
         const var d = cella::detail::key_less_query(q, q.extent(1), q.extent(1), 0);
         return grouped_query_attention(q, k, v, single, -d <= 1);
       }},
      {"bias of heads",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         return grouped_query_attention(q, k, v, grouped, {},
                                        input("bias", {q.element(), {heads, places, places}}));
       },
       12, "bias"},
      {"bias of heads, causal",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         return grouped_query_attention(q, k, v, single, causal_mask(q, places, places),
                                        input("bias", {q.element(), {heads, places, places}}));
       },
       24, "bias"},
      {"bias of keys, causal",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         return grouped_query_attention(q, k, v, grouped, causal_mask(q, places, places),
                                        input("bias", {q.element(), {2, 1, 1, places}}));
       },
       12, "bias"},
      {"bias of scores, window",
       [](auto& input, var q, var k, var v) {
         const int places = q.extent(1);
         return grouped_query_attention(q, k, v, grouped, sliding_window_mask(q, places, places, 4),
                                        input("bias", {q.element(), {2, heads, places, places}}));
       },
       12, "bias"},
      {"bias that is no input's gradient",
       [](auto& input, var q, var k, var v) {
         return grouped_query_attention(q, k, v, single, {},
                                        input("bias", {q.element(), {q.extent(1), 1}}));
       }},
      {"wider values",
       [](auto&, var q, var k, var v) { return grouped_query_attention(q, k, v, grouped); }, 12, "",
       20},
      {"narrower values, causal, heads side by side",
       [](auto&, var q, var k, var v) { return multi_head_attention(q, k, v, heads, true); }, 24,
       "", 8},
      {"another sequence",
       [](auto&, var q, var k, var v) { return grouped_query_attention(q, k, v, grouped); }, 12, "",
       0, [](int queries) { return queries + 3; }},
      {"a shorter sequence, wider values, heads side by side",
       [](auto&, var q, var k, var v) { return multi_head_attention(q, k, v, heads); }, 24, "", 36,
       [](int queries) { return queries - 2; }},
      {"the first half, which is gathered",
       [](auto&, var q, var k, var v) {
         const int half = q.extent(1) / 2;
         return grouped_query_attention(q, slice(k, 1, 0, half), slice(v, 1, 0, half), single);
       }},
      {"another sequence, padding",
       [](auto& input, var q, var k, var v) {
         const var n = input("lengths", {dtype::i64, {2}});
         return grouped_query_attention(q, k, v, single, padding_mask(4 * n, k.extent(1)));
       },
       24, "", 0, [](int queries) { return queries + 5; }},
      {"a longer sequence, causal",
       [](auto&, var q, var k, var v) { return multi_head_attention(q, k, v, heads, true); }, 24,
       "", 0, [](int queries) { return queries + 3; }},
      {"a shorter sequence, causal, wider values",
       [](auto&, var q, var k, var v) { return multi_head_attention(q, k, v, heads, true); }, 24,
       "", 32, [](int queries) { return queries - 2; }},
      {"the end of a sequence, causal",
       [](auto&, var q, var k, var v) {
         const int last = k.extent(1) - q.extent(1);
         return grouped_query_attention(q, k, v, grouped,
                                        causal_mask(q, q.extent(1), k.extent(1), last));
       },
       12, "", 0, [](int queries) { return 2 * queries; }},
      {"the end of a sequence, window",
       [](auto&, var q, var k, var v) {
         const int last = k.extent(1) - q.extent(1);
         return grouped_query_attention(q, k, v, single,
                                        sliding_window_mask(q, q.extent(1), k.extent(1), 4, last));
       },
       24, "", 12, [](int queries) { return 2 * queries + 1; }},
      {"another sequence, a mask for each query, bias of heads",
       [](auto& input, var q, var k, var v) {
         const int queries = q.extent(1), keys = k.extent(1);
         const var m = input("m", {dtype::boolean, {2, 1, queries, keys}});
         return grouped_query_attention(q, k, v, grouped, m,
                                        input("bias", {q.element(), {heads, queries, keys}}));
       },
       12, "bias", 20, [](int queries) { return queries + 2; }},
  };
  return all;
}

strategy along_sequence_of(const graph& g, const device_mesh& m) {
  strategy s{.mode = mode::semi_automatic, .attention = attention_kind::ring};
  for (const input_info& in : g.inputs) {
    const std::string_view name = g.view(in.name);
    if (name.size() > 2 || name == "m" || name == "n") continue;
    s.tensors.push_back({name, "sequence", 1});
    if (m.find("a") >= 0) s.tensors.push_back({name, "a", 0});
  }
  return s;
}

/// Also where both are no numbers.
void check_near(const std::vector<valued_tensor>& found, const std::vector<valued_tensor>& expected,
                double error) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    REQUIRE(found[k].type == expected[k].type);
    double scale = 1e-3, worst = 0;
    for (double e : expected[k].values)
      if (!std::isnan(e)) scale = std::max(scale, std::abs(e));
    for (std::size_t i = 0; i < expected[k].values.size(); ++i) {
      const double e = expected[k].values[i], f = found[k].values[i];
      if (std::isnan(e) || std::isnan(f))
        CHECK(std::isnan(e) == std::isnan(f));
      else
        worst = std::max(worst, std::abs(e - f));
    }
    CHECK_MESSAGE(worst <= error * scale, "result " << k);
  }
}

}  // namespace

TEST_CASE("attention of every kind is one operation, and a ring of it what one device yields") {
  for (const attention_case& c : all_cases()) {
    for (const auto& [line, places] :
         {std::pair{"sequence=2", 8}, std::pair{"sequence=4", 16}, std::pair{"sequence=4", 10},
          std::pair{"sequence=3", 7}, std::pair{"a=2,sequence=2", 6}}) {
      INFO(std::string(c.name) << ", " << std::string(line) << " of " << places << " places");
      for (bool gradient : {false, true}) {
        const graph g = graph_of(c, places, dtype::f64, gradient), one = join_attention(g);
        REQUIRE(count(one, "attention") == 1);
        CHECK(count(one, "attention_gradient") == gradient);
        CHECK(count(one, "softmax") == 0);
        const auto in = random_inputs(g);
        const auto expected = run_graph(g, in);
        check_near(run_graph(one, in), expected, 1e-12);
        const device_mesh m = parse_mesh(line);
        const divided_graph d = divide(g, m, along_sequence_of(g, m));
        CHECK(count(d.plan.rank.graph, "softmax") == 0);
        CHECK(count(d.plan.rank.graph, "start_exchange") > 0);
        for (const auto& found : run_on_ranks(d.graph, m, d.plan.choices, in))
          check_near(found, expected, 1e-12);
        // Undivided it is taken apart again.
        const partitioned whole = partition(one, parse_mesh("a=1"), replicate(one));
        CHECK(count(whole.graph, "matmul") == count(g, "matmul"));
        check_near(run_graph(whole.graph, in), expected, 1e-12);
      }
    }
  }
}

TEST_CASE("masks and biases may lie along queries or along keys") {
  const attention_case all{"mask and bias",
                           [](auto& input, var q, var k, var v) {
                             const int places = q.extent(1);
                             return grouped_query_attention(
                                 q, k, v, single,
                                 logical_and(input("m", {dtype::boolean, {2, 1, places, places}}),
                                             input("n", {dtype::boolean, {2, 1, 1, places}})),
                                 input("bias", {q.element(), {2, heads, places, places}}));
                           },
                           24, "bias"};
  const device_mesh m = parse_mesh("sequence=4");
  const graph g = graph_of(all, 10, dtype::f64);
  const auto in = random_inputs(g);
  const auto expected = run_graph(g, in);
  for (int cut : {2, 3}) {
    INFO("along axis " << cut);
    strategy s = along_sequence_of(g, m);
    for (const char* name : {"m", "bias"}) s.tensors.push_back({name, "sequence", cut});
    s.tensors.push_back({"n", "sequence", 3});
    const divided_graph d = divide(g, m, s);
    CHECK(count(d.plan.rank.graph, "start_exchange") > 0);
    for (const auto& found : run_on_ranks(d.graph, m, d.plan.choices, in))
      check_near(found, expected, 1e-12);
  }
}

TEST_CASE("a ring of 16 bits is as near to the truth as one device") {
  for (dtype element : {dtype::bf16, dtype::f16}) {
    const double unit = element == dtype::bf16 ? 0x1p-8 : 0x1p-11;
    for (const attention_case& c : all_cases()) {
      for (const auto& [line, places] : {std::pair{"sequence=2", 8}, std::pair{"sequence=4", 10}}) {
        INFO(std::string(c.name) << ", " << std::string(line) << " " << name(element));
        const graph g = graph_of(c, places, element), exact = graph_of(c, places, dtype::f64);
        CHECK(count(join_attention(g), "attention_gradient") == 1);
        auto in = random_inputs(g), precise = in;
        for (std::size_t i = 0; i < in.size(); ++i) {
          precise[i].type = exact.type(exact.input(int(i)));
          if (!is_floating(in[i].type.element)) continue;
          for (std::size_t j = 0; j < in[i].values.size(); ++j) {
            const float v = float(in[i].values[j]);
            in[i].values[j] = precise[i].values[j] =
                element == dtype::bf16 ? float(bfloat16(v)) : float(float16(v));
          }
        }
        auto expected = run_graph(exact, precise);
        for (valued_tensor& e : expected) e.type.element = element;
        const device_mesh m = parse_mesh(line);
        const divided_graph d = divide(g, m, along_sequence_of(g, m));
        CHECK(count(d.plan.rank.graph, "start_exchange") > 0);
        // One device rounds scores and weights besides.
        for (const auto& found : run_on_ranks(d.graph, m, d.plan.choices, in))
          check_near(found, expected, 4 * unit);
        check_near(run_graph(g, in), expected, 16 * unit);
        const partitioned whole =
            partition(join_attention(g), parse_mesh("a=1"), replicate(join_attention(g)));
        check_near(run_graph(whole.graph, in), expected, 16 * unit);
      }
    }
  }
}

TEST_CASE("a ring goes along one axis of the mesh") {
  const graph g = join_attention(heads_graph(8, true));
  const device_mesh m = parse_mesh("a=2,b=2");
  for (node_id n : g.regions[0].nodes) {
    if (!is_attention(g.nodes[std::size_t(n)])) continue;
    const std::int8_t place = std::int8_t(place_loop(g.type(g.operand(n, 0))));
    CHECK(cut_node(g, n, {{place, -1, -1}}, m).possible);
    CHECK(cut_node(g, n, {{0, place, -1}}, m).possible);
    CHECK_FALSE(cut_node(g, n, {{place, place, -1}}, m).possible);
  }
}

TEST_CASE("any assignment of attention computes the same") {
  std::mt19937 random(23);
  const device_mesh m = parse_mesh("a=2,b=2");
  for (trained_net (*make)() : {&gpt, &grouped_net<5, dtype::f32>}) {
    trained_net t = make();
    const auto expected = losses_on_one_device(t, 2);
    t.step = join_attention(t.step);
    REQUIRE(count(t.step, "attention_gradient") == 2);
    for (int i = 0; i < 6; ++i) {
      parallel_plan p{m, {}, replicate(t.step), 1000, {}};
      for (node_id n : t.step.regions[0].nodes) {
        const node& x = t.step.nodes[std::size_t(n)];
        if (x.op == &info_of<constant_op>) continue;
        const auto all = choices_of(t.step, n, m, ~0u);
        p.choices[std::size_t(n)] = all[random() % all.size()];
      }
      p.rank = rank_of(p, t.step, 0);
      REQUIRE(p.rank.fault.empty());
      const auto found = losses_on_ranks(t, p, 2);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
    }
  }
}

TEST_CASE("what is no ring gathers keys and values") {
  const std::vector<attention_case> others{
      {"two biases",
       [](auto& input, var q, var k, var v) {
         const tensor_type each{q.element(), {q.extent(1), k.extent(1)}};
         return matmul(softmax(matmul(q, k, false, true) * 0.5 +
                               broadcast_to(input("bias", each), {2, q.extent(1), k.extent(1)}) +
                               broadcast_to(input("more", each), {2, q.extent(1), k.extent(1)})),
                       v);
       }},
      {"weights that are read",
       [](auto&, var q, var k, var v) {
         const var weights = softmax(matmul(q, k, false, true) * 0.5);
         return matmul(weights, v) + sum(tanh(weights), {2}, true);
       }},
  };
  const device_mesh m = parse_mesh("sequence=2");
  for (const attention_case& c : others) {
    INFO(std::string(c.name));
    const graph g = graph_of(c, 8, dtype::f64);
    const divided_graph d = divide(g, m, along_sequence_of(g, m));
    const auto in = random_inputs(g);
    CHECK(count(d.plan.rank.graph, "start_exchange") == 0);
    CHECK(count(d.plan.rank.graph, "softmax") == 1);
    for (const auto& found : run_on_ranks(d.graph, m, d.plan.choices, in))
      check_near(found, run_graph(g, in), 1e-12);
  }
}

TEST_CASE("heads and places are cut along different axes of the mesh") {
  const trained_net t = gpt();
  const auto expected = losses_on_one_device(t, 3);
  const strategy s{.mode = mode::semi_automatic,
                   .tensors = {{"x", "sequence", 1},
                               {"*.qkv.*", "model", 0},
                               {"*.attention.out.weight", "model", 1}},
                   .attention = attention_kind::ring};
  const divided_graph d = divide(t.step, parse_mesh("model=2,sequence=2"), s);
  for (node_id n : d.graph.regions[0].nodes) {
    if (!is_attention(d.graph.nodes[std::size_t(n)])) continue;
    CHECK(ring_axis(d.plan, d.graph, n) == 1);
    CHECK(d.plan.choices[std::size_t(n)].cut[0] == 1);  // heads, behind samples
  }
  const auto found = losses_on_ranks(t, d, 3);
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
}

TEST_CASE("messages of a ring are predicted to go on while ranks compute") {
  const graph g = heads_graph(256, false);
  device_mesh m = parse_mesh("sequence=4");
  const strategy s = along_sequence(g, attention_kind::ring);
  const auto predicted = [&](double bytes_per_second) {
    m.axes[0].bytes_per_second = bytes_per_second;
    return simulate(divide(g, m, s).plan);
  };
  const double computing = computing_seconds(step_of(divide(g, m, s).plan), 0);
  const simulation fast = predicted(1e12), slow = predicted(1e8);
  CHECK(fast.seconds < 1.1 * computing);
  // 20 messages of 64 places of two samples, and three for each of four results.
  CHECK(slow.seconds > 32 * 2 * 64 * 12 * 8 / 1e8);
  CHECK(slow.exposed_seconds > fast.exposed_seconds);
}
