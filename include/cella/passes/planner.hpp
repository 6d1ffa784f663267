// From groups to steps: operands, extents, reads and outputs of each kernel.
#pragma once

#include <cella/passes/arithmetic.hpp>
#include <cella/passes/plan_loops.hpp>
#include <cella/passes/plan_places.hpp>
#include <tuple>

namespace cella {

class planner : public plan_places {
 public:
  constexpr planner(const graph& source, plan_options options) : plan_places(source, options) {
    for (int i : order_) {
      if (carrier_[std::size_t(i)] < 0) lower(i);
    }
    finish();
  }

 private:
  constexpr void lower(int index, bool carried = false) {
    const int side = side_[std::size_t(index)];
    if (side >= 0) lower(side, true);
    const group& s = cut_.groups[std::size_t(index)];
    plan_step t{.kind = s.kind,
                .arrangement = s.arrangement,
                .anchor = s.anchor,
                .accumulated = s.accumulated};
    operands(s, t);
    leaves(s, t);
    t.carried = carried;
    if (side >= 0) t.side = int(plan_.steps.size()) - 1;
    outputs(s, t);
    count(s, t);
    emit(t);
  }

  constexpr void operands(const group& s, plan_step& t) {
    const layout a = s.arrangement;
    auto& e = t.extents;
    switch (s.kind) {
      case step_kind::convolution:
      case step_kind::convolution_pool:
      case step_kind::convolution_input_gradient:
      case step_kind::convolution_weight_gradient:
      case step_kind::convolution_pool_weight_gradient: {
        const auto o = g.nodes[std::size_t(s.anchor)].attributes.as<convolution_options>();
        const bool weights = s.kind == step_kind::convolution_weight_gradient ||
                             s.kind == step_kind::convolution_pool_weight_gradient;
        const bool backward = s.kind == step_kind::convolution_input_gradient;
        const tensor_type image = g.type(backward ? s.anchor : s.operands[0]);
        const tensor_type filter = g.type(weights ? s.anchor : s.operands[1]);
        const auto& w = o.window;
        e = {image[0],  image[1],    image[2],    image[3],    filter[0],   filter[2],
             filter[3], w.stride[0], w.stride[1], w.before[0], w.before[1], 0};
        const std::array<int, 2> border{w.before[0], w.before[1]};
        if (a == layout::blocked) {
          blocked_convolution(s, t, image, filter);
        } else if (a == layout::lanes) {
          t.in[0] = backward ? locate(s.operands[0], a) : locate(s.operands[0], a, border);
          t.in[1] = locate(s.operands[1], weights ? layout::lanes : layout::plain);
          if (s.kind == step_kind::convolution_pool_weight_gradient)
            t.in[2] = locate(s.operands[2], a);
        } else {
          t.in[0] = locate(s.operands[0], layout::plain);
          t.in[1] = locate(s.operands[1], layout::plain);
          if (s.kind == step_kind::convolution_pool) {
            // A padded copy of one image, and the filters with their channels in the lanes.
            const std::int64_t size = std::int64_t(size_of(options_.element));
            const std::int64_t channels = align_up(filter[0], options_.lanes);
            t.scratch = fresh(image[1] * (image[2] + 2 * w.before[0]) *
                                  (image[3] + 2 * w.before[1]) * size +
                              64 * 4);
            t.in[3] = fresh(image[1] * std::int64_t{filter[2]} * filter[3] * channels * size, true);
          }
        }
        break;
      }
      case step_kind::product:
        if (a == layout::lanes) {
          const auto o = g.nodes[std::size_t(s.anchor)].attributes.as<matmul_op::options>();
          const tensor_type w = g.type(s.operands[1]);
          const bool rows_first = o.b[0] == o.result[1];
          t.in[0] = locate(s.operands[0], a);
          t.in[1] = locate(s.operands[1], layout::plain);
          // samples, rows, inner, row stride, inner stride
          e = {g.type(s.anchor)[0], g.type(s.anchor)[1], rows_first ? w[1] : w[0],
               rows_first ? w[1] : 1, rows_first ? 1 : w[1]};
        } else {
          t.in[0] = locate(s.operands[0], layout::plain);
          t.in[1] = locate(s.operands[1], layout::plain);
          if (const std::int64_t packed = packed_weights(s)) t.in[3] = fresh(packed, true);
        }
        break;
      case step_kind::product_weights:
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        e = {g.type(s.operands[0])[0], g.type(s.operands[0])[1], g.type(s.operands[1])[1]};
        t.scratch = fresh((e[0] + options_.lanes - 1) / options_.lanes * options_.lanes *
                          align_up(e[2], options_.lanes) * std::int64_t(size_of(options_.element)));
        break;
      case step_kind::unpool_corners:
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        e = {g.type(s.anchor)[0], g.type(s.anchor)[1], g.type(s.anchor)[2], g.type(s.anchor)[3]};
        break;
      case step_kind::max_pool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        window_extents(s.anchor, g.type(s.operands[0]), g.result_type(s.anchor, 0), t);
        break;
      case step_kind::unpool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        t.in[1] = locate(s.operands[1], layout::blocked);
        window_extents(s.anchor, g.type(s.anchor), g.type(s.operands[0]), t);
        break;
      case step_kind::batch_norm:
      case step_kind::batch_norm_gradient: {
        // image, gamma, beta or dy, statistics, and the gradients of gamma and beta
        const bool backward = s.kind == step_kind::batch_norm_gradient;
        const node_id image = s.operands[backward ? 1 : 0];
        const tensor_type x = g.type(image);
        t.in[0] = locate(image, a);
        t.in[1] = locate(s.operands[backward ? 2 : 1], layout::plain);
        t.in[2] = backward ? locate(s.operands[0], a) : locate(s.operands[2], layout::plain);
        for (int k = 1; k < 3; ++k) {
          const auto at = std::size_t(2 + k);
          if (backward) t.in[at] = locate(g.operand(s.anchor, 2 + k), layout::plain);
          t.in[backward ? at + 2 : at] = place_of_result(s.anchor, k);
        }
        e = {x[0], x[1], x.shape.size(2, x.rank())};
        break;
      }
      case step_kind::cross_entropy:
        t.in[0] = locate(s.operands[0], a);
        t.in[1] = locate(s.operands[1], layout::plain);
        e = {g.type(s.operands[0])[0], g.type(s.operands[0])[1]};
        if (a == layout::plain) t.scratch = fresh(e[0] * std::int64_t(size_of(options_.element)));
        break;
      case step_kind::attention:
      case step_kind::attention_gradient:
        attention_operands(s, t);
        break;
      case step_kind::control:
        link_operands(s, t);
        break;
      case step_kind::softmax:
      case step_kind::permute:
      case step_kind::random_uniform:
      case step_kind::generic: {
        if (g.operands(s.anchor).size() > t.in.size()) {
          link_operands(s, t);
          break;
        }
        int k = 0;
        for (node_id o : g.operands(s.anchor)) t.in[std::size_t(k++)] = locate(o, layout::plain);
        break;
      }
      default:
        break;
    }
  }

  /// Of an image in blocks: samples, channels, extents, window, stride, padding, result.
  constexpr void window_extents(node_id n, const tensor_type& image, const tensor_type& pooled,
                                plan_step& t) const {
    const auto o = g.nodes[std::size_t(n)].attributes.as<pooling_options>();
    t.extents = {image[0],           image[1],           image[2],           image[3],
                 o.kernel[0],        o.kernel[1],        o.window.stride[0], o.window.stride[1],
                 o.window.before[0], o.window.before[1], pooled[2],          pooled[3]};
  }
  /// Packed filters, or sums of weight gradients, are `in[3]`; the padded copy of a plain image of
  /// few channels is the scratch.
  constexpr void blocked_convolution(const group& s, plan_step& t, const tensor_type& image,
                                     const tensor_type& filter) {
    const bool few = image[1] % options_.lanes != 0;
    const bool weights = s.kind == step_kind::convolution_weight_gradient;
    const bool backward = s.kind == step_kind::convolution_input_gradient;
    const std::int64_t size = std::int64_t(size_of(options_.element));
    t.in[0] = locate(s.operands[0], few && !backward ? layout::plain : layout::blocked);
    t.in[1] = locate(s.operands[1], weights ? layout::blocked : layout::plain);
    const bool kept = !weights && keeps_its_value(source(s.operands[1]));
    const int L = options_.lanes;
    const auto w = g.nodes[std::size_t(s.anchor)].attributes.as<convolution_options>().window;
    const auto shape = shape_of_convolution(g, s.anchor, options_.element, L);
    const bool minimal = choose_in_blocks(shape, pass_of(g.nodes[std::size_t(s.anchor)]),
                                          options_.convolutions) == convolution_algorithm::minimal;
    t.extents[11] = kept | (minimal ? 2 : 0) | (shape.depthwise() ? 4 : 0);
    const std::int64_t elements =
        minimal ? winograd::filter_size(image[1] / L, filter[0] / L, L) : filter.size();
    t.in[3] = fresh(elements * size, kept);
    if (minimal && weights) {
      const int tiles =
          winograd::tiles(image[0], w.positions(image[2], 3, 0), w.positions(image[3], 3, 1));
      t.scratch =
          fresh(winograd::gradient_tiles_size(image[1] / L, filter[0] / L, tiles, L) * size);
    }
    if (few) {
      const tensor_type y = g.type(weights ? s.operands[1] : s.anchor);
      const std::int64_t rows = (y[2] - 1) * w.stride[0] + filter[2];
      const std::int64_t columns = (y[3] - 1) * w.stride[1] + filter[3];
      t.scratch =
          fresh((image[0] * image[1] * rows * columns + 16 * w.stride[1] + filter[3]) * size);
    }
  }
  constexpr void link_operands(const group& s, plan_step& t) {
    list<buffer_ref> links;
    for (node_id o : g.operands(s.anchor)) links.push_back(locate(o, layout::plain));
    t.first_link = int(plan_.links.size());
    t.link_count = int(links.size());
    plan_.links.insert(plan_.links.end(), links.begin(), links.end());
  }

  /// Bytes of the right operand of a product in the kernel's own order, if it is worth packing once
  /// for many calls.
  constexpr std::int64_t packed_weights(const group& s) const {
    const product_form f = form_of_product(g, s.anchor);
    const std::int64_t size = std::int64_t(size_of(options_.element));
    if (!worth_packing(f, size) || !keeps_its_value(source(s.operands[f.exchanged ? 0 : 1])))
      return 0;
    const std::int64_t wide = 2 * options_.lanes;
    return (f.columns + wide - 1) / wide * wide * f.depth * size;
  }
  /// Reads walk samples, heads and places.
  constexpr void attention_operands(const group& s, plan_step& t) {
    const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
    const bool gradient = s.kind == step_kind::attention_gradient;
    const heads_walk& y = gradient ? p.query_gradient : p.result;
    t.extents = {p.batch, p.heads, p.queries, p.width, p.value_width, p.causal, y.batch, y.head,
                 y.place, p.keys,  0,         0};
    if (gradient)
      std::tie(t.extents[9], t.extents[10], t.extents[11]) =
          std::tuple(p.query_gradient.offset, p.key_gradient.offset, p.value_gradient.offset);
    std::array<heads_walk, 4> reads{p.query, p.key, p.value, p.cotangent};
    for (int k = 0; k < (gradient ? 4 : 3); ++k) {
      const heads_walk& w = reads[std::size_t(k)];
      t.reads[std::size_t(t.read_count++)] = {.value = w.value,
                                              .how = access::moving,
                                              .at = locate(w.value, layout::plain),
                                              .first = w.offset,
                                              .strides = {w.batch, w.head, w.place}};
    }
  }

  /// What the group's expressions read from memory, each value once.
  constexpr void leaves(const group& s, plan_step& t) {
    const bool loops = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
    if (loops) loop_domain(s, t);
    if (s.kind == step_kind::reduce && !cut_.member(s, s.operands[0]))
      read(s, t, s.operands[0], true);
    if (s.kind == step_kind::cross_entropy || runs_alone(s.kind) || s.kind == step_kind::control ||
        s.pattern >= 0 || s.kind == step_kind::max_pool)
      return;
    for (node_id m : s.members) {
      if (m == s.anchor && s.kind != step_kind::elementwise) continue;
      if (!cut_.in_registers(m) || cut_.is_alias(m)) continue;
      const bool prologue = cut_.prologue(s, m);
      for (node_id o : g.operands(m)) {
        if (!cut_.member(s, o) && !cut_.is_constant(o))
          read(s, t, o, s.kind == step_kind::elementwise || prologue);
      }
    }
    if (loops) {
      parts(s, t);
      collapse_loops(t);
    }
  }

  /// Outputs that are written to their place in a concatenation.
  constexpr void parts(const group& s, plan_step& t) {
    for (node_id m : s.members) {
      for (node_id c : cut_.users(m)) {
        if (!cut_.is_assembled(c)) continue;
        const auto axis =
            std::size_t(g.nodes[std::size_t(c)].attributes.as<concat_op::options>().axis);
        const auto whole = row_major_strides(g.type(c).shape);
        step_output o{.value = m, .at = assembled(c), .part = true};
        for (node_id before : g.operands(c)) {
          if (before == m) break;
          o.first += g.type(before)[int(axis)] * whole[axis];
        }
        for (int d = 0; d < t.loops; ++d) o.strides[std::size_t(d)] = whole[std::size_t(d)];
        t.outputs[std::size_t(t.output_count++)] = o;
      }
    }
  }
  constexpr void loop_domain(const group& s, plan_step& t) const {
    const node_id n = s.kind == step_kind::reduce ? s.operands[0] : s.anchor;
    shape d = g.type(n).shape;
    if (s.arrangement == layout::lanes) d[0] = (d[0] + options_.lanes - 1) / options_.lanes;
    if (s.arrangement == layout::blocked) d[1] /= options_.lanes;
    t.loops = d.rank ? d.rank : 1;
    if (t.loops > max_loops) {
      // Leading axes are one loop as long as no operand is broadcast along them; checked in `read`.
      t.loops = max_loops;
    }
    for (int i = 0; i < t.loops; ++i) t.loop[std::size_t(i)] = d.rank ? d[i] : 1;
    if (s.kind == step_kind::reduce) {
      t.folded = g.nodes[std::size_t(s.anchor)].attributes.as<axes_options>().axes;
      // samples, whether the lanes are summed, too
      t.extents = {g.type(n)[0], t.folded & (s.arrangement == layout::lanes)};
    }
  }

  constexpr void read(const group& s, plan_step& t, node_id n, bool in_loops) {
    if (t.find_read(n) >= 0) return;
    operand_read l{.value = n};
    const bool lanes = s.arrangement == layout::lanes;
    const bool broadcast = cut_.is_broadcast(n);
    const bool part = in_loops && cut_.is_part(n);
    const node_id from = broadcast || part ? g.operand(n, 0) : n;
    const tensor_type t_from = g.type(from);
    if (cut_.is_draw(n)) {
      l.how = access::drawn;
      l.at = stream_of(n);
      const auto own = row_major_strides(g.type(n).shape);
      for (std::size_t d = 0; d < std::size_t(g.type(n).rank()); ++d) l.strides[d] = own[d];
    } else if (in_loops && s.arrangement == layout::blocked) {
      read_blocks(l, n, from);
    } else if (in_loops) {
      const bool batched = cut_.batched[std::size_t(from)] != 0;
      l.at = locate(from, lanes && batched ? layout::lanes : layout::plain);
      shape stored = t_from.shape;
      if (lanes && batched) stored[0] = int(t.loop[0]);
      const auto own = row_major_strides(stored);
      if (broadcast) {
        const auto o = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>();
        for (int d = 0; d < stored.rank; ++d)
          l.strides[std::size_t(o.axes[std::size_t(d)])] = own[std::size_t(d)];
      } else if (part) {
        const auto o = g.nodes[std::size_t(n)].attributes.as<slice_op::options>();
        for (std::size_t d = 0; d < std::size_t(stored.rank); ++d) {
          l.first += o.start[d] * own[d];
          l.strides[d] = own[d] * o.step[d];
        }
      } else {
        for (int d = 0; d < stored.rank; ++d) l.strides[std::size_t(d)] = own[std::size_t(d)];
      }
      l.how = access::moving;  // or fixed: known once the loops are collapsed
      if (lanes && !batched) l.how = access::fixed;
    } else if (broadcast) {
      l.at = locate(from, layout::plain);
      const auto axis = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>().axes[0];
      l.how = t_from.size() == 1   ? access::scalar
              : axis == s.row_axis ? access::row
                                   : access::column;
    } else {
      const node_id value = s.accumulated >= 0 ? s.accumulated : s.anchor;
      const bool blocks = s.arrangement == layout::blocked && cut_.blocked[std::size_t(value)];
      l.at = locate(from, blocks                                      ? layout::blocked
                          : lanes && cut_.batched[std::size_t(value)] ? layout::lanes
                                                                      : layout::plain);
      l.how = access::same;
    }
    if (t.read_count == int(t.reads.size())) {
      fault_ = text() << "a fused group reads more than " << t.reads.size() << " values";
      return;
    }
    t.reads[std::size_t(t.read_count++)] = l;
  }

  /// In loops over samples, blocks, rows and columns: vectors of channels, or one number for all of
  /// them.
  constexpr void read_blocks(operand_read& l, node_id n, node_id from) {
    const bool broadcast = cut_.is_broadcast(n);
    shape stored = g.type(from).shape;
    std::array<std::int8_t, max_rank> axes{0, 1, 2, 3};
    if (broadcast) axes = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>().axes;
    l.at = locate(from, broadcast ? layout::plain : layout::blocked);
    l.how = access::fixed;
    for (int d = 0; d < stored.rank; ++d) {
      if (axes[std::size_t(d)] != 1 || g.type(from).size() == 1) continue;
      l.how = access::moving;
      stored[d] /= options_.lanes;
    }
    const auto own = row_major_strides(stored);
    for (int d = 0; d < stored.rank; ++d) {
      if (stored[d] > 1) l.strides[std::size_t(axes[std::size_t(d)])] = own[std::size_t(d)];
    }
  }

  /// Members that somebody outside the group reads are written to memory.
  constexpr void outputs(const group& s, plan_step& t) {
    auto put = [&](node_id n) {
      if (t.output_count == int(t.outputs.size())) {
        fault_ = text() << "a fused group writes more than " << t.outputs.size() << " values";
        return;
      }
      const node_id value = s.accumulated >= 0 ? s.accumulated : s.anchor;
      const bool lanes =
          s.arrangement == layout::lanes && cut_.batched[std::size_t(value)] && !runs_alone(s.kind);
      const bool blocks = s.arrangement == layout::blocked && cut_.blocked[std::size_t(value)];
      const layout a = blocks ? layout::blocked : lanes ? layout::lanes : layout::plain;
      buffer_ref at = a == layout::plain || replaced_input(n) >= 0 ? destination(n) : buffer_ref{};
      if (!at.valid()) at = fresh(bytes_of(n, a));
      remember(n, a, {0, 0}, at);
      t.outputs[std::size_t(t.output_count++)] = {n, at};
    };
    if (s.kind == step_kind::max_pool) {
      for (int k = 0; k < 2; ++k) {
        const node_id first = cut_.get_of(s.anchor, k);
        if (k == 1 && first < 0) break;
        const tensor_type type = g.result_type(s.anchor, k);
        const buffer_ref at = fresh(type.size() * std::int64_t(size_of(options_.element)));
        for (node_id u : cut_.users(s.anchor)) {
          if (g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k)
            remember(u, layout::blocked, {0, 0}, at);
        }
        t.outputs[std::size_t(t.output_count++)] = {first, at};
      }
      return;
    }
    if (runs_alone(s.kind) || s.kind == step_kind::control) {
      const node& x = g.nodes[std::size_t(s.anchor)];
      if (!x.result_count) {
        put(s.anchor);
        if (s.kind == step_kind::control) link_result(t, t.outputs[0].at);
        return;
      }
      for (int k = 0; k < x.result_count; ++k) {
        const buffer_ref at = place_of_result(s.anchor, k);
        if (s.kind == step_kind::control)
          link_result(t, at);
        else
          t.outputs[std::size_t(t.output_count++)] = {cut_.get_of(s.anchor, k), at};
      }
      return;
    }
    if (s.pattern >= 0) {
      const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
      if (s.kind == step_kind::attention) return put(p.result.value);
      if (p.joined) return put(p.last);
      for (const heads_walk* w : {&p.query_gradient, &p.key_gradient, &p.value_gradient})
        put(w->value);
      return;
    }
    if (s.kind == step_kind::cross_entropy) {
      const buffer_ref loss = fresh(bytes_of(s.operands[3], layout::plain));
      remember(s.operands[3], layout::plain, {0, 0}, loss);
      t.outputs[0] = {s.operands[3], loss};
      t.output_count = 1;
      if (s.operands[2] >= 0) {
        const buffer_ref at = fresh(bytes_of(s.operands[2], s.arrangement));
        remember(s.operands[2], s.arrangement, {0, 0}, at);
        t.outputs[1] = {s.operands[2], at};
        t.output_count = 2;
      }
      return;
    }
    if (s.corners >= 0) {
      // Four masks of 16 bits for each vector of pooled values.
      t.corners = fresh(bytes_of(s.accumulated, layout::lanes) /
                        (options_.lanes * std::int64_t(size_of(options_.element))) * 8);
      remember(s.corners, layout::lanes, {0, 0}, t.corners);
    }
    for (node_id m : s.members) {
      if (m == s.corners || cut_.is_alias(m)) continue;
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      const node& x = g.nodes[std::size_t(m)];
      if (x.result_count || x.type.element == dtype::boolean) continue;
      if (x.op == &get_info_of && m != s.accumulated) continue;
      if (cut_.prologue(s, m)) continue;
      if (s.kind == step_kind::convolution_pool_weight_gradient && m != s.accumulated &&
          !cut_.in_registers(m))
        continue;
      bool placed = false;
      for (int k = 0; k < t.output_count; ++k) placed |= t.outputs[std::size_t(k)].value == m;
      if (!placed && read_outside(s, m)) put(m);
    }
  }
  constexpr void link_result(plan_step& t, buffer_ref at) {
    plan_.links.push_back(at);
    ++t.link_count;
  }
  /// Makes a place for result `k` of node `n`.
  constexpr buffer_ref place_of_result(node_id n, int k) {
    const node_id first = cut_.get_of(n, k);
    buffer_ref at = first >= 0 && replaced_input(first) < 0 ? destination(first) : buffer_ref{};
    if (!at.valid()) at = fresh(g.result_type(n, k).bytes());
    for (node_id u : cut_.users(n)) {
      if (g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k)
        remember(u, layout::plain, {0, 0}, at);
    }
    return at;
  }
  /// Floating-point operations and bytes moved, for profiles and tables.
  constexpr void count(const group& s, plan_step& t) const {
    const node& x = g.nodes[std::size_t(s.anchor)];
    if (s.pattern >= 0) {
      const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
      const std::int64_t pairs = p.causal ? std::int64_t{p.queries} * (p.queries + 1) / 2
                                          : std::int64_t{p.queries} * p.keys;
      const std::int64_t widths = s.kind == step_kind::attention ? p.width + p.value_width
                                                                 : 3 * p.width + 2 * p.value_width;
      t.flops = 2 * p.batch * p.heads * pairs * widths;
    } else if (x.op->kind == op_kind::bilinear && x.op->space) {
      const std::array types{g.type(g.operand(s.anchor, 0)), g.type(g.operand(s.anchor, 1))};
      t.flops = 2 * x.op->space(types, x.attributes).points();
    } else if (s.kind == step_kind::control) {
      for (int r : x.regions) {
        if (r >= 0 && !is<call_op>(x)) t.flops += runs_of_regions(x) * operations_of_region(g, r);
      }
    } else {
      t.flops = g.type(s.anchor).size() * std::int64_t(s.members.size());
    }
    for (node_id o : s.operands) {
      if (o >= 0) t.bytes += g.type(o).bytes();
    }
    for (int k = 0; k < t.read_count; ++k) {
      const operand_read& r = t.reads[std::size_t(k)];
      if (r.how != access::drawn) t.bytes += g.type(r.value).bytes();
    }
    for (int k = 0; k < t.output_count; ++k) {
      if (t.outputs[std::size_t(k)].value >= 0)
        t.bytes += g.type(t.outputs[std::size_t(k)].value).bytes();
    }
  }
};

}  // namespace cella
