// In which order the groups of a graph run, and which of them write in place.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cella/plan/fusion_groups.hpp>

namespace cella {

/// The order of a graph's groups.
struct group_order {
  list<int> order;     ///< of the groups
  flags in_place;      ///< of each output: it overwrites the input that it replaces
  list<int> replaces;  ///< of each node: the input that it overwrites, or -1
  list<int> carrier;   ///< of each group: another one whose kernel yields this sum as well, or -1
  list<int> side;      ///< of each group: the sum that its kernel yields as well, or -1

  /// Group `sum` is computed by the kernel of group `host`.
  constexpr void carry(int sum, int host) {
    carrier[std::size_t(sum)] = host;
    side[std::size_t(host)] = sum;
  }
};

/// Whether somebody outside group `s` reads its member `m`, or a view of it.
constexpr bool read_outside(const fusion_groups& c, const fusion_group& s, node_id m) {
  if (c.is_output(m) || c.is_read_as_stored(m)) return true;
  for (node_id u : c.users(m)) {
    if (c.member(s, u) && !c.is_alias(u)) continue;
    if (c.is_alias(u) || c.is_broadcast(u) ? read_outside(c, s, u) : !c.member(s, u)) return true;
  }
  return false;
}

namespace detail {

class group_sorter {
 public:
  constexpr explicit group_sorter(const fusion_groups& groups) : c_(groups), g(groups.g) {
    sort();
    o_.replaces.assign(g.nodes.size(), -1);
    for (std::size_t i = g.outputs.size(); i-- > 0;) {
      if (o_.in_place[i]) o_.replaces[std::size_t(g.regions[0].outputs[i])] = g.outputs[i].updates;
    }
    o_.carrier.assign(c_.groups.size(), -1);
    o_.side.assign(c_.groups.size(), -1);
  }
  constexpr const group_order& result() const { return o_; }

 private:
  /// Groups that read `n`, also through reshapes and broadcasts. (It stands before its uses: clang
  /// needs its body where they are evaluated.)
  template <class F>
  constexpr void for_each_reader(node_id n, F f) const {
    for (node_id u : c_.users(n)) {
      const int o = c_.owner[std::size_t(u)];
      if (o >= 0) f(o);
      if (c_.is_alias(u) || c_.is_view(u) || c_.is_assembled(u) || (o < 0 && c_.as_stored(u)))
        for_each_reader(u, f);
    }
  }
  constexpr void sort() {
    o_.in_place.assign(g.outputs.size(), 0);
    flags replaces(g.nodes.size(), 0);
    list<int> when;
    for (const fusion_group& s : c_.groups) when.push_back(s.order * 2);
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const std::int32_t input = g.outputs[i].updates;
      const node_id value = g.regions[0].outputs[i];
      if (input < 0 || c_.owner[std::size_t(value)] < 0) continue;
      const int writer = c_.owner[std::size_t(value)];
      if (!step_traits(c_.groups[std::size_t(writer)].kind).in_place) continue;
      // A value has one place. Another shape of it is written as what it is a shape of.
      if (c_.is_alias(value) || replaces[std::size_t(value)]) continue;
      // Readers of the old value come first; the writer may move behind them if nobody waits for
      // it.
      int last_reader = -1;
      for_each_reader(g.input(input), [&](int reader) {
        if (reader != writer) last_reader = std::max(last_reader, when[std::size_t(reader)]);
      });
      if (reads_old_value_elsewhere(writer, g.input(input))) continue;
      if (last_reader >= when[std::size_t(writer)]) {
        if (someone_waits(writer, last_reader, when)) continue;
        when[std::size_t(writer)] = last_reader + 1;
      }
      o_.in_place[i] = replaces[std::size_t(value)] = 1;
    }
    // Two writers may have moved behind each other: then one of them goes through a copy.
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      if (!o_.in_place[i]) continue;
      const int writer = c_.owner[std::size_t(g.regions[0].outputs[i])];
      for_each_reader(g.input(g.outputs[i].updates), [&](int reader) {
        if (reader != writer && when[std::size_t(reader)] >= when[std::size_t(writer)])
          o_.in_place[i] = 0;
      });
    }
    for (std::size_t i = 0; i < c_.groups.size(); ++i) o_.order.push_back(int(i));
    std::sort(o_.order.begin(), o_.order.end(), [&](int a, int b) {
      return when[std::size_t(a)] != when[std::size_t(b)]
                 ? when[std::size_t(a)] < when[std::size_t(b)]
                 : a < b;
    });
  }
  /// The kernel reads the value that it overwrites other than at the element that it writes.
  constexpr bool reads_old_value_elsewhere(int writer, node_id input) const {
    const fusion_group& s = c_.groups[std::size_t(writer)];
    if (s.kind == step_kind::put_rows && c_.whole(g.operand(s.anchor, 2)) == input) return true;
    for (node_id o : s.operands) {
      if (o >= 0 && c_.whole(o) == input) return true;
    }
    return reads_through_view(writer, input);
  }
  constexpr bool reads_through_view(int writer, node_id x) const {
    for (node_id u : c_.users(x)) {
      if (c_.is_view(u)) {
        for (node_id m : c_.users(u)) {
          if (c_.owner[std::size_t(m)] == writer) return true;
        }
      }
      const bool same_memory = c_.is_alias(u) || c_.is_contiguous_view(u);
      if (same_memory && reads_through_view(writer, u)) return true;
    }
    return false;
  }
  constexpr bool someone_waits(int writer, int until, const list<int>& when) const {
    for (node_id m : c_.groups[std::size_t(writer)].members) {
      bool waits = false;
      for_each_reader(m, [&](int reader) {
        waits |= reader != writer && when[std::size_t(reader)] <= until + 1;
      });
      if (waits) return true;
    }
    return false;
  }

  const fusion_groups& c_;
  const graph& g;
  group_order o_;
};

}  // namespace detail

/// Orders the groups so that new values can take the places of the inputs that they replace: who
/// reads the old value comes first.
constexpr group_order order_groups(const fusion_groups& groups) {
  return detail::group_sorter(groups).result();
}

}  // namespace cella
