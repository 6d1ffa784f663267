// What a step's kernel works on: its operands, its extents and the memory that it needs beside
// them.
#pragma once

#include <cella/ops/batch_norm.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/plan/places.hpp>

namespace cella {

/// The extents of a convolution of these images by these filters, or of a gradient of one.
constexpr convolution_step extents_of_convolution(const tensor_type& image,
                                                  const tensor_type& filter, const window& w) {
  return {.samples = image[0],
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
}
constexpr convolution_step extents_of_convolution(const fusion_groups& c, const fusion_group& s) {
  const bool weights = s.kind == step_kind::convolution_weight_gradient ||
                       s.kind == step_kind::convolution_pool_weight_gradient;
  const bool backward = s.kind == step_kind::convolution_input_gradient;
  return extents_of_convolution(c.g.type(backward ? s.anchor : s.operands[0]),
                                c.g.type(weights ? s.anchor : s.operands[1]),
                                c.at(s.anchor).attributes.as<convolution_options>().window);
}

/// Operands of steps of plain tensors; those of other formats are the back end's.
template <class Planning>
class step_operands {
 public:
  constexpr explicit step_operands(value_places<Planning>& where)
      : p(where), c(where.c), g(where.g) {}

  constexpr void find(const fusion_group& s, plan_step& t) {
    if (!Planning::operands(p, s, t)) find_plain(s, t);
    Planning::scratch(p, s, t);
  }

 private:
  constexpr void find_plain(const fusion_group& s, plan_step& t) {
    switch (s.kind) {
      case step_kind::convolution:
      case step_kind::convolution_input_gradient:
      case step_kind::convolution_weight_gradient:
        t.shape = extents_of_convolution(c, s);
        return plain(s, t, 2);
      case step_kind::product:
        return plain(s, t, 2);
      case step_kind::batch_norm:
      case step_kind::batch_norm_gradient:
        return norm_operands(s, t);
      case step_kind::cross_entropy:
        t.in[0] = p.locate(s.operands[0], s.arrangement);
        t.in[1] = p.locate(s.operands[1], layout::plain);
        t.shape = loss_step{g.type(s.operands[0])[0], g.type(s.operands[0])[1]};
        return;
      case step_kind::attention:
      case step_kind::attention_gradient:
        return attention_operands(s, t);
      case step_kind::control:
        return link_operands(s, t);
      default:
        if (step_traits(s.kind).alone) operands_of_operation(s, t);
    }
  }
  constexpr void plain(const fusion_group& s, plan_step& t, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) t.in[k] = p.locate(s.operands[k], layout::plain);
  }
  constexpr void operands_of_operation(const fusion_group& s, plan_step& t) {
    if (g.operands(s.anchor).size() > t.in.size()) return link_operands(s, t);
    std::size_t k = 0;
    for (node_id o : g.operands(s.anchor)) t.in[k++] = p.locate(o, layout::plain);
  }
  constexpr void link_operands(const fusion_group& s, plan_step& t) {
    list<buffer_ref> links;
    for (node_id o : g.operands(s.anchor)) links.push_back(p.locate(o, layout::plain));
    t.first_link = int(p.plan.links.size());
    t.link_count = int(links.size());
    p.plan.links.insert(p.plan.links.end(), links.begin(), links.end());
  }

  /// image, gamma, beta or dy, statistics, and the gradients of gamma and beta
  constexpr void norm_operands(const fusion_group& s, plan_step& t) {
    const layout a = s.arrangement;
    const bool backward = s.kind == step_kind::batch_norm_gradient;
    const node_id image = s.operands[backward ? 1 : 0];
    const tensor_type x = g.type(image);
    t.in[0] = p.locate(image, a);
    t.in[1] = p.locate(s.operands[backward ? 2 : 1], layout::plain);
    t.in[2] = backward ? p.locate(s.operands[0], a) : p.locate(s.operands[2], layout::plain);
    for (int k = 1; k < 3; ++k) {
      const auto at = std::size_t(2 + k);
      if (backward) t.in[at] = p.locate(g.operand(s.anchor, 2 + k), layout::plain);
      t.in[backward ? at + 2 : at] = p.place_of_result(s.anchor, k);
    }
    const stored_dtype image_element{std::int32_t(x.element)};
    const stored_dtype first{std::int32_t(g.type(s.operands[0]).element)};
    t.shape = norm_step{x[0], x[1], int(x.shape.size(2, x.rank())), image_element, first};
  }
  /// Reads walk samples, heads and places.
  constexpr void attention_operands(const fusion_group& s, plan_step& t) {
    const attention_pattern& a = c.patterns[std::size_t(s.pattern)];
    const bool gradient = s.kind == step_kind::attention_gradient;
    const heads_walk& y = gradient ? a.query_gradient : a.result;
    t.shape = attention_step{
        .samples = a.batch,
        .heads = a.heads,
        .queries = a.queries,
        .keys = gradient ? a.queries : a.keys,
        .width = a.width,
        .value_width = a.value_width,
        .causal = a.causal,
        .result = {y.batch, y.head, y.place},
        .offsets = {a.query_gradient.offset, a.key_gradient.offset, a.value_gradient.offset}};
    std::array<heads_walk, 4> reads{a.query, a.key, a.value, a.cotangent};
    for (int k = 0; k < (gradient ? 4 : 3); ++k) {
      heads_walk w = reads[std::size_t(k)];
      if (gradient && k < 3) w.value = a.read_again[std::size_t(k)];
      t.reads[std::size_t(t.read_count++)] = {.value = w.value,
                                              .how = access::moving,
                                              .at = p.locate(w.value, layout::plain),
                                              .first = w.offset,
                                              .strides = {w.batch, w.head, w.place}};
    }
  }

  value_places<Planning>& p;
  const fusion_groups& c;
  const graph& g;
};

}  // namespace cella
