// How a group grows: which operations are computed in its registers, before or after its anchor.
#pragma once

#include <cella/plan/fusion_groups.hpp>

namespace cella {

/// `Planning` is the back end's: see planner.hpp.
template <class Planning>
class group_growth {
 public:
  constexpr explicit group_growth(fusion_groups& groups) : c_(groups), g(groups.g) {}

  /// The most operations of a group: more would not find registers for their values.
  static constexpr int most_operations = 64;

  /// Follows the users of the group's members as long as they are elementwise and all their
  /// operands are in registers or were computed before the anchor.
  constexpr void grow(fusion_group& s) {
    group_room room;
    for (std::size_t i = 0; i < s.members.size(); ++i) {
      const node_id m = s.members[i];
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      if (c_.prologue(s, m)) continue;  // what is before the sum leads to it only
      for (node_id u : c_.users(m)) {
        if (c_.claimed(u)) continue;
        if (c_.is_alias(u)) {
          // A loop nest has one factorization of its elements, so a reshape ends it.
          if (s.kind == step_kind::elementwise) continue;
          if (c_.forms.of(m) != c_.forms.of(u)) continue;
          c_.claim(s, u);
          continue;
        }
        if (!c_.pointwise(u) || g.type(u).element == dtype::boolean) continue;
        if (g.type(u).size() != c_.value_type(m).size()) continue;
        if (c_.forms.of(m) != c_.forms.of(u)) continue;
        bool fits = true;
        ids joined;
        for (node_id o : g.operands(u))
          fits = fits && (acceptable(s, o, g.type(u).shape) || joinable(s, o, joined));
        if (!fits || operations(s, u) > most_operations) continue;
        if (c_.is_widened_as_read(u) || c_.as_stored(u) || c_.converts_again(u) ||
            wanted_later(s, u) || left_to_loops(s, m, u) || !has_room(s, u, joined, room))
          continue;
        if (!joined.empty()) {
          for (node_id o : g.operands(u)) join(s, o);
        }
        c_.claim(s, u);
        for (node_id o : g.operands(u)) pull_in(s, o, s.kind == step_kind::elementwise);
      }
    }
  }
  /// Whether `u` is better computed where it is used: by one elementwise operation that waits for
  /// values of later steps (a derivative's factor, that its cotangent is multiplied by), or by a
  /// chain of such operations. It would be stored until then. In the epilogue of a product it
  /// stays: there it costs next to nothing.
  constexpr bool wanted_later(const fusion_group& s, node_id u) const {
    if (s.kind != step_kind::elementwise && s.kind != step_kind::reduce) return false;
    const node_id w = c_.only_user(u);
    if (s.arrangement != layout::plain || w < 0 || !c_.pointwise(w) || !c_.live(w)) return false;
    if (g.type(w).element == dtype::boolean || c_.claimed(w)) return false;
    for (node_id o : g.operands(w)) {
      if (o != u && !acceptable(s, o, g.type(w).shape) && !joinable(s, o)) return true;
    }
    return reads_what_others_read(u) && wanted_later(s, w);
  }
  /// Whether no more is stored if `u` is computed later than its operands: those have other
  /// readers.
  constexpr bool reads_what_others_read(node_id u) const {
    for (node_id o : g.operands(u)) {
      if (!c_.is_leaf(o) && !c_.is_view(o) && c_.only_user(o) == u) return false;
    }
    return true;
  }
  /// Whether `u`, which follows from a product's value `m`, is better computed by the loops that
  /// use it: `m` is stored in any case, and `u` would be, too. A tile writes short pieces of far
  /// rows, which costs more than a loop's reading `m` again.
  constexpr bool left_to_loops(const fusion_group& s, node_id m, node_id u) const {
    if (s.kind != step_kind::product || s.arrangement != layout::plain) return false;
    if (m != s.anchor || c_.is_output(u)) return false;
    bool stored = false;
    for (node_id v : c_.users(m)) stored |= !c_.in_registers(v) && !c_.is_alias(v);
    if (!stored) return false;
    for (node_id v : c_.users(u)) {
      if (!c_.pointwise(v) && !is<sum_op>(c_.at(v))) return false;
    }
    return true;
  }
  /// Whether loops can compute `o` as well, although others read it: they write it for those, who
  /// all come later. Its operands are there before the loops run, or are joinable in turn.
  constexpr bool joinable(const fusion_group& s, node_id o) const {
    ids joined;
    return joinable(s, o, joined);
  }
  /// The same; adds `o` and what it needs to `joined`, whose nodes are known to be joinable if this
  /// is. A value has many users, so that to ask for each path anew would take exponential time.
  constexpr bool joinable(const fusion_group& s, node_id o, ids& joined) const {
    if (contains(joined, o)) return true;
    if (s.kind != step_kind::elementwise || c_.claimed(o) || !c_.pointwise(o) ||
        int(joined.size()) == c_.machine.most_writes)
      return false;
    if (!c_.held(g.type(o).element) || g.type(o).shape != g.type(s.anchor).shape) return false;
    if (c_.forms.of(o) != c_.forms.of(s.anchor)) return false;
    for (node_id u : c_.users(o)) {
      const int by = c_.owner[std::size_t(u)];
      if (c_.is_alias(u) || c_.is_view(u) || g.type(u).element == dtype::boolean) return false;
      const int when =
          by == fusion_groups::unclaimed ? c_.position(u) : c_.groups[std::size_t(by)].order;
      if (!c_.member(s, u) && when <= s.order) return false;
    }
    for (node_id p : g.operands(o)) {
      if (g.type(p).element == dtype::boolean) return false;
      if (!acceptable(s, p, g.type(o).shape) && !joinable(s, p, joined)) return false;
    }
    joined.push_back(o);
    return true;
  }
  constexpr void join(fusion_group& s, node_id o) {
    if (acceptable(s, o, g.type(o).shape) || !joinable(s, o)) return;
    for (node_id p : g.operands(o)) join(s, p);
    c_.claim(s, o);
    for (node_id p : g.operands(o)) pull_in(s, p, true);
  }
  /// What the members of a group that have been looked at read and write. It grows with the group:
  /// to look at all of them for every candidate would take time in the square of their number.
  struct group_room {
    std::size_t members{};  ///< how many have been looked at
    ids reads{};            ///< values, each once; some may be members by now
    ids written{};          ///< members that others asked for, or may still ask for
  };
  /// Whether the group can take `u` with what it reads, and write what others still ask for.
  /// `joined` are values that it would compute and write besides. `room` is of this group.
  constexpr bool has_room(const fusion_group& s, node_id u, span<const node_id> joined,
                          group_room& room) const {
    while (room.members < s.members.size()) {
      const node_id m = s.members[room.members++];
      if (c_.in_registers(m)) add_reads(s, m, room.reads);
      room.written.push_back(m);
    }
    std::size_t kept = 0;
    int writes = 1 + int(joined.size());
    for (node_id m : room.written) {
      bool later = c_.is_output(m), outside = later;
      for (node_id v : c_.users(m)) {
        if (c_.member(s, v)) continue;
        later = true;
        outside |= v != u;
      }
      if (later) room.written[kept++] = m;
      writes += outside;
    }
    room.written.resize(kept);
    if (writes > c_.machine.most_writes) return false;

    const std::size_t before = room.reads.size();
    add_reads(s, u, room.reads);
    for (node_id o : joined) add_reads(s, o, room.reads);
    int reads = 0;
    for (node_id o : room.reads) {
      if (!c_.member(s, o)) reads += c_.is_short_product(o) ? 2 : 1;  // both factors
    }
    room.reads.resize(before);
    return reads <= c_.machine.most_reads;
  }
  /// Adds what a member, or who may become one, reads: through operands that are computed for it.
  constexpr void add_reads(const fusion_group& s, node_id n, ids& reads) const {
    for (node_id o : g.operands(n)) {
      if (c_.member(s, o) || c_.is_constant(o)) continue;
      if (pullable(s, o))
        add_reads(s, o, reads);
      else if (!contains(reads, o))
        reads.push_back(o);
    }
  }
  /// Whether the group would read too much with `o`. Few operations read few values.
  constexpr bool reads_too_much(const fusion_group& s, node_id o) const {
    group_room room;
    return 2 * int(s.members.size()) + 3 > c_.machine.most_reads && !has_room(s, o, {}, room);
  }
  /// How many operations the group has with `n`, and with what is computed for it alone.
  constexpr int operations(const fusion_group& s, node_id n) const {
    return int(s.members.size()) + added(s, n);
  }
  constexpr int added(const fusion_group& s, node_id n) const {
    if (c_.member(s, n) || c_.claimed(n)) return 0;
    if (c_.is_alias(n)) return added(s, g.operand(n, 0));
    if (!c_.in_registers(n)) return 0;
    int sum = 1;
    for (node_id o : g.operands(n)) {
      if (pullable(s, o)) sum += added(s, o);
    }
    return sum;
  }

  /// Whether `o` can be an operand of an elementwise member: in registers, a constant, or readable
  /// from memory in a way that the group's kernel knows.
  constexpr bool acceptable(const fusion_group& s, node_id o, const shape& domain) const {
    if (c_.member(s, o) && !c_.prologue(s, o)) return o != s.pool_argmax;
    if (c_.is_constant(o)) return true;
    if (c_.is_broadcast(o)) return readable_broadcast(s, o, domain);
    if (c_.is_strided_view(o) && s.kind == step_kind::elementwise) return readable_view(s, o);
    if (c_.is_draw(o)) return readable_view(s, o);
    if (c_.is_short_product(o)) return readable_product(s, o);
    if (pullable(s, o)) {
      for (node_id p : g.operands(o)) {
        if (!acceptable(s, p, domain)) return false;
      }
      return true;
    }
    if (c_.is_alias(o) && c_.only_user(o) >= 0 && c_.member(s, g.operand(o, 0))) return true;
    return readable(s, o) && !read_by_prologue(s, o);
  }
  /// A kernel reads a value in one way: along the loops of a sum, or at the sum's result.
  constexpr bool read_by_prologue(const fusion_group& s, node_id o) const {
    if (s.kind != step_kind::reduce) return false;
    for (node_id m : s.members) {
      if (m != s.anchor && !c_.prologue(s, m)) continue;
      for (node_id p : g.operands(m)) {
        if (p == o) return true;
      }
    }
    return false;
  }
  /// Whether `o` can be computed in the group's registers. What a sum over a format yields is in
  /// another one, so that values in the format have no place behind it.
  constexpr bool pullable(const fusion_group& s, node_id o) const {
    const bool loops = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
    return !c_.claimed(o) && c_.pointwise(o) && c_.only_user(o) >= 0 && !c_.is_output(o) &&
           (loops || s.arrangement == layout::plain || c_.forms.of(o) == c_.value_format(s));
  }
  /// Computed before the group runs.
  constexpr bool available(const fusion_group& s, node_id n) const {
    if (c_.is_input(n)) return true;
    const int by = c_.owner[std::size_t(n)];
    if (by < 0) return c_.position(n) < c_.position(s.anchor);
    const fusion_group& other = c_.groups[std::size_t(by)];
    return &other != &s && other.order < s.order;
  }
  /// In memory before the anchor runs, in the layout that the epilogue writes.
  constexpr bool readable(const fusion_group& s, node_id o) const {
    if (!c_.held(g.type(o).element)) return false;
    const node_id n = c_.source(o);
    if (!available(s, c_.whole(o))) return false;
    const layout f = c_.value_format(s);
    return f == layout::plain || (c_.forms.of(o) == f && c_.forms.of(n) == f);
  }
  constexpr bool readable_view(const fusion_group& s, node_id n) const {
    return available(s, c_.whole(g.operand(n, 0)));
  }
  constexpr bool readable_product(const fusion_group& s, node_id n) const {
    return s.kind == step_kind::elementwise && available(s, c_.whole(g.operand(n, 0))) &&
           available(s, c_.whole(g.operand(n, 1)));
  }
  constexpr bool readable_broadcast(const fusion_group& s, node_id n, const shape& domain) const {
    const node_id x = c_.source(g.operand(n, 0));
    if (!available(s, c_.whole(x)) || !c_.held(g.type(x).element)) return false;
    if (g.type(x).size() == 1)
      return s.arrangement == layout::plain || c_.forms.of(x) == layout::plain;
    const auto o = c_.at(n).attributes.as<broadcast_op::options>();
    if (s.kind == step_kind::elementwise)
      return Planning::loops_repeat(s.arrangement, o, c_.forms.of(x));
    if (s.kind == step_kind::reduce || s.accumulated < 0) return false;
    // The value itself, and what is repeated: a vector may be seen as a matrix.
    return g.type(x).rank() == 1 && g.type(g.operand(n, 0)).rank() == 1 &&
           domain == c_.value_type(s.accumulated).shape &&
           (o.axes[0] == s.row_axis || o.axes[0] == s.column_axis);
  }

  /// Claims elementwise operands that nobody else uses, so that they are computed in registers:
  /// `before` the anchor (the prologue of a sum, a loop nest) or in its epilogue. `first`: what a
  /// group begins with, for which nobody has asked whether there is room.
  constexpr void pull_in(fusion_group& s, node_id o, bool before, bool first = false) {
    if (c_.is_alias(o) && !c_.claimed(o) && c_.only_user(o) >= 0 && pullable_source(s, o)) {
      if (before) c_.mark_prologue(s, o);
      c_.claim(s, o);
      pull_in(s, g.operand(o, 0), before, first);
      return;
    }
    if (!pullable(s, o)) return;
    for (node_id p : g.operands(o)) {
      if (before ? !readable_in_prologue(s, p) : !acceptable(s, p, g.type(p).shape)) return;
    }
    // Truth values have no form in memory, so they are never left to a kernel of their own.
    if (g.type(o).element != dtype::boolean &&
        (operations(s, o) > most_operations || (first && reads_too_much(s, o))))
      return;
    if (before) c_.mark_prologue(s, o);
    c_.claim(s, o);
    for (node_id p : g.operands(o)) pull_in(s, p, before, first);
  }
  constexpr bool pullable_source(const fusion_group& s, node_id o) const {
    const node_id x = g.operand(o, 0);
    return g.type(o).shape == g.type(x).shape && pullable(s, x);
  }
  constexpr bool readable_in_prologue(const fusion_group& s, node_id p) const {
    if (c_.is_constant(p) || c_.member(s, p)) return true;
    if (pullable(s, p)) {
      if (g.type(p).element != dtype::boolean) return true;
      for (node_id q : g.operands(p)) {
        if (!readable_in_prologue(s, q)) return false;
      }
      return true;
    }
    if (!c_.held(g.type(p).element)) return false;
    if (c_.is_broadcast(p)) {
      const node_id x = c_.source(g.operand(p, 0));
      if (!available(s, c_.whole(x))) return false;
      if (s.kind != step_kind::elementwise && s.kind != step_kind::reduce)
        return readable_broadcast(s, p, g.type(p).shape);
      const auto o = c_.at(p).attributes.as<broadcast_op::options>();
      return g.type(x).size() == 1 || Planning::loops_repeat(s.arrangement, o, c_.forms.of(x));
    }
    if (c_.is_draw(p)) return readable_view(s, p);
    if (c_.is_short_product(p)) return readable_product(s, p);
    if (c_.is_strided_view(p) && (s.kind == step_kind::elementwise || s.kind == step_kind::reduce))
      return readable_view(s, p);
    if (const layout f = s.arrangement; s.kind == step_kind::reduce && f != layout::plain) {
      return g.type(p).element == c_.element && c_.forms.of(p) == f &&
             c_.forms.of(c_.source(p)) == f;
    }
    return readable(s, p);
  }

 private:
  fusion_groups& c_;
  const graph& g;
};

}  // namespace cella
