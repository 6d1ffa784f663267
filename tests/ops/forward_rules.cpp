// Rules of forward mode, held against the transposed `vjp` that takes their place where there are
// none.
#include <cella/passes/pass.hpp>
#include <cella/transform/jacobian.hpp>
#include <map>
#include <set>

#include "support/common.hpp"
#include "support/compare.hpp"
#include "support/every_operation.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// The same operation without its forward rule.
const op_info& without_rule(const op_info& op) {
  static std::map<const op_info*, op_info> all;
  op_info& copy = all[&op];
  copy = op;
  copy.jvp = nullptr;
  return copy;
}

struct application {
  const op_info* op;
  std::vector<tensor_type> types;
  attributes options;
};
std::vector<application> applications_with_rule() {
  builder b;
  build_every_operation(b);
  std::vector<application> all;
  for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
    const node& x = b.g.nodes[std::size_t(n)];
    if (!x.op->jvp) continue;
    std::vector<tensor_type> types;
    for (node_id o : b.g.operands(n)) types.push_back(b.g.type(o));
    all.push_back({x.op, types, x.attributes});
  }
  return all;
}

/// Appends the operation to the graph of x, the operands and then their tangents; returns the
/// tangents of its results, with zeros where there is none.
vars tangents(const application& a, const op_info& op, unsigned marked, const vars& x) {
  builder& b = *x[0].b;
  const std::size_t n = a.types.size();
  ids in, d;
  for (std::size_t k = 0; k < n; ++k) {
    in.push_back(x[k].id);
    d.push_back(marked >> k & 1 ? x[n + k].id : no_node);
  }
  const node_id m = b.emit(op, in, a.options);
  vars dy;
  const ids found = detail::tangents_of(b, m, d);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const bool several = b.g.nodes[std::size_t(m)].result_count > 0;
    const tensor_type t = several ? b.g.result_type(m, int(k)) : b.g.type(m);
    dy.push_back(found[k] < 0 ? constant(b, 0, t) : var{&b, found[k]});
  }
  return dy;
}

/// How many nodes an operation and its tangents take, and what they compute.
struct size {
  std::size_t traced{};     ///< nodes, all of which the compiler appends one by one
  std::size_t optimized{};  ///< nodes that passes leave
  double operations{};      ///< floating-point operations of those
};
size size_of(const application& a, const op_info& op) {
  builder b;
  b.precision = dtype::f64;
  vars x;
  for (int k = 0; k < 2; ++k)
    for (const tensor_type& t : a.types) x.push_back({&b, b.input(t, input_role::argument, "x")});
  ids out;
  for (var v : tangents(a, op, (1u << a.types.size()) - 1, x)) {
    out.push_back(v.id);
    b.g.outputs.push_back({});
  }
  b.end(out);
  const graph g = optimize_checked(b.g).graph;
  size s{b.g.nodes.size(), g.regions[0].nodes.size()};
  for (node_id n : g.regions[0].nodes) {
    const op_info& o = *g.nodes[std::size_t(n)].op;
    if (o.space) s.operations += double(loops_of(g, n).points() * o.operations_per_point);
  }
  return s;
}

}  // namespace

TEST_CASE("tangents by rule are those that the transposed vjp gives") {
  std::set<std::string_view> seen;
  for (const application& a : applications_with_rule()) {
    INFO(a.op->name);
    seen.insert(a.op->name);
    for (const bool ties : {false, true}) {
      std::vector<valued_tensor> in;
      for (int k = 0; k < 2; ++k)
        for (const tensor_type& t : a.types) {
          valued_tensor x{t, {}};
          generator random(3 + in.size(), 5);
          for (std::int64_t i = 0; i < t.size(); ++i)
            x.values.push_back(ties && k == 0 ? double(1 + i % 2) : random.uniform(0.5, 2.0));
          in.push_back(x);
        }
      for (unsigned marked = 1; marked < 1u << a.types.size(); ++marked) {
        INFO("operands ", marked);
        auto by_rule = [&](const vars& x) { return tangents(a, *a.op, marked, x); };
        auto derived = [&](const vars& x) { return tangents(a, without_rule(*a.op), marked, x); };
        const auto found = run_traced(by_rule, in), expected = run_traced(derived, in);
        REQUIRE(found.size() == expected.size());
        for (std::size_t k = 0; k < found.size(); ++k) {
          CHECK(found[k].type == expected[k].type);
          check_close(found[k].values, expected[k].values, 1e-12);
        }
      }
    }
  }
  CHECK(seen == std::set<std::string_view>{"softmax", "log_softmax", "max", "min", "batch_norm",
                                           "csr_product", "csr_entries"});
}

TEST_CASE("a rule takes fewer nodes than the transposed vjp, and no more operations") {
  for (const application& a : applications_with_rule()) {
    INFO(a.op->name);
    const size rule = size_of(a, *a.op), derived = size_of(a, without_rule(*a.op));
    CHECK(rule.traced < derived.traced);
    CHECK(rule.optimized <= derived.optimized);
    CHECK(rule.operations <= derived.operations);
  }
}
