// What a step's kernel works on: its operands, its extents and the memory that it needs beside
// them.
#pragma once

#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/plan/places.hpp>

namespace cella {

class plan_operands : public plan_places {
 protected:
  using plan_places::plan_places;

  constexpr void operands(const fusion_group& s, plan_step& t) {
    const layout a = s.arrangement;
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
        t.shape = convolution_step{.samples = image[0],
                                   .channels = image[1],
                                   .height = image[2],
                                   .width = image[3],
                                   .filters = filter[0],
                                   .kernel_height = filter[2],
                                   .kernel_width = filter[3],
                                   .stride_height = w.stride[0],
                                   .stride_width = w.stride[1],
                                   .padding_height = w.before[0],
                                   .padding_width = w.before[1]};
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
            const std::int64_t height = image[2] + w.before[0] + w.after[0];
            const std::int64_t width = image[3] + w.before[1] + w.after[1];
            if (height != image[2] || width != image[3])
              t.scratch = fresh(image[1] * height * width * size);
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
          t.shape = lanes_product_step{.samples = g.type(s.anchor)[0],
                                       .rows = g.type(s.anchor)[1],
                                       .inner = rows_first ? w[1] : w[0],
                                       .row_stride = rows_first ? w[1] : 1,
                                       .column_stride = rows_first ? 1 : w[1]};
        } else {
          t.in[0] = locate(s.operands[0], layout::plain);
          t.in[1] = locate(s.operands[1], layout::plain);
          if (const std::int64_t packed = packed_weights(s)) t.in[3] = fresh(packed, true);
        }
        break;
      case step_kind::product_weights: {
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        const lanes_weights_step e{g.type(s.operands[0])[0], g.type(s.operands[0])[1],
                                   g.type(s.operands[1])[1]};
        t.shape = e;
        t.scratch =
            fresh(align_up(e.samples, options_.lanes) * align_up(e.in_features, options_.lanes) *
                  std::int64_t(size_of(options_.element)));
        break;
      }
      case step_kind::max_unpool_2x2:
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        t.shape = image_step{g.type(s.anchor)[0], g.type(s.anchor)[1], g.type(s.anchor)[2],
                             g.type(s.anchor)[3]};
        break;
      case step_kind::max_pool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        t.shape = windows(s.anchor, g.type(s.operands[0]), g.result_type(s.anchor, 0));
        break;
      case step_kind::max_unpool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        t.in[1] = locate(s.operands[1], layout::blocked);
        t.shape = windows(s.anchor, g.type(s.anchor), g.type(s.operands[0]));
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
        t.shape = norm_step{x[0], x[1], int(x.shape.size(2, x.rank()))};
        const int slices = norm_slices(x[0], x[1] / (a == layout::blocked ? options_.lanes : 1));
        if (slices > 1)
          t.scratch =
              fresh(std::int64_t{2} * slices * x[1] * std::int64_t(size_of(options_.element)));
        break;
      }
      case step_kind::cross_entropy: {
        t.in[0] = locate(s.operands[0], a);
        t.in[1] = locate(s.operands[1], layout::plain);
        const tensor_type logits = g.type(s.operands[0]);
        t.shape = loss_step{logits[0], logits[1]};
        if (a == layout::plain)
          t.scratch = fresh(logits[0] * std::int64_t(size_of(options_.element)));
        break;
      }
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
      case step_kind::gather:
      case step_kind::scatter:
      case step_kind::best_position:
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

  constexpr pooling_step windows(node_id n, const tensor_type& image,
                                 const tensor_type& pooled) const {
    const auto o = g.nodes[std::size_t(n)].attributes.as<pooling_options>();
    const auto& w = o.window;
    return {image[0],    image[1],    image[2],    image[3],    o.kernel[0], o.kernel[1],
            w.stride[0], w.stride[1], w.before[0], w.before[1], pooled[2],   pooled[3]};
  }
  /// Packed filters, or sums of weight gradients, are `in[3]`; the padded copy of a plain image of
  /// few channels is the scratch.
  constexpr void blocked_convolution(const fusion_group& s, plan_step& t, const tensor_type& image,
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
    auto e = t.as<convolution_step>();
    e.keeps_filters = kept;
    e.form = few                 ? convolution_form::stem
             : minimal           ? convolution_form::winograd
             : shape.depthwise() ? convolution_form::depthwise
                                 : convolution_form::direct;
    t.shape = e;
    const int in_blocks = image[1] / L, out_blocks = filter[0] / L;
    std::int64_t elements =
        minimal ? winograd::filter_size(in_blocks, out_blocks, L) : filter.size();
    if (minimal && weights) {
      const int tiles =
          winograd::tiles(image[0], w.positions(image[2], 3, 0), w.positions(image[3], 3, 1));
      const int slices = winograd::gradient_slices(in_blocks, out_blocks, tiles, L, int(size));
      elements *= slices;
      // With several slices, each thread has tiles of its own.
      if (slices == 1)
        t.scratch = fresh(winograd::gradient_tiles_size(in_blocks, out_blocks, tiles, L) * size);
    } else if (weights && !few && !shape.depthwise()) {
      elements *= sample_slices(image[0], elements * size);
    }
    t.in[3] = fresh(elements * size, kept);
    if (few) {
      const tensor_type y = g.type(weights ? s.operands[1] : s.anchor);
      const std::int64_t rows = (y[2] - 1) * w.stride[0] + filter[2];
      const std::int64_t columns = (y[3] - 1) * w.stride[1] + filter[3];
      t.scratch =
          fresh((image[0] * image[1] * rows * columns + 16 * w.stride[1] + filter[3]) * size);
    }
  }
  constexpr void link_operands(const fusion_group& s, plan_step& t) {
    list<buffer_ref> links;
    for (node_id o : g.operands(s.anchor)) links.push_back(locate(o, layout::plain));
    t.first_link = int(plan_.links.size());
    t.link_count = int(links.size());
    plan_.links.insert(plan_.links.end(), links.begin(), links.end());
  }

  /// Bytes of the right operand of a product in the kernel's own order, if it is worth packing once
  /// for many calls.
  constexpr std::int64_t packed_weights(const fusion_group& s) const {
    const product_form f = form_of_product(g, s.anchor);
    const std::int64_t size = std::int64_t(size_of(options_.element));
    if (!worth_packing(f, size) || !keeps_its_value(source(s.operands[f.exchanged ? 0 : 1])))
      return 0;
    const std::int64_t wide = 2 * options_.lanes;
    return (f.columns + wide - 1) / wide * wide * f.depth * size;
  }
  /// Reads walk samples, heads and places.
  constexpr void attention_operands(const fusion_group& s, plan_step& t) {
    const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
    const bool gradient = s.kind == step_kind::attention_gradient;
    const heads_walk& y = gradient ? p.query_gradient : p.result;
    t.shape = attention_step{
        .samples = p.batch,
        .heads = p.heads,
        .queries = p.queries,
        .keys = gradient ? p.queries : p.keys,
        .width = p.width,
        .value_width = p.value_width,
        .causal = p.causal,
        .result = {y.batch, y.head, y.place},
        .offsets = {p.query_gradient.offset, p.key_gradient.offset, p.value_gradient.offset}};
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
};

}  // namespace cella
