// What the loops of operations say, held against what the operations compute: an element of an
// operand may change those elements of the results only that share a point with it.
#include <doctest/doctest.h>

#include <cella/graph/iteration_space.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/list.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "support/common.hpp"
#include "support/every_operation.hpp"

using namespace cella;

namespace {

using bytes = std::vector<std::byte>;
tensor_ref view(bytes& b, const tensor_type& t) { return {b.data(), t}; }

/// Elements of a tensor at a point, without the whole axes that no loop names: those are all.
std::vector<std::int64_t> elements(const iteration_space& s, int tensor, const tensor_type& t,
                                   span<const std::int64_t> point) {
  std::vector<bool> walked(std::size_t(t.rank()), false);
  for (const auto& w : s.walks)
    if (w.tensor == tensor && w.factor >= 0) walked[std::size_t(w.axis)] = true;
  shape free;
  for (int d = 0; d < t.rank(); ++d) free.push_back(walked[std::size_t(d)] ? 1 : t[d]);
  const std::int64_t first = element_at(s, tensor, t.shape, point);
  std::vector<std::int64_t> all;
  if (first < 0) return all;
  const auto stride = row_major_strides(t.shape);
  for_each_index(free, [&](std::int64_t, const multi_index& i) {
    std::int64_t e = first;
    for (std::size_t d = 0; d < std::size_t(t.rank()); ++d) e += stride[d] * i[d];
    all.push_back(e);
  });
  return all;
}

/// Pairs (operand element, result element) that the loops connect. Points that differ in places of
/// whole loops only are one; a product needs all of its tensors at a point.
std::set<std::pair<std::int64_t, std::int64_t>> connected(const iteration_space& s,
                                                          const std::vector<tensor_type>& tensors,
                                                          bool product, int operand, int result) {
  std::map<std::vector<std::int64_t>, std::pair<std::set<std::int64_t>, std::set<std::int64_t>>> at;
  for_each_point(s, [&](span<const std::int64_t> point) {
    bool inside = true;
    for (int t = 0; product && t < int(tensors.size()); ++t)
      inside &= element_at(s, t, tensors[std::size_t(t)].shape, point) >= 0;
    if (!inside) return;
    std::vector<std::int64_t> key;
    for (std::size_t f = 0; f < point.size(); ++f) key.push_back(s.factors[f].whole ? 0 : point[f]);
    auto& [from, to] = at[key];
    for (std::int64_t e : elements(s, operand, tensors[std::size_t(operand)], point))
      from.insert(e);
    for (std::int64_t e : elements(s, result, tensors[std::size_t(result)], point)) to.insert(e);
  });
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const auto& [key, sides] : at)
    for (std::int64_t e : sides.first)
      for (std::int64_t r : sides.second) pairs.insert({e, r});
  return pairs;
}

/// Checks one node by changing each element of each of its operands.
void check_loops(const graph& g, node_id n) {
  const node& x = g.nodes[std::size_t(n)];
  INFO(x.op->name);
  const iteration_space s = loops_of(g, n);
  std::vector<tensor_type> types, results;
  for (node_id o : g.operands(n)) types.push_back(g.type(o));
  for (int k = 0; k < x.result_count; ++k) results.push_back(g.result_type(n, k));
  if (results.empty()) results.push_back(x.type);
  REQUIRE(int(types.size()) == s.operands);

  std::mt19937 random(7);
  std::vector<bytes> in, out;
  for (const tensor_type& t : types) {
    in.emplace_back(std::size_t(t.bytes()));
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const double u = std::uniform_real_distribution(0.1, 0.9)(random);
      write_element(view(in.back(), t), i, is_floating(t.element) ? u : std::floor(2 * u));
    }
  }
  for (const tensor_type& t : results) out.emplace_back(std::size_t(t.bytes()));
  auto run = [&](std::vector<bytes>& to) {
    std::vector<tensor_ref> from, into;
    for (std::size_t k = 0; k < in.size(); ++k) from.push_back(view(in[k], types[k]));
    for (std::size_t k = 0; k < to.size(); ++k) into.push_back(view(to[k], results[k]));
    compute(*x.op, x.attributes, from, into);
  };
  run(out);
  std::vector<bytes> changed = out;
  std::vector<tensor_type> tensors = types;
  tensors.insert(tensors.end(), results.begin(), results.end());
  const bool product = x.op->kind == op_kind::bilinear;
  bool exact = product || x.op->computes == compute_class::movement;
  for (const iteration_space::factor& f : s.factors) exact &= !f.whole;
  for (std::size_t k = 0; k < in.size(); ++k) {
    std::vector<std::set<std::pair<std::int64_t, std::int64_t>>> allowed;
    for (std::size_t r = 0; r < results.size(); ++r)
      allowed.push_back(connected(s, tensors, product, int(k), s.result(int(r))));
    for (std::int64_t e = 0; e < types[k].size(); ++e) {
      const bytes before = in[k];
      const double v = read_element(view(in[k], types[k]), e);
      write_element(view(in[k], types[k]), e, is_floating(types[k].element) ? v + 0.375 : 1 - v);
      run(changed);
      in[k] = before;
      for (std::size_t r = 0; r < results.size(); ++r) {
        for (std::int64_t y = 0; y < results[r].size(); ++y) {
          const double now = read_element(view(changed[r], results[r]), y);
          const double then = read_element(view(out[r], results[r]), y);
          const bool differs = now != then && (now == now || then == then);
          const bool may = allowed[r].count({e, y}) != 0;
          INFO("operand " << k << ", element " << e << ", result " << r << ", element " << y);
          if (differs) CHECK(may);
          // Nothing more is connected than need be.
          if (exact && may) CHECK(differs);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("the loops of an operation connect what its computation connects") {
  builder b;
  cella::test::build_every_operation(b);
  REQUIRE_FALSE(b.failed());
  std::set<const op_info*> seen;
  for (node_id n = 0; n < node_id(b.g.nodes.size()); ++n) {
    const node& x = b.g.nodes[std::size_t(n)];
    if (!x.op->space) continue;
    seen.insert(x.op);
    // A key's numbers are hashed, and printing would be seen.
    if (x.operand_count > 0 && x.op->computes != compute_class::random && !x.op->traits.impure)
      check_loops(b.g, n);
  }
  for (const op_info* op : all_operations::infos) {
    INFO(op->name);
    // All have loops but those that run regions; pointwise ones have the same.
    CHECK((op->space != nullptr) == (op->kind != op_kind::control));
    if (!op->pointwise && op->space && op->name != "random_key") CHECK(seen.count(op) == 1);
  }
}

TEST_CASE("a convolution's groups are loops of their own, and its points are its multiplications") {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 6, 9, 9}}, input_role::argument, "x")};
  const var w{&b, b.input({dtype::f32, {9, 2, 3, 3}}, input_role::argument, "w")};
  const node_id n =
      conv2d(x, w, {.stride = {2, 2}, .before = {1, 1}, .after = {1, 1}, .groups = 3}).id;
  const iteration_space s = loops_of(b.g, n);
  CHECK(s.points() == 2 * 9 * 5 * 5 * 2 * 3 * 3);
  CHECK(s.factors[1].extent == 3);  // groups: along the channels of all three
  for (int t = 0; t < 3; ++t) CHECK(s.walks_along(t, 1));
  CHECK(s.over == combination::sum);
  CHECK(s.factor_along(0, 0) == 0);                      // images alone
  CHECK(s.factor_along(0, 1) == iteration_space::none);  // groups and channels together
}

TEST_CASE("a reshape's loops are the finest cut of both shapes") {
  auto loops = [](shape from, shape to) {
    builder b;
    const var x{&b, b.input({dtype::f32, from}, input_role::argument, "x")};
    return loops_of(b.g, reshape(x, to).id);
  };
  const iteration_space flat = loops({8, 3, 4}, {8, 12});
  CHECK(flat.factors.size() == 3);
  CHECK(flat.factor_along(0, 0) == flat.factor_along(1, 0));  // samples stay samples
  CHECK(flat.factor_along(0, 0) >= 0);
  const iteration_space mixed = loops({4, 6}, {8, 3});
  CHECK(mixed.factors.size() == 3);
  CHECK(mixed.points() == 24);
  const iteration_space none = loops({4, 6}, {6, 4});
  CHECK(none.factors.size() == 1);
  CHECK(none.factors[0].whole);
  // Of the last axis two elements would be a digit, of which there are three.
  const iteration_space begun = loops({7, 3, 5, 2}, {7, 5, 6});
  CHECK(begun.factors.size() == 1);
  CHECK(begun.factors[0].whole);
  CHECK(begun.points() == 7 * 30);
  CHECK_FALSE(begun.walks_along(0, 1));
  CHECK_FALSE(begun.walks_along(1, 1));
  CHECK(begun.factor_along(0, 0) == begun.factor_along(1, 0));
  CHECK(loops({0, 3}, {3, 0}).points() == 0);
  const iteration_space one = loops({1, 3}, {1, 3, 1});
  CHECK(one.factor_along(0, 0) == one.factor_along(1, 0));
}

TEST_CASE("indices name one axis of a table, and the rest of it is walked") {
  builder b;
  const var table{&b, b.input({dtype::f32, {100, 8}}, input_role::argument, "t")};
  const var i{&b, b.input({dtype::i64, {5}}, input_role::argument, "i")};
  const node_id n = gather(table, i, 0).id;
  const iteration_space s = loops_of(b.g, n);
  REQUIRE(s.indexed.size() == 1);
  CHECK(s.indexed[0].tensor == 0);
  CHECK(s.indexed[0].axis == 0);
  CHECK(s.elements_of(0, table.type()) == 5 * 8);
  CHECK(s.elements_of(1, i.type()) == 5);
}
