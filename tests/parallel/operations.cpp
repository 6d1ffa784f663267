// Every operation in every way in which ranks can divide it, against one device.
#include <doctest/doctest.h>

#include <cella/parallel/search.hpp>
#include <cmath>
#include <map>
#include <string>

#include "on_ranks.hpp"
#include "support/every_operation.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

namespace {

/// The application that node `n` of another graph is, on inputs.
graph graph_of_one(const graph& from, node_id n) {
  builder b;
  graph_importer imported(b, from);
  ids in;
  for (node_id o : from.operands(n)) in.push_back(b.input(from.type(o), input_role::argument, "x"));
  const node_id made = imported.copy(n, in);
  ids out;
  const node& x = from.nodes[std::size_t(n)];
  for (int k = 0; k < std::max(1, x.result_count); ++k) {
    out.push_back(x.result_count ? b.get(made, k) : made);
    b.g.outputs.push_back({});
  }
  b.end(out);
  return std::move(b.g);
}
node_id application_in(const graph& g) {
  for (node_id n : g.regions[0].nodes)
    if (g.nodes[std::size_t(n)].op != &input_info_of) return n;
  return no_node;
}

/// The pointwise operations, each on a tensor of two axes.
void build_pointwise_operations(builder& b) {
  for (const op_info* op : all_operations::infos) {
    if (!op->pointwise) continue;
    const dtype t = op->computes == compute_class::pointwise && op->integral &&
                            op->name.find("bitwise") != op->name.npos
                        ? dtype::i32
                        : dtype::f64;
    ids in;
    for (int k = 0; k < op->operands; ++k) {
      const bool truth = (k == 0 && op == &info_of<select_op>) || op->name.starts_with("logical");
      in.push_back(b.input({truth ? dtype::boolean : t, {6, 4}}, input_role::argument, "x"));
    }
    b.emit(*op, in, op->options ? op->options->defaults : attributes{});
  }
}

/// Some in shapes that divide among more ranks, or along axes that are short above.
void build_divisible_operations(builder& b) {
  auto input = [&](shape s, dtype e = dtype::f64) {
    return var{&b, b.input({e, s}, input_role::argument, "x")};
  };
  const var m = input({6, 4}), x = input({4, 6, 3, 3}), w = input({2, 6, 1, 1});
  pad(m, {1, 0}, {2, 0}), slice(m, 1, 0, 3), reshape(m, {6, 2, 2}), reshape(m, {2, 3, 4});
  reshape(input({3, 5, 2}), {5, 6}), reshape(input({5, 6}), {3, 5, 2});
  conv2d(x, w, {}), conv2d(x, input({6, 6, 3, 3}), {.before = {1, 1}, .after = {1, 1}});
  conv2d_integer(input({4, 6, 3, 3}, dtype::u8), input({2, 6, 1, 1}, dtype::i8));
  matmul(input({4, 6}), input({6, 12})), matmul(input({4, 3, 6}), input({4, 6, 2}));
  concat(std::array{m, m}, 0), softmax(m, 1), max(x, {2, 3}), cumsum(m, 0);
  gather(m, input({6}, dtype::i64), 0), one_hot(input({6}, dtype::i64), 4, dtype::f64);
  broadcast_to(input({4}), {6, 4}), broadcast_to(input({}), {6, 4});
}

bool close(const valued_tensor& a, const valued_tensor& b) {
  if (a.type != b.type) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x != y && !(std::abs(x - y) <= 1e-12 * (1 + std::abs(x)))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("each operation on ranks is what it is on one device, however its loops are cut") {
  builder b;
  build_every_operation(b);
  build_pointwise_operations(b);
  build_divisible_operations(b);
  REQUIRE_FALSE(b.failed());
  std::mt19937 random(11);
  std::map<std::string_view, int> cuts;  // of each operation
  for (const char* line : {"a=2", "a=3", "a=2,b=2", "a=2,b=3"}) {
    const device_mesh m = parse_mesh(line);
    for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
      const node& x = b.g.nodes[std::size_t(n)];
      if (x.op == &input_info_of || x.op == &get_info_of || x.op->kind == op_kind::control ||
          x.op->traits.impure)
        continue;
      const graph one = graph_of_one(b.g, n);
      const node_id at = application_in(one);
      std::vector<valued_tensor> in;
      for (std::size_t i = 0; i < one.inputs.size(); ++i)
        in.push_back(random_tensor(one.type(one.input(int(i))), random));
      const auto expected = run_graph(one, in);
      int& count = cuts[x.op->name];
      for (const node_choice& c : choices_of(one, at, m, ~0u)) {
        if (!c.cut.is_whole()) ++count;
        assignment all = replicate(one);
        all[std::size_t(at)] = c;
        const partitioned p = partition(one, m, all);
        INFO(x.op->name << " on " << line << ", loops " << int(c.cut[0]) << " " << int(c.cut[1]));
        REQUIRE(p.fault.view() == "");
        for (const auto& outputs : run_on_ranks(one, m, all, in))
          for (std::size_t k = 0; k < expected.size(); ++k) CHECK(close(expected[k], outputs[k]));
      }
    }
  }
  // What ranks cannot divide, they compute alike.
  std::string whole;
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    if (op->kind != op_kind::control && !op->traits.impure && op->name != "random_key")
      CHECK(cuts.count(op->name) == 1);
    if (cuts.count(op->name) && cuts[op->name] == 0) (whole += op->name) += " ";
  }
  CHECK(whole ==
        "values iota non_max_suppression random_uniform random_gamma random_poisson "
        "random_permutation ");
}
