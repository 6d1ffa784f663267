// Finds attention in a graph that ranks are to divide: more of it than back ends have kernels for.
//
//   scores     matmul, [reshape], times a number, plus a bias, select(mask, ., -inf)
//   weights    softmax, computed in single precision if all else is of 16 bits
//   result     [reshape], matmul
//
// and what differentiation makes of that. The reshapes are there where heads of queries that share
// keys are rows of one product (grouped_query_attention).
#pragma once

#include <cella/ops/cast.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/parallel/pairs_found.hpp>
#include <cella/plan/pattern_questions.hpp>
#include <cella/plan/uses.hpp>

namespace cella::parallel::detail {

struct found_attention {
  attention_op_options options{};
  node_id query = no_node, key = no_node, value = no_node, cotangent = no_node;
  node_id result = no_node;
  std::array<node_id, 3> gradients{no_node, no_node, no_node};
  shape pairs{};  ///< of the scores, [lead..., queries, keys]
  list<found_pairs> masks{};
  found_pairs bias{};
  ids bias_gradients{};  ///< all the same, of different shapes
  int times = 1;         ///< heads of queries that see the same head of keys
};

/// Attention of a sequence to itself or another one, whose queries, keys, values and results lie
/// alike; else `result` is no_node.
class attention_search : pattern_questions<value_uses> {
 public:
  constexpr explicit attention_search(const value_uses& uses) : pattern_questions(uses) {}

  /// The attention of which node `n` is the softmax.
  constexpr found_attention find(node_id n) {
    a_ = {};
    links_.clear();
    if (!weights_of(n) || !forward() || !uses_of_weights() || !lies_well()) return {};
    if (value_gradient_ >= 0 && !backward()) return {};
    return a_;
  }

 private:
  /// One operation between the product and the softmax.
  struct link {
    enum { mask, bias, scale } kind{};
    node_id n = no_node, operand = no_node;
  };

  // ---- forward

  /// The softmax, or what it is converted to.
  constexpr bool weights_of(node_id n) {
    const tensor_type t = g.type(n);
    if (t.rank() < 2 || at(n).attributes.as<cella::detail::axis_options>().axis != t.rank() - 1)
      return false;
    rank_ = t.rank();
    last_score_ = g.operand(n, 0);
    weights_ = n;
    const dtype before =
        is<cast_op>(at(last_score_)) ? g.type(g.operand(last_score_, 0)).element : t.element;
    if (const node_id c = then<cast_op>(n); c >= 0 && is_storage_only(before)) {
      if (g.type(c).element != before) return false;
      last_score_ = g.operand(last_score_, 0);
      weights_ = c;
    }
    a_.pairs = t.shape;
    return is_floating(g.type(weights_).element) && !cut_.is_output(weights_);
  }
  /// From the softmax back to the product.
  constexpr bool forward() {
    node_id n = last_score_;
    a_.options.scale = 1;
    for (;;) {
      double value = 0;
      if (is<select_op>(at(n)) && constant_of(g.operand(n, 2), value) &&
          value == -std::numeric_limits<double>::infinity()) {
        links_.push_back({link::mask, n, g.operand(n, 0)});
        if (!add_mask(g.operand(n, 0))) return false;
        n = g.operand(n, 1);
      } else if (is<add_op>(at(n))) {
        const int side = leads_to_product(g.operand(n, 0)) ? 0 : 1;
        if (a_.options.bias.given() || !add_bias(g.operand(n, 1 - side))) return false;
        links_.push_back({link::bias, n, g.operand(n, 1 - side)});
        n = g.operand(n, side);
      } else {
        break;
      }
    }
    if (is<mul_op>(at(n)) && constant_of(g.operand(n, 1), a_.options.scale)) {
      links_.push_back({link::scale, n, g.operand(n, 1)});
      n = g.operand(n, 0);
    }
    scores_ = product_behind(n);
    return scores_ >= 0 && a_.options.scale > 0;
  }
  constexpr bool leads_to_product(node_id n) const {
    for (int i = 0; i < 8; ++i) {
      if (product_behind(n) >= 0) return true;
      const bool passes = is<select_op>(at(n)) || is<add_op>(at(n)) || is<mul_op>(at(n));
      if (!passes) return false;
      n = g.operand(n, is<select_op>(at(n)) ? 1 : 0);
    }
    return false;
  }
  /// The product of queries and keys of which `n` is the result, or that with the heads apart.
  constexpr node_id product_behind(node_id n) const {
    if (g.type(n).shape != a_.pairs) return no_node;
    if (is<matmul_op>(at(n))) return n;
    if (!is<reshape_op>(at(n)) || !is<matmul_op>(at(g.operand(n, 0)))) return no_node;
    return times_of(g.type(g.operand(n, 0)).shape) > 0 ? g.operand(n, 0) : no_node;
  }
  /// How many heads' queries are rows of one head of a tensor like the scores; 0: it is none.
  constexpr int times_of(const shape& merged) const {
    if (merged == a_.pairs) return 1;
    if (merged.rank != rank_ || rank_ < 3) return 0;
    for (int d = 0; d < rank_; ++d)
      if (d != rank_ - 3 && d != rank_ - 2 && merged[d] != a_.pairs[d]) return 0;
    const int heads = a_.pairs[rank_ - 3], groups = merged[rank_ - 3];
    if (groups < 1 || heads % groups || merged[rank_ - 2] != heads / groups * a_.pairs[rank_ - 2])
      return 0;
    return heads / groups;
  }
  constexpr bool add_mask(node_id n) {
    pairs_search search(g, a_.pairs);
    if (!search.add_mask(n)) return false;
    a_.options.lowest = std::max(a_.options.lowest, search.lowest);
    a_.options.highest = std::min(a_.options.highest, search.highest);
    for (const found_pairs& p : search.rest) {
      a_.masks.push_back(p);
      a_.options.mask.axes |= p.axes | pairs_operand::is_given;
    }
    return true;
  }
  constexpr bool add_bias(node_id n) {
    pairs_search search(g, a_.pairs);
    if (!search.add(n)) return false;
    a_.bias = search.rest[0];
    a_.options.bias.axes = a_.bias.axes | pairs_operand::is_given;
    return true;
  }

  /// Products with the weights and what the gradient reads of them.
  constexpr bool uses_of_weights() {
    result_ = value_gradient_ = no_node;
    factors_.clear();
    for (node_id u : cut_.users(weights_)) {
      if (is<mul_op>(at(u))) {
        factors_.push_back(u);
      } else if (is<reshape_op>(at(u)) && times_of(g.type(u).shape) > 0 && !cut_.is_output(u)) {
        for (node_id m : cut_.users(u))
          if (!add_product(m, u)) return false;
      } else if (!add_product(u, weights_)) {
        return false;
      }
    }
    const bool gradient = value_gradient_ >= 0 || !factors_.empty();
    return result_ >= 0 && (!gradient || (value_gradient_ >= 0 && factors_.size() == 2));
  }
  constexpr bool add_product(node_id m, node_id weights) {
    if (!is<matmul_op>(at(m)) || g.operand(m, 0) == g.operand(m, 1)) return false;
    const bool by_keys = sums(m, weights, rank_ - 1);
    node_id& found = by_keys ? result_ : value_gradient_;
    if (found >= 0 || (!by_keys && !sums(m, weights, rank_ - 2))) return false;
    found = m;
    return true;
  }
  /// Whether product `m` sums over an axis of its operand `x`.
  constexpr bool sums(node_id m, node_id x, int axis) const {
    const auto o = options(m);
    const int factor = axes(o, g.operand(m, 0) == x ? 0 : 1)[std::size_t(axis)];
    for (std::int8_t f : o.result)
      if (f == factor) return false;
    return true;
  }

  // ---- how tensors lie

  /// Tensor `side` of product `m` (2: its result).
  constexpr node_id tensor(node_id m, int side) const { return side < 2 ? g.operand(m, side) : m; }
  /// The axis of the places of tensor `side` of product `m`, whose tensor `weights` is
  /// [lead..., queries, keys]; the places are the queries, if `rows`. -1: it lies otherwise than
  /// [lead..., width] with the places inserted.
  constexpr int place_of(node_id m, int weights, int side, bool rows) const {
    const auto o = options(m);
    const auto &here = axes(o, side), &there = axes(o, weights);
    const int rank = g.type(tensor(m, weights)).rank();
    if (g.type(tensor(m, side)).rank() != rank) return -1;
    const int place = there[std::size_t(rank - (rows ? 2 : 1))];
    int found = -1, leads = 0;
    for (int d = 0; d + 1 < rank; ++d) {
      if (here[std::size_t(d)] == place && found < 0)
        found = d;
      else if (here[std::size_t(d)] != there[std::size_t(leads++)])
        return -1;
    }
    return leads == rank - 2 ? found : -1;
  }
  /// The operand of product `m` beside `weights`.
  constexpr int side_beside(node_id m, node_id weights) const {
    return g.operand(m, 0) == weights ? 1 : 0;
  }
  constexpr bool lies_well() {
    const auto o = options(scores_);
    const int row = o.result[std::size_t(rank_) - 2];
    int query_side = 1;
    for (std::int8_t f : o.a)
      if (f == row) query_side = 0;
    a_.query = tensor(scores_, query_side);
    a_.key = tensor(scores_, 1 - query_side);
    const node_id weights = operand_like_weights(result_);
    const int value_side = side_beside(result_, weights);
    a_.value = tensor(result_, value_side);
    a_.result = result_;
    a_.times = times_of(g.type(scores_).shape);
    const int place = place_of(scores_, 2, query_side, true);
    if (place < 0 || place != place_of(scores_, 2, 1 - query_side, false) ||
        place != place_of(result_, 1 - value_side, value_side, false) ||
        place != place_of(result_, 1 - value_side, 2, true) ||
        times_of(g.type(weights).shape) != a_.times)
      return false;
    if (a_.times > 1 && place != rank_ - 2) return false;
    const dtype element = g.type(weights_).element;
    for (node_id n : {a_.query, a_.key, a_.value, a_.result})
      if (g.type(n).element != element) return false;
    a_.options.queries = a_.pairs[rank_ - 2];
    a_.options.places = a_.pairs[rank_ - 1];
    a_.options.grouped = a_.times > 1;
    // With the heads of a group apart the places stand one axis further back.
    a_.options.place = place + a_.options.grouped;
    return true;
  }
  constexpr node_id operand_like_weights(node_id m) const {
    for (int i = 0; i < 2; ++i) {
      const node_id x = g.operand(m, i);
      if (x == weights_ || (is<reshape_op>(at(x)) && g.operand(x, 0) == weights_)) return x;
    }
    return no_node;
  }

  // ---- backward, for weights P and scores S: dP = dy v^T, dS = P (dP - sum(P dP)), then back over
  // what stands between the product and the softmax; dq = dS k, dk = dS^T q, dv = P^T dy

  constexpr bool backward() {
    node_id slopes = softmax_slopes();
    if (slopes < 0) return false;
    node_id bias_at = no_node;
    for (const link& l : links_) {
      if (l.kind == link::bias) {
        bias_at = slopes;
        continue;
      }
      node_id next = no_node;
      for (node_id u : cut_.users(slopes))
        if (goes_back(l, u, slopes)) next = u;
      if (next < 0 || !others_are_of_bias(slopes, next, bias_at)) return false;
      slopes = next;
    }
    const node_id scaled = slopes;
    // Heads that share keys are put together again.
    node_id apart = no_node;
    for (node_id u : cut_.users(slopes))
      if (is<reshape_op>(at(u)) && a_.times > 1 && times_of(g.type(u).shape) == a_.times) apart = u;
    if (a_.times > 1) {
      if (apart < 0 || !others_are_of_bias(scaled, apart, bias_at)) return false;
      slopes = apart;
    }
    node_id by_query = no_node, by_key = no_node;
    for (node_id u : cut_.users(slopes)) {
      if (!is<matmul_op>(at(u))) {
        if (slopes == bias_at && is_bias_gradient(u)) continue;
        return false;
      }
      (sums(u, slopes, rank_ - 1) ? by_query : by_key) = u;
    }
    if (by_query < 0 || by_key < 0 || cut_.is_output(slopes)) return false;
    return gradients_lie_well(slopes, by_query, by_key);
  }
  constexpr bool goes_back(const link& l, node_id u, node_id slopes) const {
    double value = 1;
    if (l.kind == link::mask)
      return is<select_op>(at(u)) && g.operand(u, 1) == slopes &&
             constant_of(g.operand(u, 2), value) && value == 0 &&
             same_value(g, g.operand(u, 0), l.operand);
    return is<mul_op>(at(u)) && g.operand(u, 0) == slopes && constant_of(g.operand(u, 1), value) &&
           value == a_.options.scale;
  }
  /// Whether nobody but `next` reads slopes, or sums of them are the gradient of the bias.
  constexpr bool others_are_of_bias(node_id slopes, node_id next, node_id bias_at) {
    const bool is_whole = slopes == bias_at && is_whole_bias();
    if (is_whole) a_.bias_gradients.push_back(slopes);
    if (is_whole) return true;
    for (node_id u : cut_.users(slopes))
      if (u != next && !(slopes == bias_at && is_bias_gradient(u))) return false;
    return !cut_.is_output(slopes);
  }
  /// Whether the bias has a number for each score.
  constexpr bool is_whole_bias() const {
    for (int d = 0; d < rank_; ++d)
      if (!a_.options.bias.along(d) && a_.pairs[d] > 1) return false;
    return true;
  }
  /// A sum over all axes along which the bias is the same.
  constexpr bool is_bias_gradient(node_id n) {
    if (!is<sum_op>(at(n))) return false;
    const unsigned folded = at(n).attributes.as<axes_options>().axes;
    for (int d = 0; d < rank_; ++d)
      if (a_.pairs[d] > 1 && bool(folded >> d & 1) == a_.options.bias.along(d)) return false;
    a_.bias_gradients.push_back(n);
    return true;
  }
  /// P (dP - sum(P dP)), as softmax's derivative is written.
  constexpr node_id softmax_slopes() {
    for (int turn = 0; turn < 2; ++turn) {
      const node_id inner = factors_[std::size_t(turn)], slopes = factors_[std::size_t(1 - turn)];
      const node_id dp = other(inner, weights_), difference = other(slopes, weights_);
      if (!is<sub_op>(at(difference)) || g.operand(difference, 0) != dp) continue;
      const node_id sum = then<sum_op>(inner), repeated = g.operand(difference, 1);
      if (sum < 0 || !is<broadcast_op>(at(repeated)) ||
          at(sum).attributes.as<axes_options>().axes != 1u << (rank_ - 1) ||
          cut_.source(g.operand(repeated, 0)) != sum || cut_.only_user(difference) != slopes)
        continue;
      weight_gradient_ = product_behind(dp);
      return weight_gradient_ >= 0 ? slopes : no_node;
    }
    return no_node;
  }
  constexpr bool gradients_lie_well(node_id slopes, node_id by_query, node_id by_key) {
    const int place = a_.options.place - a_.options.grouped;
    const node_id weights = operand_like_weights(value_gradient_);
    if (weights < 0) return false;
    const int dy = side_beside(value_gradient_, weights), key = side_beside(by_query, slopes),
              query = side_beside(by_key, slopes);
    a_.cotangent = tensor(value_gradient_, dy);
    a_.gradients = {by_query, by_key, value_gradient_};
    // Of dP = dy v^T the operand that has the weights' rows is dy.
    const auto o = options(weight_gradient_);
    const int row = o.result[std::size_t(rank_) - 2];
    int value = 0;
    for (std::int8_t f : o.a)
      if (f == row) value = 1;
    return place == place_of(value_gradient_, 1 - dy, dy, true) &&
           place == place_of(value_gradient_, 1 - dy, 2, false) &&
           place == place_of(by_query, 1 - key, 2, true) &&
           place == place_of(by_query, 1 - key, key, false) &&
           place == place_of(by_key, 1 - query, 2, false) &&
           place == place_of(by_key, 1 - query, query, true) &&
           place == place_of(weight_gradient_, 2, value, false) &&
           place == place_of(weight_gradient_, 2, 1 - value, true) &&
           same_value(g, tensor(by_query, key), a_.key) &&
           same_value(g, tensor(by_key, query), a_.query) &&
           same_value(g, tensor(weight_gradient_, value), a_.value) &&
           same_value(g, tensor(weight_gradient_, 1 - value), a_.cotangent);
  }

  found_attention a_;
  list<link> links_;
  int rank_{};
  node_id last_score_ = no_node, weights_ = no_node, scores_ = no_node;
  node_id result_ = no_node, value_gradient_ = no_node, weight_gradient_ = no_node;
  ids factors_;  ///< products with the weights, element by element
};

}  // namespace cella::parallel::detail
