// In which order the groups of a graph run, and which of them write in place.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/graph/list.hpp>
#include <cella/plan/fuser.hpp>

namespace cella {

/// What a plan is made for.
struct plan_options {
  dtype element = dtype::f32;
  int lanes = lanes_of<dtype::f32>();  ///< SIMD lanes of that type
  /// Results are written to the spaces behind those of the arguments, one for each, instead of into
  /// the arena.
  bool results_bound{};
  /// The plan of a region, which the kernel of a control node runs: nothing is prepared before.
  bool region{};
  /// Inputs from this index on keep their values from call to call: the constants of a loop.
  int first_constant = 1 << 30;
  /// Which kernels compute convolutions, where they can.
  convolution_algorithm convolutions = convolution_algorithm::modelled;
};

/// Orders the groups so that new values can take the places of the inputs that they replace: who
/// reads the old value comes first.
class plan_order {
 public:
  constexpr plan_order(const graph& source, plan_options options)
      : g(source),
        options_(options),
        arrangement_(options.region ? layout::plain
                                    : choose_layout(source, options.element, options.lanes,
                                                    options.convolutions)),
        cut_(source, options.element, arrangement_, options.lanes),
        input_at_(g.nodes.size(), -1),
        is_replaced_(g.nodes.size(), 0),
        replaces_(g.nodes.size(), -1) {
    for (std::size_t i = 0; i < g.regions[0].inputs.size(); ++i)
      input_at_[std::size_t(g.input(int(i)))] = int(i);
    for (const output_info& o : g.outputs) {
      if (o.updates >= 0) is_replaced_[std::size_t(g.input(o.updates))] = 1;
    }
    order_groups();
    for (std::size_t i = g.outputs.size(); i-- > 0;) {
      if (in_place_[i]) replaces_[std::size_t(g.regions[0].outputs[i])] = g.outputs[i].updates;
    }
    carry_sums();
  }

 protected:
  constexpr node_id source(node_id n) const { return cut_.source(n); }

  /// The input that output value `n` replaces and that it may overwrite, or -1.
  constexpr std::int32_t replaced_input(node_id n) const { return replaces_[std::size_t(n)]; }

  constexpr bool read_outside(const fusion_group& s, node_id m) const {
    if (cut_.is_output(m)) return true;
    for (node_id u : cut_.users(m)) {
      if (cut_.member(s, u) && !cut_.is_alias(u)) continue;
      if (cut_.is_alias(u) || cut_.is_broadcast(u) ? read_outside(s, u) : !cut_.member(s, u))
        return true;
    }
    return false;
  }

  const graph& g;
  plan_options options_;
  layout arrangement_;
  fuser cut_;
  list<int> input_at_;  ///< index of the input that a node is, or -1
  flags is_replaced_;   ///< of a node: an input that an output replaces
  list<int> replaces_;  ///< of a node: see replaced_input
  list<int> order_;     ///< of the groups
  flags in_place_;      ///< of each output
  list<int> carrier_;   ///< group whose kernel yields this sum, or -1
  list<int> side_;      ///< the sum that this group yields, or -1

 private:
  /// Groups that read `n`, also through reshapes and broadcasts.
  template <class F>
  constexpr void for_each_reader(node_id n, F f) const {
    for (node_id u : cut_.users(n)) {
      const int o = cut_.owner[std::size_t(u)];
      if (o >= 0) f(o);
      if (cut_.is_alias(u) || cut_.is_view(u) || cut_.is_assembled(u)) for_each_reader(u, f);
    }
  }
  constexpr void order_groups() {
    in_place_.assign(g.outputs.size(), 0);
    list<int> when;
    for (const fusion_group& s : cut_.groups) when.push_back(s.order * 2);
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const std::int32_t input = g.outputs[i].updates;
      const node_id value = g.regions[0].outputs[i];
      if (input < 0 || cut_.owner[std::size_t(value)] < 0) continue;
      const int writer = cut_.owner[std::size_t(value)];
      const step_kind kind = cut_.groups[std::size_t(writer)].kind;
      if (runs_alone(kind) || kind == step_kind::rows || kind == step_kind::control ||
          kind == step_kind::batch_norm || kind == step_kind::batch_norm_gradient)
        continue;
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
      in_place_[i] = 1;
    }
    // Two writers may have moved behind each other: then one of them goes through a copy.
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      if (!in_place_[i]) continue;
      const int writer = cut_.owner[std::size_t(g.regions[0].outputs[i])];
      for_each_reader(g.input(g.outputs[i].updates), [&](int reader) {
        if (reader != writer && when[std::size_t(reader)] >= when[std::size_t(writer)])
          in_place_[i] = 0;
      });
    }
    for (std::size_t i = 0; i < cut_.groups.size(); ++i) order_.push_back(int(i));
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      return when[std::size_t(a)] != when[std::size_t(b)]
                 ? when[std::size_t(a)] < when[std::size_t(b)]
                 : a < b;
    });
  }
  /// The kernel reads the value that it overwrites other than at the element that it writes.
  constexpr bool reads_old_value_elsewhere(int writer, node_id input) const {
    const fusion_group& s = cut_.groups[std::size_t(writer)];
    for (node_id o : s.operands) {
      if (o >= 0 && cut_.whole(o) == input) return true;
    }
    for (node_id m : s.members) {
      for (node_id o : g.operands(m)) {
        if (!cut_.is_view(o)) continue;
        for (node_id from : g.operands(o)) {
          if (cut_.whole(from) == input) return true;
        }
      }
    }
    return false;
  }
  constexpr bool someone_waits(int writer, int until, const list<int>& when) const {
    for (node_id m : cut_.groups[std::size_t(writer)].members) {
      bool waits = false;
      for_each_reader(m, [&](int reader) {
        waits |= reader != writer && when[std::size_t(reader)] <= until + 1;
      });
      if (waits) return true;
    }
    return false;
  }

  /// Bias gradients: a sum of pooled gradients over samples and pixels is yielded by the kernel
  /// that un-pools them, if all that becomes of it is written in place.
  constexpr void carry_sums() {
    carrier_.assign(cut_.groups.size(), -1);
    side_.assign(cut_.groups.size(), -1);
    if (arrangement_ != layout::lanes) return;
    for (std::size_t r = 0; r < cut_.groups.size(); ++r) {
      const fusion_group& s = cut_.groups[r];
      const node& sum = g.nodes[std::size_t(s.anchor)];
      if (s.kind != step_kind::reduce || s.arrangement != layout::lanes) continue;
      const node_id x = s.operands[0];
      const bool bias = g.type(x).rank() == 4 && sum.attributes.as<axes_options>().axes == 0b1101u;
      if (!bias || cut_.member(s, x) || !writes_in_place(s)) continue;
      for (std::size_t h = 0; h < cut_.groups.size(); ++h) {
        const fusion_group& host = cut_.groups[h];
        const bool unpools = host.kind == step_kind::convolution_pool_weight_gradient;
        const node_id pooled = unpools ? host.operands[1] : host.operands[0];
        if ((!unpools && host.kind != step_kind::max_unpool_2x2) || side_[h] >= 0) continue;
        if (source(pooled) != source(x)) continue;
        carrier_[r] = int(h);
        side_[h] = int(r);
        break;
      }
    }
  }
  /// Every value of the group that is read outside it replaces an input.
  constexpr bool writes_in_place(const fusion_group& s) const {
    for (node_id m : s.members) {
      if (read_outside(s, m) && replaced_input(m) < 0) return false;
      for (node_id o : g.operands(m)) {
        const node_id from = source(cut_.is_view(o) ? g.operand(o, 0) : o);
        if (m != s.anchor && !cut_.member(s, o) && !cut_.is_constant(o) && !cut_.is_input(from))
          return false;
      }
    }
    return true;
  }
};

}  // namespace cella
