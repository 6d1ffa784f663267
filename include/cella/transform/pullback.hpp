// Reverse mode: one sweep backwards over the nodes of the open region appends what computes the
// cotangents. A control node that is met on the way is overwritten, in place, by one that also
// returns what its backward part reads: nothing is computed twice and nothing is traced again.
#pragma once

#include <cella/transform/region.hpp>

namespace cella {

namespace detail {

/// The cotangents of a control node's operands (transform/reverse_control.hpp). `dy` has no_node
/// for results without a cotangent; `dx` is filled in where `needed`.
constexpr void control_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx);

// Reverse mode and `split` (transform/split.hpp) are made of each other, so both are declared here.

/// forward(inputs) -> outputs, stored; backward(some inputs, stored, cotangents) -> cotangents of
/// the needed inputs.
struct halves {
  int forward{};
  int backward{};
  list<int> from_inputs;  ///< which inputs the backward half reads
  type_list stored;
};

constexpr halves split(builder& b, int r, const flags& needed, const flags& given,
                       bool recompute = false);

/// Whether there is a rule for the derivative of node n by its operand k. Without one it is zero,
/// or a fault where the operation does not say so.
constexpr bool has_derivative(builder& b, node_id n, std::size_t k) {
  const op_info& op = *b.g.nodes[std::size_t(n)].op;
  if (op.partial || op.vjp || is_linear_in(op, k)) return true;
  if (op.zero_derivative) return false;
  const node_id x = b.g.operand(n, int(k));
  b.fail(b.place_of(n) << op.name << ": is not differentiable by " << b.describe(x) << " "
                       << b.g.type(x)
                       << "; give it a derivative with custom_vjp(), or hand it stop_gradient()");
  return false;
}
/// dy times the partial derivative of node n by its operand i (reverse mode: times its conjugate);
/// no node if that is zero.
constexpr var times_partial(node_ref n, int i, var dy, bool reverse) {
  const var p = n.b->g.nodes[std::size_t(n.id)].op->partial(n, i);
  if (p.id == zero_partial.id) return {};
  if (p.id == one_partial.id) return dy;
  if (p.id == minus_one_partial.id) return -dy;
  return dy * (reverse ? conj(p) : p);
}

/// The sum of two values of which either may be absent.
constexpr node_id accumulate(builder& b, node_id x, node_id y) {
  if (x < 0) return y;
  return y < 0 ? x : add(b, x, y);
}

/// The nodes that a sweep goes over, as they are when it begins: those of the open region, behind
/// those of the regions that it continues after native `if`s.
class straight_line {
 public:
  static constexpr std::size_t nowhere = ~std::size_t{0};

  constexpr explicit straight_line(const builder& b) : b_(b), here_(b.here()) {
    for (int r : b.open.line()) {
      parts_.push_back({r, nodes_.size(), b.g.regions[std::size_t(r)].nodes.size()});
      const ids& theirs = b.g.regions[std::size_t(r)].nodes;
      nodes_.insert(nodes_.end(), theirs.begin(), theirs.end());
    }
  }
  constexpr std::size_t size() const { return nodes_.size(); }
  constexpr node_id operator[](std::size_t i) const { return nodes_[i]; }

  /// Where a value is computed; `nowhere` if it is behind the line. A continuation's input stands
  /// for a value further in front.
  constexpr std::size_t position(node_id n) const {
    if (parts_.size() == 1) {
      const node& x = b_.g.nodes[std::size_t(n)];
      const auto at = std::size_t(x.position);
      return x.region == here_ && at < nodes_.size() ? at : nowhere;
    }
    for (std::size_t p = parts_.size(); p-- > 0;) {
      const node& x = b_.g.nodes[std::size_t(n)];
      if (x.region != parts_[p].region) continue;
      if (p > 0 && x.op == &input_info_of) {
        n = outer_value(parts_[p].region, n);
        continue;
      }
      const auto at = std::size_t(x.position);
      return at < parts_[p].count ? parts_[p].first + at : nowhere;
    }
    return nowhere;
  }
  constexpr void settle(builder& b) const {
    for (const part& p : parts_) b.early.settle(b.g, p.region);
  }

 private:
  struct part {
    int region;
    std::size_t first;
    std::size_t count;
  };
  constexpr node_id outer_value(int r, node_id input) const {
    const region& x = b_.g.regions[std::size_t(r)];
    for (std::size_t k = 0; k < x.captured.size(); ++k) {
      if (x.inputs[std::size_t(x.declared) + k] == input) return x.captured[k];
    }
    return input;
  }

  const builder& b_;
  int here_;
  list<part> parts_;
  ids nodes_;
};

class backward_sweep {
 public:
  constexpr backward_sweep(builder& b, span<const node_id> wrt)
      : b_(b), line_(b), first_(line_.size()) {
    for (node_id w : wrt) targets_.push_back(line_.position(w));
    for (std::size_t p : targets_) {
      if (p < first_) first_ = p;
    }
    const std::size_t count = line_.size() - first_;
    needed_.assign(count, 0);
    cotangents_.assign(count, no_node);
    for (std::size_t p : targets_) {
      if (p != straight_line::nowhere) needed_[p - first_] = 1;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const node_id n = line_[first_ + i];
      const node& x = b.g.nodes[std::size_t(n)];
      if (!carries_derivative(x)) needed_[i] = 0;
      if (!carries_derivative(x) || is_flat(*x.op)) continue;
      for (node_id o : b.g.operands(n)) needed_[i] |= is_needed(o);
    }
  }

  constexpr void seed(node_id y, node_id dy) {
    const std::size_t p = line_.position(b_.local(y));
    if (p == straight_line::nowhere || p < first_) return;
    cotangents_[p - first_] = accumulate(b_, cotangents_[p - first_], b_.local(dy));
    if (p - first_ >= behind_) behind_ = p - first_ + 1;
  }

  constexpr ids run() {
    results_.assign(behind_, ids());
    for (std::size_t i = behind_; i-- > 0 && !b_.failed();) {
      if (!needed_[i] || (cotangents_[i] < 0 && results_[i].empty())) continue;
      visit(i);
    }
    ids out;
    for (std::size_t p : targets_)
      out.push_back(p == straight_line::nowhere ? no_node : cotangents_[p - first_]);
    line_.settle(b_);
    return out;
  }

 private:
  constexpr bool is_needed(node_id n) const {
    const std::size_t p = line_.position(n);
    return p != straight_line::nowhere && p >= first_ && needed_[p - first_];
  }

  constexpr void visit(std::size_t i) {
    const node_id n = line_[first_ + i];
    const op_info& op = *b_.g.nodes[std::size_t(n)].op;
    const auto operands = b_.g.operands(n);
    if (operands.empty()) return;
    in_.assign(operands.begin(), operands.end());
    if (&op == &get_info_of) return hand_over(i);
    dx_.assign(in_.size(), no_node);
    want_.clear();
    for (node_id x : in_) want_.push_back(is_needed(x));
    // What a rule appends is attributed to the line and cell of the forward node.
    const node forward = b_.g.nodes[std::size_t(n)];
    const name_ref outer = b_.current_cell();
    b_.current_cell(forward.cell);
    const auto line = b_.attribute_to({forward.file, forward.line});
    apply_rule({&b_, n}, op, i);
    if (op.is_own) check_own(n, op);
    b_.attribute_to(line);
    b_.current_cell(outer);
    for (std::size_t k = 0; k < in_.size(); ++k) {
      if (!want_[k] || dx_[k] < 0) continue;
      node_id& into = cotangents_[line_.position(in_[k]) - first_];
      into = accumulate(b_, into, dx_[k]);
    }
  }
  /// The library's operations are tested; a user's rule may forget an operand, or miss its type.
  constexpr void check_own(node_id n, const op_info& op) {
    for (std::size_t k = 0; k < in_.size() && !b_.failed(); ++k) {
      const bool is_lost = dx_[k] < 0 && op.vjp && want_[k];
      if (!is_lost && (dx_[k] < 0 || b_.g.type(dx_[k]) == b_.g.type(in_[k]))) continue;
      text sentence = b_.place_of(n);
      sentence << op.name << ": the cotangent of operand " << int(k) << ", " << b_.describe(in_[k])
               << " " << b_.g.type(in_[k]);
      if (is_lost)
        b_.fail(sentence << ", was never assigned; vjp writes dx[" << int(k)
                         << "], zeros_like(n.operand(" << int(k) << ")) where it is zero");
      else
        b_.fail(sentence << ", becomes " << b_.g.type(dx_[k]) << "; it has the operand's type");
    }
  }
  /// The cotangent of one result of a node becomes one of the node's cotangents.
  constexpr void hand_over(std::size_t i) {
    ids& all = results_[line_.position(in_[0]) - first_];
    if (all.empty()) all.assign(std::size_t(b_.g.nodes[std::size_t(in_[0])].result_count), no_node);
    const int k = node_ref{&b_, line_[first_ + i]}.as<get_attributes>().result;
    all[std::size_t(k)] = accumulate(b_, all[std::size_t(k)], cotangents_[i]);
  }
  constexpr void apply_rule(node_ref n, const op_info& op, std::size_t i) {
    if (op.kind == op_kind::control) {
      if (results_[i].empty()) results_[i].push_back(cotangents_[i]);
      return control_vjp(b_, n.id, results_[i], want_, dx_);
    }
    if (op.vjp) {
      dy_.clear();
      if (results_[i].empty()) dy_.push_back({&b_, cotangents_[i]});
      for (node_id d : results_[i]) dy_.push_back({&b_, d});
      vars_.assign(in_.size(), var{});
      op.vjp(n, dy_, want_, vars_);
      for (std::size_t k = 0; k < in_.size(); ++k) dx_[k] = vars_[k].id;
      return;
    }
    for (std::size_t k = 0; k < in_.size(); ++k) {
      if (!want_[k] || !has_derivative(b_, n.id, k)) continue;
      const var dy{&b_, cotangents_[i]};
      dx_[k] = op.partial ? times_partial(n, int(k), dy, true).id : op.transpose(n, int(k), dy).id;
    }
  }

  builder& b_;
  straight_line line_;
  std::size_t first_;       ///< positions below count from here
  std::size_t behind_ = 0;  ///< one behind the last node that has a cotangent at first
  list<std::size_t> targets_;
  flags needed_;
  ids cotangents_;
  list<ids> results_;  ///< of nodes with several results
  // Scratch that is reused: allocations are what constant evaluation is slow at.
  ids in_;
  ids dx_;
  flags want_;
  list<var> dy_;
  list<var> vars_;
};

}  // namespace detail

/// Appends to the open region what computes the cotangents of `wrt` from the cotangents `dys` of
/// `ys`, by one sweep backwards over the region. A value that does not depend on a `wrt` yields
/// no_node.
constexpr ids pullback(builder& b, span<const node_id> ys, span<const node_id> dys,
                       span<const node_id> wrt) {
  detail::backward_sweep sweep(b, wrt);
  for (std::size_t k = 0; k < ys.size(); ++k) sweep.seed(ys[k], dys[k]);
  return sweep.run();
}

}  // namespace cella

#include <cella/transform/reverse_control.hpp>
#include <cella/transform/split.hpp>
