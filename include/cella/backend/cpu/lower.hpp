// From a step of a plan to a call of a kernel, at compile time: extents, addresses and the epilogue
// are constants of the program.
#pragma once

#include <cella/backend/cpu/attention.hpp>
#include <cella/backend/cpu/best_position.hpp>
#include <cella/backend/cpu/convolution.hpp>
#include <cella/backend/cpu/convolution_input_gradient.hpp>
#include <cella/backend/cpu/convolution_weight_gradient.hpp>
#include <cella/backend/cpu/indexed_rows.hpp>
#include <cella/backend/cpu/lanes_convolution.hpp>
#include <cella/backend/cpu/lanes_convolution_weights.hpp>
#include <cella/backend/cpu/lanes_dense.hpp>
#include <cella/backend/cpu/lanes_softmax.hpp>
#include <cella/backend/cpu/lower_blocks.hpp>
#include <cella/backend/cpu/permute.hpp>
#include <cella/backend/cpu/records.hpp>
#include <cella/backend/cpu/row_loops.hpp>
#include <cella/backend/cpu/short_rows.hpp>
#include <cella/backend/cpu/single_sample.hpp>
#include <cella/backend/cpu/softmax.hpp>
#include <cella/backend/cpu/softmax_rows.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <utility>

namespace cella::cpu {

/// One call of a kernel, for step `step` of the plan: `units` independent units of work, `scratch`
/// bytes for each thread.
struct kernel_call {
  void (*run)(const memory&, work_range, std::byte* scratch){};
  int units{};
  int step{};
  std::int64_t scratch{};
};

/// A step that runs regions: control.hpp.
template <class P, int I>
class control_step;

/// Step I of program P as one or more calls in sequence. `prepare` marks work that depends on
/// parameters only and is done again when they change.
template <class P, int I>
struct lowered : lowered_in_blocks<P, I> {
  using facts = step_facts<P, I>;
  using facts::addresses_in, facts::first_read, facts::dead, facts::whole_vectors;
  using facts::dense_weights;
  using facts::lanes_epilogue, facts::plain_epilogue, facts::blocked_epilogue, facts::side_epilogue;
  using facts::lanes_window, facts::plain_window, facts::fixed_width, facts::image;
  using facts::matrices, facts::packed_matrices, facts::planned_product, facts::packs_weights;
  using facts::s, facts::g, facts::in_lanes, facts::in_blocks, facts::L, facts::extent;
  using facts::samples, facts::ragged, facts::features, facts::nest, facts::output_strides;
  using typename facts::T;

  // ---- one function per kind of step

  template <int Phase>
  static void run(const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    const auto in = [&](int k) { return m.at<const T>(s.in[std::size_t(k)]); };
    if constexpr (has_blocked_kernel(s)) {
      lowered_in_blocks<P, I>::template run_blocks<Phase>(m, units, scratch);
    } else if constexpr (s.kind == step_kind::elementwise) {
      run_elementwise(m, units);
    } else if constexpr (s.kind == step_kind::reduce) {
      run_sum(m, units);
    } else if constexpr (s.kind == step_kind::convolution && in_lanes) {
      lanes_convolution<fixed_width(), lanes_convolution_tiles(lanes_window())>(
          units, lanes_window(), in(0), in(1), lanes_epilogue(m));
    } else if constexpr (s.kind == step_kind::convolution) {
      convolution(plain_window(), in(0), in(1), plain_epilogue(m), scratch, units);
    } else if constexpr (s.kind == step_kind::convolution_pool && in_lanes) {
      const pooled_sink<T, decltype(lanes_epilogue(m)), s.corners.valid()> sink{
          lanes_epilogue(m), s.corners.valid() ? m.at<std::uint16_t>(s.corners) : nullptr};
      lanes_convolution_pool<fixed_width(), lanes_convolution_pool_tiles(lanes_window())>(
          units, lanes_window(), in(0), in(1), sink);
    } else if constexpr (s.kind == step_kind::convolution_pool) {
      run_single_sample<Phase>(m, units);
    } else if constexpr (s.kind == step_kind::convolution_input_gradient && in_lanes) {
      constexpr auto e = lanes_window();
      lanes_convolution_input_gradient<short_row(e), lanes_convolution_input_gradient_tiles(e)>(
          units, e, in(0), in(1), lanes_epilogue(m));
    } else if constexpr (s.kind == step_kind::convolution_input_gradient) {
      convolution_input_gradient(plain_window(), in(1), in(0), plain_epilogue(m), scratch, units);
    } else if constexpr (s.kind == step_kind::convolution_weight_gradient && in_lanes) {
      lanes_convolution_weight_gradient<
          fixed_width(), lanes_convolution_weight_gradient_tiles<fixed_width()>(lanes_window())>(
          units, lanes_window(), in(0), in(1), reinterpret_cast<T*>(scratch), plain_epilogue(m));
    } else if constexpr (s.kind == step_kind::convolution_weight_gradient) {
      convolution_weight_gradient(plain_window(), in(0), in(1), plain_epilogue(m), scratch, units);
    } else if constexpr (s.kind == step_kind::convolution_pool_weight_gradient) {
      lanes_convolution_pool_weight_gradient<
          fixed_width(), lanes_convolution_weight_gradient_tiles<fixed_width()>(lanes_window())>(
          units, lanes_window(), in(0), in(1), m.at<const std::uint16_t>(s.in[2]),
          reinterpret_cast<T*>(scratch), plain_epilogue(m), side_epilogue(m));
    } else if constexpr (s.kind == step_kind::max_unpool_2x2) {
      lanes_unpool(units, unpooled(), in(0), m.at<const std::uint16_t>(s.in[1]),
                   m.at<T>(s.outputs[0].at), side_epilogue(m));
    } else if constexpr (s.kind == step_kind::product && in_lanes) {
      constexpr lanes_dense_extents e{lane_blocks<T>(samples), extent(1), extent(2), extent(3),
                                      extent(4)};
      lanes_dense<lanes_dense_tiles(e)>(units, e, in(1), in(0), lanes_epilogue(m));
    } else if constexpr (s.kind == step_kind::product && packs_weights() && Phase == 0) {
      gemm_pack(matrices(m), m.at<T>(s.in[3]), units);
    } else if constexpr (s.kind == step_kind::product) {
      gemm(packed_matrices(m), plain_epilogue(m), scratch, units);
    } else if constexpr (s.kind == step_kind::product_weights && Phase == 0) {
      lanes_transpose(units, dense_weights(), in(1), m.at<T>(s.scratch));
    } else if constexpr (s.kind == step_kind::product_weights) {
      lanes_dense_weight_gradient<lanes_dense_weight_gradient_tiles<T>(dense_weights())>(
          units, dense_weights(), in(0), m.at<const T>(s.scratch), plain_epilogue(m));
    } else if constexpr (s.kind == step_kind::cross_entropy && in_lanes) {
      run_loss(m);
    } else if constexpr (s.kind == step_kind::cross_entropy) {
      run_rows_of_loss<Phase>(m, units);
    } else if constexpr (s.kind == step_kind::attention ||
                         s.kind == step_kind::attention_gradient) {
      run_attention(m, units, scratch);
    } else if constexpr (s.kind == step_kind::pack) {
      pack_lanes(units, image(), in(0), m.at<T>(s.outputs[0].at));
    } else if constexpr (s.kind == step_kind::unpack) {
      unpack_lanes(units, unbordered(), in(0), m.at<T>(s.outputs[0].at));
    } else if constexpr (s.kind == step_kind::border) {
      add_border(units, image(), in(0), m.at<T>(s.outputs[0].at));
    } else if constexpr (s.kind == step_kind::copy) {
      std::memcpy(m.at<std::byte>(s.outputs[0].at), m.at<const std::byte>(s.in[0]),
                  std::size_t(extent(0)));
    } else if constexpr (s.kind == step_kind::control) {
      control_step<P, I>::run(m);
    } else if constexpr (s.kind == step_kind::rows) {
      run_rows(m, units);
    } else if constexpr (s.kind == step_kind::softmax) {
      constexpr bool logarithm = is<log_softmax_op>(g.nodes[std::size_t(s.anchor)]);
      softmax<logarithm, rows_pass_caches()>(units, lines(), in(0), m.at<T>(s.outputs[0].at),
                                             reinterpret_cast<T*>(scratch));
    } else if constexpr (s.kind == step_kind::random_stream) {
      *m.at<std::uint64_t>(s.outputs[0].at) = stream_key(m);
    } else if constexpr (s.kind == step_kind::random_uniform && one_stream()) {
      uniform_numbers(units, stream_key(m), g.type(s.anchor).size(), m.at<T>(s.outputs[0].at));
    } else if constexpr (s.kind == step_kind::permute) {
      permute(units, permuted(), m.at<const moved>(s.in[0]), m.at<moved>(s.outputs[0].at));
    } else {
      run_generic(m, units, scratch);
    }
    if constexpr (facts::passes_caches()) finish_stores();
  }

  /// Units and scratch of each call, in sequence.
  static constexpr int phases() {
    if (has_blocked_kernel(s)) return blocked_step<T>{s}.phases();
    const bool rows_of_loss = s.kind == step_kind::cross_entropy && !in_lanes;
    if (single_sample()) return pads_image() ? 3 : 2;
    return s.kind == step_kind::product_weights || rows_of_loss || packs_weights() ? 2 : 1;
  }
  /// Whether the first phase depends on parameters only, or on the constants of a loop.
  static constexpr bool prepares() {
    constexpr bool region = !std::is_same_v<P, typename P::root>;
    return packs_weights() || (single_sample() && !region) ||
           (has_blocked_kernel(s) && blocked_step<T>{s}.keeps_filters());
  }
  static constexpr bool single_sample() {
    return s.kind == step_kind::convolution_pool && !in_lanes;
  }
  static constexpr int units(int phase) {
    if (has_blocked_kernel(s)) return blocked_step<T>{s}.units(phase);
    const auto w = lanes_window();
    switch (s.kind) {
      case step_kind::elementwise:
        return short_rows ? short_row_units(loops) : elementwise_units(loops);
      case step_kind::reduce:
        return short_rows ? short_row_units(loops) : sum_units<T, whole_vectors>(loops);
      case step_kind::convolution:
        return in_lanes ? lanes_convolution_units(w) : convolution_units<T>(plain_window());
      case step_kind::convolution_pool:
        if (in_lanes) return lanes_convolution_pool_units(w);
        if (phase < phases() - 1) return 1;
        return channels_in_lanes()
                   ? convolution_channels_units<pooling::maximum_2x2, T>(padded_window())
                   : convolution_pixels_units<pooling::maximum_2x2>(padded_window());
      case step_kind::convolution_input_gradient:
        return in_lanes ? lanes_convolution_input_gradient_units(w)
                        : convolution_input_gradient_units<T>(plain_window());
      case step_kind::convolution_weight_gradient:
        return in_lanes ? lanes_convolution_weight_gradient_units<fixed_width()>(w)
                        : convolution_weight_gradient_units<T>(plain_window());
      case step_kind::convolution_pool_weight_gradient:
        return lanes_convolution_weight_gradient_units<fixed_width()>(w);
      case step_kind::max_unpool_2x2:
        return lanes_unpool_units(unpooled());
      case step_kind::product:
        if (in_lanes)
          return lanes_dense_units(
              {lane_blocks<T>(samples), extent(1), extent(2), extent(3), extent(4)});
        if (packs_weights() && phase == 0) return gemm_pack_units(matrices(nullptr, nullptr));
        return gemm_units(planned_product());
      case step_kind::product_weights:
        return phase == 0 ? lanes_transpose_units<T>(dense_weights())
                          : lanes_dense_weight_gradient_units<T>(dense_weights());
      case step_kind::cross_entropy:
        return in_lanes || phase == 1 ? 1 : softmax_rows_units({samples, extent(1)});
      case step_kind::attention:
      case step_kind::attention_gradient:
        return attention_units(heads());
      case step_kind::pack:
        return pack_lanes_units<T>(image());
      case step_kind::unpack:
        return pack_lanes_units<T>(unbordered());
      case step_kind::border:
        return lane_blocks<T>(samples) * extent(1);
      case step_kind::rows:
        return row_units(row_sweep());
      case step_kind::softmax:
        return softmax_units<T>(lines());
      case step_kind::random_uniform:
        return one_stream() ? uniform_units(g.type(s.anchor).size()) : 1;
      case step_kind::permute:
        return permute_units<moved>(permuted());
      case step_kind::generic:
        if (indexes_rows<gather_op>()) return gather_units(table_rows());
        return indexes_rows<scatter_op>() ? scatter_units(table_rows()) : 1;
      default:
        return 1;
    }
  }
  static constexpr std::int64_t scratch_bytes() {
    constexpr auto size = std::int64_t{sizeof(T)};
    if (has_blocked_kernel(s)) return blocked_step<T>{s}.scratch();
    switch (s.kind) {
      case step_kind::convolution:
        return in_lanes ? 0 : convolution_scratch<T>(plain_window());
      case step_kind::convolution_input_gradient:
        return in_lanes ? 0 : convolution_input_gradient_scratch<T>(plain_window());
      case step_kind::convolution_weight_gradient:
        return in_lanes
                   ? size *
                         lanes_convolution_weight_gradient_scratch<T, fixed_width()>(lanes_window())
                   : convolution_weight_gradient_scratch<T>(plain_window());
      case step_kind::convolution_pool_weight_gradient:
        return size *
               lanes_convolution_pool_weight_gradient_scratch<T, fixed_width()>(lanes_window());
      case step_kind::product:
        return in_lanes ? 0 : gemm_scratch(planned_product());
      case step_kind::attention:
        return attention_scratch<T>(heads());
      case step_kind::attention_gradient:
        return attention_gradient_scratch<T>(heads());
      case step_kind::softmax:
        return rows_pass_caches() ? size * lines().extent : 0;
      case step_kind::generic:
        return indexes_rows<scatter_op>() ? scatter_scratch(table_rows()) : 0;
      default:
        return 0;
    }
  }

 private:
  static constexpr lanes_convolution_extents unpooled() {
    lanes_convolution_extents e;
    e.blocks = lane_blocks<T>(samples);
    e.in_channels = 1;
    e.height = extent(2);
    e.width = extent(3);
    e.out_channels = extent(1);
    e.kernel_height = e.kernel_width = 1;
    return e;
  }
  static constexpr lanes_image_extents unbordered() {
    lanes_image_extents e = image();
    e.padding_height = e.padding_width = 0;
    return e;
  }
  static constexpr convolution_extents padded_window() { return without_padding(plain_window()); }
  /// Output channels go into the lanes where they fill at least half of them.
  static constexpr bool channels_in_lanes() { return extent(4) * 2 > L || extent(8) != 1; }

  static constexpr auto loops = nest();
  static constexpr bool short_rows = !whole_vectors && has_short_rows<T>(loops);

  static void run_elementwise(const memory& m, work_range units) {
    using line = line_of_outputs<P, I>;
    if constexpr (short_rows) {
      static constexpr auto strides = output_strides();
      elementwise_short_rows<T, loops, strides, line>(units, addresses_in(m));
    } else {
      elementwise<T, s.read_count, whole_vectors, ragged_loops(), line>(
          units, loops, addresses_in(m), dead_in_loops(), output_strides());
    }
  }
  static constexpr int loop_samples() { return in_lanes ? int(g.type(s.outputs[0].value)[0]) : 1; }
  static constexpr bool ragged_loops() { return in_lanes && loop_samples() % L != 0; }
  static constexpr dead_lanes dead_in_loops() {
    if (!ragged_loops()) return {0, 0};
    return {loop_samples() / L * (g.type(s.outputs[0].value).size() / loop_samples()),
            first_bits(loop_samples() % L)};
  }

  static void run_sum(const memory& m, work_range units) {
    using term = line_of<P, I, g.operand(s.anchor, 0)>;
    addresses<T, s.read_count, 1> a;
    for (int k = 0; k < s.read_count; ++k) a.in[std::size_t(k)] = first_read(m, k);
    constexpr bool across = extent(1) != 0;
    constexpr lanes_of_sum how{in_lanes && across, in_lanes ? lane_blocks<T>(samples) : 1,
                               first_bits(samples % L ? samples % L : L)};
    if constexpr (in_blocks) {
      sum_loops<T, s.read_count, true, term>(units, loops, a, lanes_of_sum{}, lanes_epilogue(m));
    } else if constexpr (in_lanes && !across) {
      sum_loops<T, s.read_count, true, term>(units, loops, a, how, lanes_epilogue(m));
    } else {
      using fold = std::conditional_t<
          is<max_op>(g.nodes[std::size_t(s.anchor)]), extreme<true>,
          std::conditional_t<is<min_op>(g.nodes[std::size_t(s.anchor)]), extreme<false>, adding>>;
      if constexpr (short_rows)
        sum_short_rows<T, loops, term, fold>(units, a, plain_epilogue(m));
      else
        sum_loops<T, s.read_count, in_lanes, term, fold>(units, loops, a, how, plain_epilogue(m));
    }
  }

  /// Number `N` of a row: a sum over it, or what follows from such sums.
  template <node_id N>
  using row_number_at =
      row_number_of<line_of_row_number<P, I, N>, is<sum_op>(g.nodes[std::size_t(N)])>;
  static constexpr row_extents row_sweep() { return {extent(0), extent(1), extent(3)}; }
  static constexpr row_form written_as(int k) {
    const step_output& o = s.outputs[std::size_t(k)];
    return o.summed                    ? row_form::summed
           : s.find_stat(o.value) >= 0 ? row_form::once
                                       : row_form::each;
  }
  static void run_rows(const memory& m, work_range units) {
    [&]<std::size_t... K, std::size_t... O>(std::index_sequence<K...>, std::index_sequence<O...>) {
      row_loops(units, row_sweep(), addresses_in(m), row_numbers<row_number_at<s.stats[K]>...>{},
                row_outputs<line_of_outputs<P, I>, written_as(int(O))...>{});
    }
    (std::make_index_sequence<std::size_t(s.stat_count)>{},
     std::make_index_sequence<std::size_t(s.output_count)>{});
  }

  /// Packs the filters, gives the image a border if it needs one, convolves.
  template <int Phase>
  static void run_single_sample(const memory& m, work_range units) {
    constexpr auto e = padded_window();
    if constexpr (Phase == 0) {
      if constexpr (channels_in_lanes()) pack_channels(e, m.at<const T>(s.in[1]), m.at<T>(s.in[3]));
    } else if constexpr (pads_image() && Phase == 1) {
      pad_image(plain_window(), m.at<const T>(s.in[0]), m.at<T>(s.scratch));
    } else {
      const T* const image = m.at<const T>(pads_image() ? s.scratch : s.in[0]);
      if constexpr (channels_in_lanes()) {
        convolution_channels<pooling::maximum_2x2>(e, image, m.at<const T>(s.in[3]),
                                                   plain_epilogue(m), units);
      } else {
        convolution_pixels<pooling::maximum_2x2>(e, image, m.at<const T>(s.in[1]),
                                                 plain_epilogue(m), units);
      }
    }
  }
  static constexpr bool pads_image() { return s.scratch.valid(); }

  static constexpr attention_extents heads() {
    const bool gradient = s.kind == step_kind::attention_gradient;
    return {extent(0), extent(1), extent(2),     gradient ? extent(2) : extent(9),
            extent(3), extent(4), extent(5) != 0};
  }
  static void run_attention(const memory& m, work_range units, std::byte* scratch) {
    const auto read = [&](int k) {
      const auto& strides = s.reads[std::size_t(k)].strides;
      return heads_view<const T>{first_read(m, k), strides[0], strides[1], strides[2]};
    };
    const auto write = [&](int k, std::int64_t offset) {
      T* const to = m.at<T>(s.outputs[std::size_t(std::min(k, s.output_count - 1))].at);
      return heads_view<T>{to + offset, s.extents[6], s.extents[7], s.extents[8]};
    };
    constexpr T scale = static_cast<T>(constant_factor(s.accumulated));
    if constexpr (s.kind == step_kind::attention) {
      attention(units, heads(), scale, read(0), read(1), read(2), write(0, 0), scratch);
    } else {
      attention_gradient(units, heads(), scale, read(0), read(1), read(2), read(3),
                         write(0, s.extents[9]), write(1, s.extents[10]), write(2, s.extents[11]),
                         scratch);
    }
  }

  static void run_loss(const memory& m) {
    const lanes_softmax_extents e{samples, extent(1)};
    constexpr T scale = static_cast<T>(constant_factor(s.outputs[0].value));
    T* gradient = s.output_count > 1 ? m.at<T>(s.outputs[1].at) : nullptr;
    std::array<T, std::size_t(lane_blocks<T>(samples))> losses{};
    lanes_softmax_cross_entropy({0, lanes_softmax_units<T>(e)}, e, m.at<const T>(s.in[0]),
                                m.at<const std::int32_t>(s.in[1]), scale, gradient, losses.data());
    T total{};
    for (T l : losses) total += l;
    *m.at<T>(s.outputs[0].at) = total;
  }
  /// The losses of the samples, then their sum.
  template <int Phase>
  static void run_rows_of_loss(const memory& m, work_range units) {
    T* const losses = m.at<T>(s.scratch);
    if constexpr (Phase == 0) {
      constexpr T scale = static_cast<T>(constant_factor(s.outputs[0].value));
      T* const gradient = s.output_count > 1 ? m.at<T>(s.outputs[1].at) : nullptr;
      softmax_cross_entropy_rows(units, {samples, extent(1)}, m.at<const T>(s.in[0]),
                                 m.at<const std::int32_t>(s.in[1]), scale, gradient, losses);
    } else {
      double total = 0;
      for (int i = 0; i < samples; ++i) total += double{losses[i]};
      *m.at<T>(s.outputs[0].at) = static_cast<T>(total);
    }
  }
  /// The constant that node n multiplies by.
  static constexpr double constant_factor(node_id n) {
    for (int k = 0; k < 2; ++k) {
      const node& o = g.nodes[std::size_t(g.operand(n, k))];
      if (is<constant_op>(o)) return o.attributes.template as<constant_op::options>().value;
    }
    return 1;
  }

  /// The anchor's operand, seen as lines along its axis.
  static constexpr search_extents searched() {
    const tensor_type x = g.type(g.operand(s.anchor, 0));
    const int axis =
        g.nodes[std::size_t(s.anchor)].attributes.template as<cella::detail::axis_options>().axis;
    return {x.shape.size(0, axis), x[axis], x.shape.size(axis + 1, x.rank())};
  }
  static constexpr softmax_extents lines() {
    const search_extents e = searched();
    return {e.outer, int(e.extent), e.inner};
  }
  static constexpr bool rows_pass_caches() { return facts::passes_caches() && lines().inner == 1; }
  /// Whether random numbers have one key, and not one for each index of leading axes.
  static constexpr bool one_stream() { return g.type(g.operand(s.anchor, 0)).size() == 2; }
  static std::uint64_t stream_key(const memory& m) {
    using options = random_uniform_op::options;
    return random_uniform_op::key_of(
        m.at<const std::uint64_t>(s.in[0]),
        g.nodes[std::size_t(s.anchor)].attributes.template as<options>().stream);
  }
  static constexpr permutation_extents permuted() {
    return permutation_of(
        g.type(g.operand(s.anchor, 0)).shape,
        g.nodes[std::size_t(s.anchor)].attributes.template as<transpose_op::options>().permutation);
  }
  /// What is moved where the axes of a tensor change places: elements of the anchor's size.
  using moved = element_of_size<size_of(g.nodes[std::size_t(s.anchor)].type.element)>;

  /// Copies a lanes tensor into one with a zero border. Units: planes.
  static void add_border(work_range units, lanes_image_extents e, const T* x, T* y) {
    for (int u = units.first; u < units.last; ++u) {
      const T* from = x + std::int64_t{u} * e.height * e.width * L;
      T* to = y + std::int64_t{u} * e.padded_height() * e.padded_width() * L;
      detail::clear_border(e, to);
      for (int h = 0; h < e.height; ++h) {
        T* row = to + (std::int64_t{h + e.padding_height} * e.padded_width() + e.padding_width) * L;
        std::memcpy(row, from + std::int64_t{h} * e.width * L,
                    sizeof(T) * std::size_t(e.width) * L);
      }
    }
  }

  /// Rows of a table of this program's element type by 32-bit or 64-bit indices; rows that are only
  /// moved may be of 16 bits.
  template <class Op>
  static constexpr bool indexes_rows() {
    const node& n = g.nodes[std::size_t(s.anchor)];
    const bool moves = is<gather_op>(n) && is_storage_only(n.type.element);
    if (!is<Op>(n) || (n.type.element != P::element_type && !moves)) return false;
    const dtype index = g.type(g.operand(s.anchor, 1)).element;
    return (index == dtype::i32 || index == dtype::i64) &&
           n.attributes.template as<cella::detail::indexing_options>().axis == 0;
  }
  static constexpr indexed_rows table_rows() {
    const bool reads = is<gather_op>(g.nodes[std::size_t(s.anchor)]);
    const tensor_type table = g.type(reads ? g.operand(s.anchor, 0) : s.anchor);
    return {table[0], table.shape.size(1, table.rank()), g.type(g.operand(s.anchor, 1)).size()};
  }
  /// The element type of operand k.
  template <int K>
  using operand_element = element<g.type(g.operand(s.anchor, K)).element>;

  template <class Op>
  static constexpr bool searches() {
    if constexpr (is<Op>(g.nodes[std::size_t(s.anchor)])) {
      return g.type(g.operand(s.anchor, 0)).element == P::element_type &&
             searched().extent <= most_positions<T>;
    }
    return false;
  }

  static void run_generic(const memory& m, work_range units, std::byte* scratch) {
    constexpr const node& n = g.nodes[std::size_t(s.anchor)];
    if constexpr (indexes_rows<gather_op>()) {
      gather_rows(units, table_rows(), m.at<const operand_element<0>>(s.in[0]),
                  m.at<const operand_element<1>>(s.in[1]),
                  m.at<operand_element<0>>(s.outputs[0].at));
      return;
    } else if constexpr (indexes_rows<scatter_op>()) {
      scatter_rows<facts::passes_caches()>(units, table_rows(), m.at<const T>(s.in[0]),
                                           m.at<const operand_element<1>>(s.in[1]),
                                           m.at<T>(s.outputs[0].at), scratch);
      return;
    } else if constexpr (searches<argmax_op>() || searches<argmin_op>()) {
      best_positions<is<argmax_op>(n)>(searched(), m.at<const T>(s.in[0]),
                                       m.at<std::int64_t>(s.outputs[0].at));
      return;
    }
    std::array<tensor_ref, std::size_t(n.operand_count ? n.operand_count : 1)> x{};
    for (int k = 0; k < n.operand_count; ++k) {
      const buffer_ref at =
          s.link_count ? P::plan.links[std::size_t(s.first_link + k)] : s.in[std::size_t(k)];
      x[std::size_t(k)] = {m.at<std::byte>(at), stored(g.type(g.operand(s.anchor, k)))};
    }
    std::array<tensor_ref, std::size_t(s.output_count)> y{};
    for (int k = 0; k < s.output_count; ++k) {
      y[std::size_t(k)] = {m.at<std::byte>(s.outputs[std::size_t(k)].at),
                           stored(n.result_count ? g.result_type(s.anchor, k) : n.type)};
    }
    if constexpr (n.type.element == dtype::record && is<add_op>(n))
      return add_records(m.context->records, x[0], x[1], y[0]);
    if constexpr (n.type.element == dtype::record && is<sum_op>(n))
      return sum_records(m.context->records, n.attributes.template as<axes_options>().axes, x[0],
                         y[0]);
    cella::compute(info_of<op_of<g.nodes[std::size_t(s.anchor)].op>>, n.attributes,
                   {x.data(), std::size_t(n.operand_count)}, y);
  }
};

}  // namespace cella::cpu
