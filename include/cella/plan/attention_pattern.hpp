// Finds attention in a graph: matmul, scale, mask, softmax, matmul, and what differentiation made
// of them. Each becomes one kernel.
#pragma once

#include <cella/plan/heads_walk.hpp>
#include <cella/plan/pattern_questions.hpp>

namespace cella {

/// Attention, and its gradient if the graph has one.
struct attention_pattern {
  bool found{}, causal{}, has_gradient{};
  node_id scale = no_node;  ///< the product with a constant
  int batch = 1, heads = 1, queries{}, keys{}, width{}, value_width{};
  heads_walk query, key, value, result;
  /// The gradient's operand and its results. `joined`: these lie side by side in one tensor, that
  /// of the slices that the operands are.
  heads_walk cotangent, query_gradient, key_gradient, value_gradient;
  /// What the gradient walks as the query, key and value: they, or what was converted again.
  std::array<node_id, 3> read_again{};
  bool joined{};
  node_id last = no_node;  ///< `joined`: the node that is that tensor
  ids members, gradient_members;
  ids unread;  ///< computed only for these kernels, which do without
};

/// Looks at graphs through `Cut`, which knows the users of nodes.
template <class Cut>
class attention_finder : pattern_questions<Cut> {
  using questions = pattern_questions<Cut>;
  using questions::at, questions::axes, questions::constant_of, questions::cut_, questions::g,
      questions::is_causal, questions::only_leads_to, questions::options, questions::other,
      questions::same, questions::same_or_again, questions::scaled;
  template <class Op>
  constexpr node_id then(node_id n) const {
    return questions::template then<Op>(n);
  }

 public:
  constexpr explicit attention_finder(const Cut& cut) : questions(cut) {}

  /// The attention whose scores are node `n`.
  constexpr attention_pattern find(node_id n) {
    p_ = {};
    if (!is<matmul_op>(at(n)) || at(n).type.rank() < 2) return {};
    scores_ = n;
    p_.found = forward() && shapes();
    if (!p_.found) return {};
    p_.has_gradient =
        gradient_ && backward() && p_.queries == p_.keys && p_.width == p_.value_width;
    // Weights that others read have to be computed anyway.
    if (gradient_ && !p_.has_gradient) return {};
    return p_;
  }

 private:
  // ---- forward: scores -> [mul] -> [select] -> softmax -> matmul

  constexpr bool forward() {
    rank_ = at(scores_).type.rank();
    node_id n = scores_;
    p_.members = {n};
    p_.scale = scaled(n, factor_);
    if (p_.scale < 0 || !(factor_ > 0)) return false;
    p_.members.push_back(n = p_.scale);
    if (const node_id seen = then<select_op>(n); seen >= 0) {
      double hidden{};
      if (g.operand(seen, 1) != n || !constant_of(g.operand(seen, 2), hidden) ||
          hidden != -std::numeric_limits<double>::infinity() || !is_causal(g.operand(seen, 0)))
        return false;
      p_.unread.push_back(g.operand(seen, 0));
      p_.members.push_back(n = seen);
      p_.causal = true;
    }
    weights_ = then<softmax_op>(n);
    if (weights_ < 0 ||
        at(weights_).attributes.template as<detail::axis_options>().axis != rank_ - 1 ||
        cut_.is_output(weights_))
      return false;
    p_.members.push_back(weights_);
    for (node_id u : cut_.users(weights_)) {
      if (is<matmul_op>(at(u))) {
        const bool by_keys = sums(u, rank_ - 1);
        node_id& m = by_keys ? result_ : value_gradient_;
        if (m >= 0 || (!by_keys && !sums(u, rank_ - 2))) return false;
        m = u;
      } else if (is<mul_op>(at(u))) {
        (first_product_ < 0 ? first_product_ : second_product_) = u;
        ++products_;
      } else {
        return false;
      }
    }
    gradient_ = value_gradient_ >= 0 || products_ > 0;
    if (result_ < 0 || (gradient_ && (value_gradient_ < 0 || products_ != 2))) return false;
    p_.members.push_back(result_);
    return true;
  }
  /// Whether the product `m` of the weights (or of something like them) sums over their axis.
  constexpr bool sums(node_id m, int axis) const {
    const int side = side_of_weights(m);
    if (side < 0) return false;
    const auto o = options(m);
    const int factor = axes(o, side)[std::size_t(axis)];
    for (std::int8_t f : o.result) {
      if (f == factor) return false;
    }
    return true;
  }
  /// Which operand of `m` has the weights' shape and is one of them.
  constexpr int side_of_weights(node_id m) const {
    const node_id a = g.operand(m, 0);
    const node_id b = g.operand(m, 1);
    if (a == b) return -1;
    if (a == weights_ || a == slopes_) return 0;
    return b == weights_ || b == slopes_ ? 1 : -1;
  }

  // ---- extents and strides

  /// How tensor `side` of product `m` is walked, seen from the tensor `matrix` of the same product
  /// that is of the weights' shape; its places are those of the weights' rows or columns.
  constexpr bool walk(node_id m, int matrix, int side, bool rows, heads_walk& w, int& width) const {
    const auto o = options(m);
    const auto& here = axes(o, side);
    const auto& there = axes(o, matrix);
    const node_id n = side < 2 ? g.operand(m, side) : m;
    const tensor_type t = g.type(n);
    const auto own = row_major_strides(t.shape);
    std::array<std::int64_t, max_rank> lead{};
    int leads = 0;
    bool has_place = false, has_width = false;
    for (int d = 0; d < t.rank(); ++d) {
      int axis = -1;
      for (int i = 0; i < rank_; ++i) {
        if (there[std::size_t(i)] == here[std::size_t(d)]) axis = i;
      }
      if (axis < 0) {
        if (has_width || own[std::size_t(d)] != 1) return false;
        has_width = true;
        width = t[d];
      } else if (axis < rank_ - 2) {
        lead[std::size_t(axis)] = own[std::size_t(d)];
        ++leads;
      } else {
        if (has_place || (axis == rank_ - 2) != rows) return false;
        has_place = true;
        w.place = own[std::size_t(d)];
      }
    }
    if (!has_width || !has_place || leads != rank_ - 2) return false;
    // All leading axes but the last one count samples.
    const shape s = g.type(weights_).shape;
    for (int i = 0; i + 2 < leads; ++i) {
      if (lead[std::size_t(i)] != lead[std::size_t(i) + 1] * s[i + 1]) return false;
    }
    if (leads >= 2) w.batch = lead[std::size_t(leads) - 2];
    if (leads >= 1) w.head = lead[std::size_t(leads) - 1];
    w.value = n;
    return true;
  }
  constexpr bool shapes() {
    const shape s = g.type(weights_).shape;
    p_.queries = s[rank_ - 2];
    p_.keys = s[rank_ - 1];
    if (rank_ > 2) p_.heads = s[rank_ - 3];
    for (int i = 0; i + 3 < rank_; ++i) p_.batch *= s[i];
    // The factor of the weights' rows tells which operand holds the queries.
    const auto o = options(scores_);
    const int row = o.result[std::size_t(rank_) - 2];
    int side = 1;
    for (std::int8_t f : o.a) {
      if (f == row) side = 0;
    }
    int width = 0;
    query_side_ = side;
    if (!walk(scores_, 2, side, true, p_.query, p_.width) ||
        !walk(scores_, 2, 1 - side, false, p_.key, width) || width != p_.width)
      return false;
    const int weights = side_of_weights(result_);
    if (!walk(result_, weights, 1 - weights, false, p_.value, p_.value_width) ||
        !walk(result_, weights, 2, true, p_.result, width))
      return false;
    query_ = p_.query.value;
    key_ = p_.key.value;
    value_ = p_.value.value;
    return look_through(p_.query, p_.width, p_.queries) &&
           look_through(p_.key, p_.width, p_.keys) &&
           look_through(p_.value, p_.value_width, p_.keys);
  }
  /// Walks the tensor that an operand is a slice of, rather than the slice.
  constexpr bool look_through(heads_walk& w, int width, int places) {
    const node_id n = w.value;
    const node_id s = cut_.source(n);
    w.value = s;
    // A slice of an input stays: the input may be replaced in place, by readers' order.
    if (!is<slice_op>(at(s)) || at(cut_.source(g.operand(s, 0))).op == &input_info_of) return true;
    heads_walk wide = w;
    if (!wide.widen(g.type(g.operand(s, 0)).shape, g.type(s).shape,
                    at(s).attributes.template as<slice_op::options>(),
                    {p_.batch, p_.heads, places, width}))
      return true;
    for (node_id i = n; i != s; i = g.operand(i, 0)) p_.unread.push_back(i);
    p_.unread.push_back(s);
    wide.value = cut_.source(g.operand(s, 0));
    w = wide;
    return true;
  }
  // ---- backward, for weights P and scores S: dP = dy v^T, dS = P (dP - sum(P dP)), masked and
  // scaled; dq = dS k, dk = dS^T q, dv = P^T dy

  constexpr bool backward() {
    if (!softmax_gradient()) return false;
    node_id n = slopes_;
    p_.gradient_members = {weight_gradient_, value_gradient_, inner_product_, sum_,
                           repeated_,        difference_,     slopes_};
    for (node_id i = cut_.only_user(sum_); i != repeated_; i = cut_.only_user(i))
      p_.gradient_members.push_back(i);
    if (p_.causal) {
      const node_id seen = then<select_op>(n);
      double hidden = 1;
      // Each select has a comparison of its own (masks_apart.hpp).
      if (seen < 0 || !is_causal(g.operand(seen, 0)) || g.operand(seen, 1) != n ||
          !constant_of(g.operand(seen, 2), hidden) || hidden != 0)
        return false;
      p_.unread.push_back(g.operand(seen, 0));
      p_.gradient_members.push_back(n = seen);
    }
    double factor{};
    n = scaled(n, factor);
    if (n < 0 || factor != factor_ || cut_.is_output(n)) return false;
    p_.gradient_members.push_back(slopes_ = n);
    node_id by_query = no_node, by_key = no_node;
    if (cut_.users(slopes_).size() != 2) return false;
    for (node_id u : cut_.users(slopes_)) {
      if (!is<matmul_op>(at(u))) return false;
      (sums(u, rank_ - 1) ? by_query : by_key) = u;
    }
    if (by_query < 0 || by_key < 0 || !sums(by_key, rank_ - 2)) return false;
    const int side = side_of_weights(by_query), key_side = side_of_weights(by_key);
    const int value_side = side_of_weights(value_gradient_);
    const node_id key = g.operand(by_query, 1 - side), query = g.operand(by_key, 1 - key_side);
    const node_id value = weight_operand(false);
    if (!same_or_again(key, key_) || !same_or_again(query, query_) || !same_or_again(value, value_))
      return false;
    p_.gradient_members.push_back(by_query);
    p_.gradient_members.push_back(by_key);
    int width = 0;
    const node_id dy = g.operand(value_gradient_, 1 - value_side);
    if (!walk(by_query, side, 2, true, p_.query_gradient, width) || width != p_.width ||
        !walk(by_key, key_side, 2, false, p_.key_gradient, width) || width != p_.width ||
        !walk(value_gradient_, value_side, 2, false, p_.value_gradient, width) ||
        !walk(value_gradient_, value_side, 1 - value_side, true, p_.cotangent, width) ||
        width != p_.value_width || !same(weight_operand(true), dy))
      return false;
    p_.cotangent.value = cut_.source(dy);
    p_.read_again = {read_again(p_.query, query_, query), read_again(p_.key, key_, key),
                     read_again(p_.value, value_, value)};
    join();
    return true;
  }
  /// What is walked in place of `w`, which is operand `first` of the scores or of the result, where
  /// the gradient has operand `n`.
  constexpr node_id read_again(const heads_walk& w, node_id first, node_id n) {
    if (same(first, n)) return w.value;
    const node_id s = cut_.source(n);
    if (w.value == cut_.source(first)) return s;
    for (node_id i = n; i != s; i = g.operand(i, 0)) p_.unread.push_back(i);
    p_.unread.push_back(s);
    return cut_.source(g.operand(s, 0));
  }
  /// The operand of dP = dy v^T that has the weights' rows (dy), or their columns (v).
  constexpr node_id weight_operand(bool rows) const {
    const auto o = options(weight_gradient_);
    const int factor = o.result[std::size_t(rank_) - (rows ? 2 : 1)];
    for (std::int8_t f : o.a) {
      if (f == factor) return g.operand(weight_gradient_, 0);
    }
    return g.operand(weight_gradient_, 1);
  }
  /// P (dP - sum(P dP)), as softmax's derivative is written.
  constexpr bool softmax_gradient() {
    for (int turn = 0; turn < 2; ++turn, std::swap(first_product_, second_product_)) {
      inner_product_ = first_product_;
      slopes_ = second_product_;
      weight_gradient_ = other(inner_product_, weights_);
      difference_ = other(slopes_, weights_);
      if (!is<matmul_op>(at(weight_gradient_)) || !is<sub_op>(at(difference_)) ||
          g.operand(difference_, 0) != weight_gradient_)
        continue;
      sum_ = then<sum_op>(inner_product_);
      repeated_ = g.operand(difference_, 1);
      if (sum_ < 0 || !is<broadcast_op>(at(repeated_)) ||
          at(sum_).attributes.template as<axes_options>().axes != 1u << (rank_ - 1) ||
          cut_.source(g.operand(repeated_, 0)) != sum_ || !only_leads_to(sum_, repeated_) ||
          cut_.only_user(repeated_) != difference_ || cut_.only_user(difference_) != slopes_ ||
          cut_.users(weight_gradient_).size() != 2 || cut_.is_output(weight_gradient_))
        continue;
      return true;
    }
    return false;
  }
  /// Gradients that are only put side by side along the last axis: by a concatenation, or as the
  /// sum of each among zeros.
  constexpr void join() {
    std::array<heads_walk, 3> all{p_.query_gradient, p_.key_gradient, p_.value_gradient};
    std::array<node_id, 3> user{};
    ids passed;
    node_id whole = no_node;
    std::int64_t covered = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      node_id n = all[i].value;
      node_id u = cut_.only_user(n);
      for (; u >= 0 && cut_.is_alias(u); u = cut_.only_user(u)) passed.push_back(n = u);
      if (u < 0 || (i > 0 && g.type(u) != g.type(whole))) return;
      whole = u;
      const shape part = g.type(n).shape;
      slice_op::options place;
      if (is<concat_op>(at(u))) {
        if (at(u).operand_count != 3 || (i > 0 && user[0] != u)) return;
        if (at(u).attributes.template as<concat_op::options>().axis != part.rank - 1) return;
        for (int k = 0; g.operand(u, k) != n; ++k)
          place.start[std::size_t(part.rank) - 1] += g.type(g.operand(u, k))[part.rank - 1];
        user[i] = u;
      } else if (is<scatter_slice_op>(at(u))) {
        place = at(u).attributes.template as<scatter_slice_op::options>();
        passed.push_back(u);
        user[i] = then<add_op>(u);
        if (user[i] < 0) return;
      } else {
        return;
      }
      if (!all[i].widen(g.type(u).shape, part, place, {p_.batch, p_.heads, p_.queries, p_.width}))
        return;
      if (all[i].offset % part[part.rank - 1]) return;
      for (std::size_t k = 0; k < i; ++k) {
        if (all[k].offset == all[i].offset) return;
      }
      covered += part[part.rank - 1];
    }
    if (covered != g.type(whole)[g.type(whole).rank() - 1]) return;
    node_id last = user[0];
    if (!is<concat_op>(at(last))) {
      // Two of them are added, and the third to that.
      last = no_node;
      for (std::size_t third = 0; third < 3; ++third) {
        const node_id inner = user[(third + 1) % 3];
        if (inner != user[(third + 2) % 3] || inner == user[third] ||
            cut_.only_user(inner) != user[third])
          continue;
        passed.push_back(inner);
        last = user[third];
      }
      if (last < 0) return;
    }
    passed.push_back(last);
    p_.joined = true;
    p_.last = last;
    for (heads_walk& w : all) w.value = last;
    p_.query_gradient = all[0];
    p_.key_gradient = all[1];
    p_.value_gradient = all[2];
    p_.gradient_members.insert(p_.gradient_members.end(), passed.begin(), passed.end());
  }

  attention_pattern p_;
  int rank_{};
  int query_side_{};
  double factor_{};
  bool gradient_{};
  int products_{};
  node_id scores_ = no_node, weights_ = no_node, result_ = no_node;
  node_id query_ = no_node, key_ = no_node, value_ = no_node;
  node_id first_product_ = no_node, second_product_ = no_node;
  node_id inner_product_ = no_node, sum_ = no_node, repeated_ = no_node, difference_ = no_node;
  node_id slopes_ = no_node, weight_gradient_ = no_node, value_gradient_ = no_node;
};

}  // namespace cella
