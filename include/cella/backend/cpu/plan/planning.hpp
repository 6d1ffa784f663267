// What the planner must know of the CPU: its formats, and what its kernels work on in them.
#pragma once

#include <cella/backend/cpu/plan/blocked_steps.hpp>
#include <cella/backend/cpu/plan/default_kernel.hpp>
#include <cella/backend/cpu/plan/held_in_single.hpp>
#include <cella/backend/cpu/plan/lanes_steps.hpp>
#include <cella/backend/cpu/plan/layout.hpp>
#include <cella/backend/cpu/plan/patterns.hpp>
#include <cella/backend/cpu/plan/plain_steps.hpp>
#include <cella/backend/cpu/plan/side_sums.hpp>
#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/plan/planner.hpp>

namespace cella::cpu {

struct planning : plain_planning {
  /// How the steps of single kernels are planned.
  using rules = step_rules<lanes_convolution_rule, lanes_product_rule, lanes_weights_rule,
                           lanes_unpool_rule, blocked_convolution_rule, blocked_pooling_rule,
                           pooled_sample_rule, packed_product_rule, norm_rule, plain_loss_rule>;

  /// The processor that is compiled for.
  static constexpr plan_target machine{.vector_bytes = register_bytes,
                                       .vector_registers = vector_registers_of(register_bytes),
                                       .kernels = {step_kind::elementwise,
                                                   step_kind::reduce,
                                                   step_kind::product,
                                                   step_kind::convolution,
                                                   step_kind::convolution_input_gradient,
                                                   step_kind::convolution_weight_gradient,
                                                   step_kind::batch_norm,
                                                   step_kind::batch_norm_gradient,
                                                   step_kind::cross_entropy,
                                                   step_kind::attention,
                                                   step_kind::attention_gradient,
                                                   step_kind::rows,
                                                   step_kind::softmax,
                                                   step_kind::permute,
                                                   step_kind::move,
                                                   step_kind::random_uniform,
                                                   step_kind::random_permutation,
                                                   step_kind::random_draw,
                                                   step_kind::gather,
                                                   step_kind::scatter,
                                                   step_kind::put_rows,
                                                   step_kind::best_position,
                                                   step_kind::max_pool_plain,
                                                   step_kind::unpool,
                                                   step_kind::pool_gather,
                                                   step_kind::average_pool,
                                                   step_kind::average_spread,
                                                   step_kind::integer_product,
                                                   step_kind::integer_convolution,
                                                   step_kind::running,
                                                   step_kind::order,
                                                   step_kind::elements,
                                                   step_kind::one_hot,
                                                   step_kind::scatter_reduce,
                                                   step_kind::sparse,
                                                   step_kind::fold,
                                                   step_kind::typed,
                                                   step_kind::special,
                                                   step_kind::bitwise,
                                                   step_kind::fourier,
                                                   step_kind::fourier_of_real,
                                                   step_kind::fourier_to_real,
                                                   step_kind::decomposition},
                                       .kernel_alone = default_kernel};

  static constexpr graph prepared(graph g, dtype element) {
    return held_in_single(std::move(g), element, machine.lanes(element));
  }
  static constexpr value_formats choose_formats(const graph& g, const plan_options& o,
                                                const plan_target& t) {
    value_formats f(g);
    const int lanes = t.lanes(o.element);
    const auto forced =
        o.algorithm < 0 ? convolution_algorithm::modelled : convolution_algorithm(o.algorithm);
    if (!o.region) f.program = choose_layout(g, o.element, lanes, forced);
    if (f.program == layout::lanes) f.keep(batched_values(g));
    if (f.program == layout::blocked) f.keep(blocked_values(g, lanes));
    return f;
  }

  static constexpr void read_as_stored(fusion_groups& c, const plan_options& o) {
    if (multiplies_pairs && c.element == dtype::f32 && c.forms.program == layout::blocked)
      find_pairs(c, algorithm_of(o));
  }
  template <class Fuser>
  static constexpr bool match(Fuser& f, node_id n) {
    return patterns<Fuser>(f).match(n);
  }
  /// Whole images in blocks are summed up as they lie, to one number for each channel, which lies
  /// as that of a plain image does. No other sum would.
  static constexpr layout sum_format(const fusion_groups& c, node_id n) {
    constexpr unsigned channels = 1u << 1, pixels = 1u << 2 | 1u << 3;
    const layout f = c.forms.of(c.g.operand(n, 0));
    const unsigned axes = c.at(n).attributes.as<axes_options>().axes;
    return f == layout::blocked && (axes & (channels | pixels)) != pixels ? layout::plain : f;
  }
  /// With few classes the samples go into the lanes whatever the rest of the program does. A value
  /// under another shape would be packed in its own.
  static constexpr layout loss_format(const fusion_groups& c, node_id logits) {
    const bool rows = c.forms.of(logits) != layout::lanes &&
                      (c.g.type(logits)[1] >= 32 || c.source(logits) != logits);
    return rows ? layout::plain : layout::lanes;
  }
  /// In the lanes an operand either has the batch first or does not have it at all.
  static constexpr bool loops_repeat(layout a, const broadcast_op::options& o, layout kept) {
    return a != layout::lanes || (o.axes[0] == 0) == (kept == layout::lanes);
  }
  static constexpr void carry_sums(const fusion_groups& c, group_order& order) {
    if (c.forms.program == layout::lanes) side_sums(c, order).carry();
  }

  static constexpr std::int64_t bytes(const tensor_type& t, layout a, std::array<int, 2> border,
                                      const plan_target& made_for, dtype element) {
    // Positions of maxima are kept as numbers of the program's type.
    if (a == layout::blocked)
      return t.size() * std::int64_t(size_of(is_floating(t.element) ? t.element : element));
    const int lanes = made_for.lanes(element);
    const std::int64_t blocks = (t[0] + lanes - 1) / lanes;
    std::int64_t features = 1;
    for (int d = 1; d < t.rank(); ++d)
      features *= t[d] + (d >= 2 && t.rank() == 4 ? 2 * border[std::size_t(d - 2)] : 0);
    return blocks * features * lanes * std::int64_t(size_of(t.element));
  }
  static constexpr shape vectors(shape s, layout a, int lanes) {
    if (a == layout::lanes) s[0] = (s[0] + lanes - 1) / lanes;
    if (a == layout::blocked) s[1] /= lanes;
    return s;
  }
  static constexpr bool operands(auto& p, const fusion_group& s, plan_step& t) {
    return rules::operands(p, s, t);
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    rules::scratch(p, s, t);
  }
  template <class Places>
  static constexpr void read_in_loops(Places& p, layout a, const plan_step& t, operand_read& l) {
    return a == layout::lanes ? read_lanes(p, t, l) : read_blocks(p, l);
  }
  /// Pooling of blocks: the values and their positions.
  template <class Places>
  static constexpr bool outputs(Places& p, const fusion_group& s, plan_step& t) {
    if (s.kind != step_kind::max_pool) return false;
    for (int k = 0; k < 2; ++k) {
      const node_id first = p.c.get_of(s.anchor, k);
      if (k == 1 && first < 0) break;
      const std::int64_t size = p.g.result_type(s.anchor, k).size();
      const buffer_ref at = p.arena.fresh(size * std::int64_t(size_of(p.c.element)));
      for (node_id u : p.c.users(s.anchor)) {
        if (p.c.at(u).attributes.template as<get_attributes>().result == k)
          p.remember(u, layout::blocked, at);
      }
      t.outputs[std::size_t(t.output_count++)] = {
          .value = first, .at = at, .form = layout::blocked};
    }
    return true;
  }

 private:
  /// In loops over vectors of samples and what each has: vectors, or one number for all samples.
  template <class Places>
  static constexpr void read_lanes(Places& p, const plan_step& t, operand_read& l) {
    const bool broadcast = p.c.is_broadcast(l.value);
    const node_id from = broadcast ? p.g.operand(l.value, 0) : l.value;
    const bool batched = p.c.forms.of(from) == layout::lanes;
    l.at = p.locate(from, batched ? layout::lanes : layout::plain);
    l.how = batched ? access::moving : access::fixed;
    shape stored = p.g.type(from).shape;
    if (batched) stored[0] = int(t.loop[0]);
    const auto own = row_major_strides(stored);
    auto axes = iteration_space::no_axes;
    if (broadcast) axes = p.c.at(l.value).attributes.template as<broadcast_op::options>().axes;
    for (std::size_t d = 0; d < std::size_t(stored.rank); ++d)
      l.strides[broadcast ? std::size_t(axes[d]) : d] = own[d];
  }
  /// In loops over samples, blocks, rows and columns: vectors of channels, or one number for all of
  /// them.
  template <class Places>
  static constexpr void read_blocks(Places& p, operand_read& l) {
    const bool broadcast = p.c.is_broadcast(l.value);
    const node_id from = broadcast ? p.g.operand(l.value, 0) : l.value;
    shape stored = p.g.type(from).shape;
    std::array<std::int8_t, max_rank> axes{0, 1, 2, 3};
    if (broadcast) axes = p.c.at(l.value).attributes.template as<broadcast_op::options>().axes;
    l.at = p.locate(from, broadcast ? layout::plain : layout::blocked);
    l.how = access::fixed;
    for (int d = 0; d < stored.rank; ++d) {
      if (axes[std::size_t(d)] != 1 || p.g.type(from).size() == 1) continue;
      l.how = access::moving;
      stored[d] /= p.c.machine.lanes(p.c.element);
    }
    const auto own = row_major_strides(stored);
    for (int d = 0; d < stored.rank; ++d) {
      if (stored[d] > 1) l.strides[std::size_t(axes[std::size_t(d)])] = own[std::size_t(d)];
    }
  }
};

}  // namespace cella::cpu
