// Finds what one sweep over a row can compute: sums along the last axes, numbers that follow from
// them, and elementwise operations that use both (layer norm, the gradient of softmax). The row
// stays in a cache, so memory is read and written once.
#pragma once

#include <cella/ops/broadcast.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/plan/plan.hpp>

namespace cella {

/// Nodes of a row-wise group, in an order in which they can be computed.
struct row_pattern {
  bool found = false;
  ids members;
};

/// Looks for the pattern that begins with a sum. `Fuser` answers for the graph.
template <class Fuser>
class row_finder {
 public:
  constexpr row_finder(const Fuser& f, dtype element) : f_(f), g(f.g), element_(element) {}

  constexpr row_pattern find(node_id sum) {
    row_pattern p;
    const node_id x = g.operand(sum, 0);
    domain_ = g.type(x).shape;
    axes_ = g.nodes[std::size_t(sum)].attributes.template as<axes_options>().axes;
    first_ = f_.position(sum);
    rows_ = 1;
    kept_ = 0;
    last_varying_ = -1;
    while (kept_ < domain_.rank && !(axes_ >> kept_ & 1)) rows_ *= domain_[kept_++];
    // The folded axes are the last ones, and there are both kinds.
    if (kept_ == 0 || axes_ != (1u << domain_.rank) - (1u << kept_)) return p;
    if (rows_ < 2) return p;
    width_ = domain_.size() / rows_;
    if (width_ < 2 || domain_.size() >> 31) return p;
    if (!take(sum)) return p;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      for (node_id u : f_.users(seen_[i])) consider(u);
    }
    for (node_id m : members_) p.found |= full(m) && f_.position(m) > first_ && follows(m);
    p.found = p.found && written() <= most_written && places() <= plan_step{}.outputs.size();
    p.members = members_;
    return p;
  }

 private:
  constexpr bool full(node_id n) const { return g.type(n).shape == domain_; }
  constexpr bool per_row(node_id n) const { return g.type(n).size() == rows_ && !full(n); }
  /// Elements of a row may be stored in 16 bits, its numbers are not.
  constexpr bool pointwise(node_id n) const {
    const dtype e = g.nodes[std::size_t(n)].type.element;
    return f_.in_registers(n) && (e == element_ || (full(n) && f_.held(e))) && !f_.is_alias(n);
  }
  /// A number for each row, in the order of the rows, seen from every element of the row.
  constexpr bool spreads_rows(node_id n) const {
    return spreads(n, 0, kept_) && g.type(g.operand(n, 0)).size() == rows_;
  }
  /// Whether what the broadcast `n` repeats varies along axes [first, last) only.
  constexpr bool spreads(node_id n, int first, int last) const {
    if (!f_.is_broadcast(n) || !full(n)) return false;
    const auto o = g.nodes[std::size_t(n)].attributes.template as<broadcast_op::options>();
    const tensor_type from = g.type(g.operand(n, 0));
    for (int d = 0; d < from.rank(); ++d) {
      const int axis = o.axes[std::size_t(d)];
      if (from[d] > 1 && (axis < first || axis >= last)) return false;
    }
    return true;
  }
  /// Whether what the broadcast `n` repeats has one number for each stretch of a row, such as a
  /// channel of a group of channels: it varies along some axes side by side, behind which there are
  /// enough elements, and all that the group reads in this way along the same ones.
  constexpr bool spreads_stretches(node_id n) {
    const auto [first, last] = varying_axes(g, n);
    const std::int64_t stretch = domain_.size(last, domain_.rank);
    if (last < kept_ || !full(n) || stretch < least_stretch ||
        g.type(g.operand(n, 0)).size() != domain_.size(first, last))
      return false;
    if (last_varying_ < 0) {
      first_varying_ = first;
      last_varying_ = last;
    }
    return first == first_varying_ && last == last_varying_;
  }
  /// In memory when the group begins.
  constexpr bool available(node_id n) const {
    const node_id from = f_.source(n);
    if (!f_.held(g.type(from).element)) return false;
    if (f_.is_input(from)) return true;
    return order(from) < first_ && !(f_.owner[std::size_t(from)] < 0 && f_.is_constant(from));
  }

  /// Whether the group has operand `o`, which is wanted for each element of the row or (else) once
  /// for the row, or can have it.
  constexpr bool provides(node_id o, bool each, int depth) {
    if (f_.is_constant(o) || contains(seen_, o)) return true;
    if (f_.is_draw(o)) return each && full(o) && available_key(o);
    if (f_.is_broadcast(o)) {
      const node_id from = g.operand(o, 0);
      if (contains(seen_, from)) return spreads_rows(o);
      const std::int64_t size = g.type(from).size();
      const bool fits = size == 1 || (size == rows_ && spreads(o, 0, kept_)) ||
                        (size == width_ && spreads(o, kept_, domain_.rank)) || spreads_stretches(o);
      return each && full(o) && fits && f_.held(g.type(f_.source(from)).element) &&
             available(from) && count_read(o);
    }
    if (f_.is_strided_view(o) || f_.is_short_product(o)) return false;
    // A value that is computed on the way, also for others who come later.
    if (each && joins(o, depth)) return true;
    return (each ? full(o) : per_row(o)) && available(o) && count_read(o);
  }
  constexpr bool available_key(node_id draw) const {
    const node_id key = f_.source(g.operand(draw, 0));
    return f_.is_input(key) || f_.position(key) < first_;
  }
  /// Makes the elementwise `o`, which no group has yet, a member, with what it needs and with those
  /// who read it before the group could write it; or changes nothing.
  constexpr bool joins(node_id o, int depth) {
    if (depth <= 0 || !full(o) || f_.owner[std::size_t(o)] >= 0 || !pointwise(o)) return false;
    const sizes before = taken();
    bool fits = true;
    for (node_id p : g.operands(o)) fits = fits && provides(p, true, depth - 1);
    fits = fits && add(o);
    for (node_id u : f_.users(o)) {
      if (!fits) break;
      fits = !f_.is_alias(u) && !f_.is_view(u) &&
             (contains(seen_, u) || order(u) >= first_ || joins(u, depth - 1));
    }
    if (!fits) give_back(before);
    return fits;
  }
  /// When `n` is computed.
  constexpr int order(node_id n) const {
    const int by = f_.owner[std::size_t(n)];
    return by < 0 ? f_.position(n) : f_.groups[std::size_t(by)].order;
  }
  constexpr bool count_read(node_id o) {
    if (contains(reads_, o)) return true;
    if (reads_.size() >= most_reads) return false;
    reads_.push_back(o);
    return true;
  }
  constexpr bool add(node_id n) {
    if (members_.size() >= most_members) return false;
    members_.push_back(n);
    seen_.push_back(n);
    return true;
  }

  /// Makes `n` a member, with what it needs, or changes nothing.
  constexpr bool take(node_id n) {
    const bool each = full(n) || is<sum_op>(g.nodes[std::size_t(n)]);
    const sizes before = taken();
    bool fits = true;
    for (node_id o : g.operands(n)) fits = fits && provides(o, each, most_joined);
    if (fits && add(n)) return true;
    give_back(before);
    return false;
  }
  /// How much has been taken, to return to it.
  struct sizes {
    std::size_t members, seen, reads;
  };
  constexpr sizes taken() const { return {members_.size(), seen_.size(), reads_.size()}; }
  constexpr void give_back(sizes to) {
    while (members_.size() > to.members) members_.pop_back();
    while (seen_.size() > to.seen) seen_.pop_back();
    while (reads_.size() > to.reads) reads_.pop_back();
  }
  constexpr void consider(node_id u) {
    if (contains(seen_, u) || f_.owner[std::size_t(u)] >= 0 || !f_.live(u) || f_.converts_again(u))
      return;
    const node& x = g.nodes[std::size_t(u)];
    if (f_.is_alias(u)) {
      if (per_row(u) && x.type.element == element_) seen_.push_back(u);
      return;
    }
    if (f_.is_broadcast(u)) {
      if (spreads_rows(u)) seen_.push_back(u);
      return;
    }
    if (is<sum_op>(x)) {
      const bool same = x.attributes.template as<axes_options>().axes == axes_;
      if (same && full(g.operand(u, 0))) (void)take(u);
      return;
    }
    if (pointwise(u) && (full(u) || per_row(u))) (void)take(u);
  }
  /// Whether full value `m` follows from a sum of the group.
  constexpr bool follows(node_id m) const {
    for (node_id o : g.operands(m)) {
      if (f_.is_broadcast(o) && contains(seen_, o)) return true;
      if (contains(members_, o) && follows(o)) return true;
    }
    return false;
  }

  /// Values that others read, too; too many if there are too many numbers of a row.
  constexpr int written() const {
    int count = 0, numbers = 0;
    for (node_id m : members_) {
      numbers += !full(m);
      bool outside = f_.is_output(m);
      for (node_id u : f_.users(m)) outside |= !contains(seen_, u);
      count += outside;
    }
    return numbers > most_row_numbers ? most_written + 1 : count;
  }

  /// Values that the step has to write, those included that only repetitions take outside: the
  /// numbers of a row that two groups read.
  constexpr std::size_t places() const {
    std::size_t count = 0;
    for (node_id m : members_) {
      bool outside = f_.is_output(m);
      for (node_id u : f_.users(m)) outside |= leads_outside(u);
      count += outside;
    }
    return count;
  }
  constexpr bool leads_outside(node_id u) const {
    if (contains(members_, u)) return false;
    if (!contains(seen_, u) || f_.is_output(u)) return true;
    for (node_id v : f_.users(u)) {
      if (leads_outside(v)) return true;
    }
    return false;
  }

  static constexpr std::size_t most_members = 40, most_reads = 12;
  static constexpr int most_written = 8, most_joined = 3;
  /// Shorter stretches are left to loops: each is begun and ended by itself.
  static constexpr int least_stretch = 32;

  const Fuser& f_;
  const graph& g;
  dtype element_;
  shape domain_;
  unsigned axes_{};
  int kept_{}, first_{};
  int first_varying_{}, last_varying_ = -1;  ///< axes of what is read by stretches; -1: nothing yet
  std::int64_t rows_{}, width_{};
  ids members_;
  ids seen_;  ///< members, and reshapes and broadcasts of their numbers
  ids reads_;
};

}  // namespace cella
