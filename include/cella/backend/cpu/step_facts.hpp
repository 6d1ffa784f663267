// What the kernels of a step need to know: where its values lie, how large they are, and what
// follows from each result.
#pragma once

#include <cella/backend/cpu/blocked_steps.hpp>
#include <cella/backend/cpu/convolution.hpp>
#include <cella/backend/cpu/expression.hpp>
#include <cella/backend/cpu/lanes_convolution.hpp>
#include <cella/backend/cpu/lanes_dense.hpp>
#include <cella/backend/cpu/loops.hpp>
#include <cella/backend/cpu/product_of.hpp>
#include <cella/backend/cpu/run_context.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/passes/product_form.hpp>

namespace cella::cpu {

/// Base addresses of the memory spaces; arguments follow from `first_argument` on.
struct memory {
  std::byte* const* base{};
  run_context* context{};

  template <class T>
  T* at(buffer_ref r) const {
    return reinterpret_cast<T*>(base[r.space] + r.offset);
  }
};

/// Step I of program P.
template <class P, int I>
struct step_facts {
  using T = element<P::element_type>;
  static constexpr const plan_step& s = P::plan.steps[std::size_t(I)];
  static constexpr auto& g = P::graph;
  static constexpr bool in_lanes = s.arrangement == layout::lanes;
  static constexpr bool in_blocks = s.arrangement == layout::blocked;
  static constexpr bool whole_vectors = in_lanes || in_blocks;
  static constexpr int L = lanes<T>;
  static constexpr int extent(int i) { return int(s.extents[std::size_t(i)]); }

  // ---- epilogues

  static const T* first_read(const memory& m, int k) {
    const operand_read& r = s.reads[std::size_t(k)];
    return m.at<const T>(r.at) + r.first;
  }
  static auto addresses_in(const memory& m) {
    addresses<T, s.read_count, s.output_count> a;
    for (int k = 0; k < s.read_count; ++k) a.in[std::size_t(k)] = first_read(m, k);
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      a.out[std::size_t(k)] = m.at<T>(o.at) + o.first;
    }
    return a;
  }
  static constexpr int samples = extent(0);
  static constexpr bool ragged = in_lanes && samples % L != 0;

  /// Lane vectors per block of samples in the outputs.
  static constexpr std::int64_t features() { return g.type(s.outputs[0].value).size() / samples; }
  static constexpr dead_lanes dead() {
    return {ragged ? samples / L * features() : 0, first_bits(ragged ? samples % L : L)};
  }
  static auto lanes_epilogue(const memory& m) {
    return lanes_sink<T, s.read_count, ragged, line_of_outputs<P, I>>{addresses_in(m), dead()};
  }
  static auto plain_epilogue(const memory& m) {
    return plain_sink<T, s.read_count, line_of_outputs<P, I>>{addresses_in(m)};
  }
  static auto blocked_epilogue(const memory& m) {
    return blocked_sink<T, s.read_count, line_of_outputs<P, I>>{addresses_in(m)};
  }

  /// What becomes of the sum that the kernel yields beside its result.
  static auto side_epilogue([[maybe_unused]] const memory& m) {
    if constexpr (s.side < 0)
      return discard{};
    else
      return step_facts<P, s.side>::plain_epilogue(m);
  }

  /// Whether a result is stored past the caches.
  static constexpr bool passes_caches() {
    for (int k = 0; k < s.output_count; ++k) {
      const node_id n = s.outputs[std::size_t(k)].value;
      if (n >= 0 && cpu::passes_caches(s, g.type(n), n, L)) return true;
    }
    return false;
  }

  // ---- extents

  static constexpr lanes_convolution_extents lanes_window() {
    return {lane_blocks<T>(samples),
            extent(1),
            extent(2),
            extent(3),
            extent(4),
            extent(5),
            extent(6),
            extent(7),
            extent(8),
            extent(9),
            extent(10)};
  }
  /// Filter widths that have a kernel of their own.
  static constexpr int fixed_width() {
    return extent(8) == 1 && (extent(6) == 1 || extent(6) == 3 || extent(6) == 5 || extent(6) == 7)
               ? extent(6)
               : 0;
  }
  static constexpr convolution_extents plain_window() {
    const auto o =
        g.nodes[std::size_t(s.anchor)].attributes.template as<convolution_options>().window;
    return {samples,
            extent(1),
            extent(4),
            o.groups,
            {extent(2), extent(5), o.stride[0], o.before[0], o.after[0], o.dilation[0]},
            {extent(3), extent(6), o.stride[1], o.before[1], o.after[1], o.dilation[1]}};
  }
  static constexpr lanes_image_extents image() {
    return {samples, extent(1), extent(2), extent(3), extent(4), extent(5)};
  }
  static constexpr lanes_dense_weight_extents dense_weights() {
    return {lane_blocks<T>(samples), extent(1), extent(2)};
  }
  static constexpr loop_nest<s.read_count> nest() {
    loop_nest<s.read_count> n{s.loops, s.loop, {}, s.folded};
    for (int k = 0; k < s.read_count; ++k)
      n.stride[std::size_t(k)] = s.reads[std::size_t(k)].strides;
    return n;
  }
  /// For outputs that are parts of larger tensors: elements per loop; dense ones have none.
  static constexpr auto output_strides() {
    std::array<std::array<std::int64_t, max_loops>, std::size_t(s.output_count)> strides{};
    for (int k = 0; k < s.output_count; ++k) {
      if (s.outputs[std::size_t(k)].part)
        strides[std::size_t(k)] = s.outputs[std::size_t(k)].strides;
    }
    return strides;
  }
  /// The type that the operands of a product are stored in.
  static constexpr dtype operand_type() {
    return s.kind == step_kind::product ? g.type(g.operand(s.anchor, 0)).element : P::element_type;
  }
  using stored_type = element<operand_type()>;
  static constexpr product<T, stored_type> matrices(const stored_type* left,
                                                    const stored_type* right) {
    constexpr product_form f =
        s.kind == step_kind::product ? form_of_product(g, s.anchor) : product_form{};
    return product_of<T>(f, left, right);
  }

  static constexpr bool packs_weights() {
    return s.kind == step_kind::product && !in_lanes && s.in[3].valid();
  }
  /// The product as it is computed: with its weights packed where the plan says so.
  static constexpr product<T, stored_type> with_packed(product<T, stored_type> p, const T* packed) {
    if (packs_weights()) {
      p.packed_b = true;
      p.packed = packed;
    }
    return p;
  }
  static product<T, stored_type> matrices(const memory& m) {
    return matrices(m.at<const stored_type>(s.in[0]), m.at<const stored_type>(s.in[1]));
  }
  static product<T, stored_type> packed_matrices(const memory& m) {
    return with_packed(matrices(m), packs_weights() ? m.at<const T>(s.in[3]) : nullptr);
  }
  static constexpr product<T, stored_type> planned_product() {
    return with_packed(matrices(nullptr, nullptr), nullptr);
  }
};

}  // namespace cella::cpu
