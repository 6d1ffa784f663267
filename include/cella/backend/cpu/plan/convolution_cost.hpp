// Which kernel computes a convolution: a model of what each costs, in nanoseconds of one core. The
// layout of a program and the choice between the direct sum and Winograd's filtering ask it.
// `cella-tune` holds the model against measurements, and writes constants for a machine.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/backend/cpu/plan/winograd.hpp>
#include <cella/graph/graph.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/plan/options.hpp>

namespace cella {

enum class convolution_algorithm : std::uint8_t {
  plain,    ///< a product whose right operand is the shifted image (convolution.hpp)
  lanes,    ///< the batch in the lanes (lanes_convolution.hpp)
  direct,   ///< blocks of channels (blocked_convolution.hpp, blocked_stem.hpp)
  minimal,  ///< blocks of channels, Winograd's minimal filtering (blocked/winograd.hpp)
  modelled  ///< whichever the model finds fastest
};
inline constexpr int convolution_algorithms = 4;
/// What a plan is asked for.
constexpr convolution_algorithm algorithm_of(const plan_options& o) {
  return o.algorithm < 0 ? convolution_algorithm::modelled : convolution_algorithm(o.algorithm);
}
constexpr std::string_view name(convolution_algorithm a) {
  constexpr std::array<std::string_view, 5> names{"plain", "lanes", "direct", "Winograd",
                                                  "modelled"};
  return names[std::size_t(a)];
}

enum class convolution_pass : std::uint8_t { forward, image_gradient, filter_gradient };
inline constexpr int convolution_passes = 3;
constexpr std::string_view name(convolution_pass p) {
  constexpr std::array<std::string_view, 3> names{"forward", "image gradient", "filter gradient"};
  return names[std::size_t(p)];
}

/// What the cost of a convolution depends on: image [samples, channels, height, width], filters
/// [filters, channels / groups, kernel[0], kernel[1]], the walk, and the vectors of the machine.
struct convolution_shape {
  int samples{}, channels{}, height{}, width{}, filters{};
  std::array<std::int32_t, 2> kernel{1, 1};
  window walk{};
  dtype element = dtype::f32;
  int lanes = lanes_of<dtype::f32>();
  int summands = 1;      ///< of a word of the direct kernel: 2 where bf16 is multiplied in pairs
  bool by_unit = false;  ///< those pairs by the matrix unit
  /// The filters are packed or transformed when the program is prepared, not in each call.
  bool keeps_filters = false;

  friend constexpr bool operator==(const convolution_shape&, const convolution_shape&) = default;
  constexpr int out_height() const { return walk.positions(height, kernel[0], 0); }
  constexpr int out_width() const { return walk.positions(width, kernel[1], 1); }
  constexpr int taps() const { return kernel[0] * kernel[1]; }
  /// Multiplications of the plain sum.
  constexpr double products() const {
    return double(samples) * out_height() * out_width() * filters * (channels / walk.groups) *
           taps();
  }
  constexpr double image_size() const { return double(samples) * channels * height * width; }
  constexpr double result_size() const {
    return double(samples) * filters * out_height() * out_width();
  }
  constexpr double filter_size() const { return double(filters) * channels / walk.groups * taps(); }
  /// Few channels, which are broadcast from a plain image.
  constexpr bool stem() const { return channels < lanes && channels <= 4; }
  /// One tap and channels that are no whole blocks: the plain image is read as a stem's is.
  constexpr bool plain_source() const {
    const bool one_tap = kernel == std::array<std::int32_t, 2>{1, 1} &&
                         walk.stride == std::array<std::int32_t, 2>{1, 1} &&
                         walk.before == std::array<std::int32_t, 2>{0, 0};
    const int registers = vector_registers_of(lanes * int(size_of(element)));
    return one_tap && channels % lanes != 0 && width >= tile_pixels(registers);
  }
  constexpr bool same_padding() const { return walk.before == walk.after; }
  /// The channels that a pass sums over are whole rows of a matrix unit's tiles, or the pixels are.
  constexpr bool whole_unit_rows(convolution_pass p) const {
    return p == convolution_pass::filter_gradient ||
           (p == convolution_pass::forward ? channels : filters) % (2 * unit_words) == 0;
  }
  /// Each channel has one filter of its own.
  constexpr bool depthwise() const {
    return walk.groups > 1 && walk.groups == channels && filters == channels;
  }
};

/// What the model knows of a machine. The defaults were measured on one with AVX-512 whose loads
/// are half as many as its multiply-adds.
struct convolution_machine {
  double rate = 3.7;        ///< multiply-adds of vectors in registers, per nanosecond
  double transforms = 6.5;  ///< vectors of tiles that Winograd transforms, per nanosecond
  double copies = 12;       ///< bytes to and from memory, per nanosecond
  double cache = 1 << 20;   ///< bytes that stay near the core
  /// The part of the rate that the inner loops reach, for each algorithm and pass.
  std::array<std::array<double, convolution_passes>, convolution_algorithms> share{
      {{0.9, 0.72, 0.85}, {0.98, 0.87, 0.85}, {0.86, 0.85, 0.95}, {0.8, 0.72, 0.63}}};
  double unit = 6;  ///< times as many multiply-adds by the matrix unit, in pairs of bf16
};

/// Nanoseconds that each algorithm took for one shape and pass; 0: not measured.
struct measured_convolution {
  convolution_shape shape;
  convolution_pass pass{};
  std::array<double, convolution_algorithms> nanoseconds{};
};

}  // namespace cella

// What cella-tune wrote: `cella::tuning::machine` and `cella::tuning::measured`.
#ifdef CELLA_TUNED
#include <cella_tuning.hpp>
#else
namespace cella::tuning {
inline constexpr convolution_machine machine{};
inline constexpr std::array<measured_convolution, 0> measured{};
}  // namespace cella::tuning
#endif

namespace cella {

/// The convolution that node n computes, or whose gradient.
constexpr convolution_shape shape_of_convolution(const graph& g, node_id n, dtype element,
                                                 int lanes) {
  const node& x = g.nodes[std::size_t(n)];
  const tensor_type image = is<convolution_input_gradient_op>(x) ? x.type : g.type(g.operand(n, 0));
  const tensor_type filter =
      is<convolution_weight_gradient_op>(x) ? x.type : g.type(g.operand(n, 1));
  return {image[0],
          image[1],
          image[2],
          image[3],
          filter[0],
          {filter[2], filter[3]},
          x.attributes.as<convolution_options>().window,
          element,
          lanes};
}
constexpr bool is_convolution(const node& x) {
  return is<convolution_op>(x) || is<convolution_input_gradient_op>(x) ||
         is<convolution_weight_gradient_op>(x);
}
constexpr convolution_pass pass_of(const node& x) {
  return is<convolution_op>(x)                  ? convolution_pass::forward
         : is<convolution_input_gradient_op>(x) ? convolution_pass::image_gradient
                                                : convolution_pass::filter_gradient;
}

/// Whether there is such a kernel for the shape. (A stem's image has no gradient in blocks.)
constexpr bool has_kernel(convolution_algorithm a, const convolution_shape& s,
                          convolution_pass p = convolution_pass::forward) {
  const bool undilated = s.walk.dilation == std::array<std::int32_t, 2>{1, 1};
  const bool regular = undilated && s.same_padding(), simple = regular && s.walk.groups == 1;
  const bool computed = is_floating(s.element) && !is_storage_only(s.element);
  switch (a) {
    case convolution_algorithm::lanes:
      return simple;
    case convolution_algorithm::direct: {
      const bool blocks = s.channels % s.lanes == 0 && s.taps() <= 121;
      if (!regular || !computed || s.filters % s.lanes != 0) return false;
      if (s.walk.groups > 1) return s.depthwise() && blocks;
      return blocks || (s.stem() && p != convolution_pass::image_gradient) ||
             (s.plain_source() && p == convolution_pass::forward);
    }
    case convolution_algorithm::minimal:
      return simple && computed && s.filters % s.lanes == 0 && s.channels % s.lanes == 0 &&
             s.kernel == std::array<std::int32_t, 2>{3, 3} &&
             s.walk.stride == std::array<std::int32_t, 2>{1, 1} && s.walk.before[0] <= 2 &&
             s.walk.before[1] == s.walk.before[0];
    default:
      return true;
  }
}

namespace detail {

/// Answers for one shape, pass and machine.
class convolution_model {
 public:
  constexpr convolution_model(const convolution_shape& s, convolution_pass p,
                              const convolution_machine& m)
      : s_(s),
        pass_(p),
        m_(m),
        registers_(vector_registers_of(s.lanes * int(size_of(s.element)))) {}

  constexpr double nanoseconds(convolution_algorithm a) const {
    double steps = 0;
    switch (a) {
      case convolution_algorithm::plain:
        steps = plain();
        break;
      case convolution_algorithm::lanes:
        steps = in_lanes();
        break;
      case convolution_algorithm::direct:
        steps = direct();
        break;
      default:
        steps = products();
    }
    const double share = m_.share[std::size_t(a)][std::size_t(pass_)];
    const bool minimal = a == convolution_algorithm::minimal;
    // Kept filters are read as they were transformed.
    const double filters = minimal && s_.keeps_filters ? 0 : s_.filter_size();
    return steps / (m_.rate * share) + (minimal ? transforms() : 0) + memory(filters);
  }

 private:
  static constexpr double parts(double n, double size) {
    const auto whole = std::int64_t(n / size);
    return double(whole) + (double(whole) * size < n);
  }
  /// What a tile of so many accumulators takes for each step of its depth: multiply-adds, or the
  /// loads that feed them, of which there are half as many.
  static constexpr double tile(double rows, double columns, double loads) {
    return std::max(rows * columns, loads);
  }
  /// Channels that are read and written by this pass's inner loops.
  constexpr double pixels() const { return double(s_.out_height()) * s_.out_width(); }

  /// Rows are channels, cut into tiles that differ by at most one; columns are pixels of a padded
  /// image, two vectors of them.
  constexpr double plain() const {
    const double groups = s_.walk.groups, L = s_.lanes;
    double rows = s_.filters / groups, depth = s_.channels / groups * s_.taps();
    double columns = double(s_.out_height()) * (s_.width + s_.walk.before[1] + s_.walk.after[1]);
    if (pass_ == convolution_pass::image_gradient) {
      rows = s_.channels / groups;
      depth = s_.filters / groups * s_.taps();
      const double spread = double(s_.walk.stride[0]) * s_.walk.stride[1];
      depth /= spread;
      columns = double(s_.height) * (s_.width + s_.kernel[1] - 1);
    } else if (pass_ == convolution_pass::filter_gradient) {
      depth = columns;
      columns = s_.channels / groups * s_.taps();
    }
    const double most = registers_ == 32 ? 14 : 6, tiles = parts(rows, most);
    const double each = rows / tiles;
    const double strips = parts(columns, 2 * L);
    // Of one row, which begins and ends with each channel: measured.
    if (s_.depthwise() && pass_ == convolution_pass::forward)
      return s_.samples * groups * strips * depth * 16;
    return s_.samples * groups * tiles * strips * depth * tile(each, 2, each + 4);
  }
  constexpr double in_lanes() const {
    const double most = registers_ == 32 ? 4 : 2, columns = 4;
    const bool backward = pass_ == convolution_pass::image_gradient;
    const double rows = backward ? s_.channels : s_.filters;
    const double tiles = parts(rows, most), each = rows / tiles;
    const double other = backward ? s_.filters : s_.channels;
    return parts(s_.samples, s_.lanes) * tiles * pixels() / columns * other * s_.taps() *
           tile(each, columns, each + columns);
  }
  constexpr double direct() const {
    const double L = s_.lanes, most = registers_ == 32 ? 14 : 6;
    // Loads bound it: one for each multiply-add, and what it costs to begin and end rows.
    if (s_.depthwise()) return s_.samples * pixels() * (s_.taps() + 6) * (s_.channels / L);
    const bool backward = pass_ == convolution_pass::image_gradient;
    const double blocks = (backward ? s_.channels : s_.filters) / L;
    const double depth = s_.stem() ? s_.channels : backward ? s_.filters : s_.channels;
    // Two blocks at a time; one alone loads as much as it multiplies.
    const double pairs = double(std::int64_t(blocks / 2)), single = blocks - 2 * pairs;
    const double tiles = (s_.stem() || s_.plain_source()) && pass_ == convolution_pass::forward
                             ? s_.samples * double(s_.out_height()) * parts(s_.out_width(), most)
                             : parts(s_.samples * pixels(), most);
    const double step = pairs * tile(most, 2, most + 4) + single * tile(most, 1, most + 2);
    if (pass_ == convolution_pass::filter_gradient)
      return s_.samples * pixels() * s_.channels * s_.taps() *
             (s_.filters / L / at_once() + pairing());
    return tiles * depth * s_.taps() * step / at_once();
  }
  /// Multiply-adds of single precision that take as long as one of pairs.
  constexpr double at_once() const { return s_.by_unit ? m_.unit : s_.summands; }
  /// What it costs a filter's gradient to put pixels of the image together for each tap, as
  /// multiply-adds for each of them and its channels.
  constexpr double pairing() const {
    return s_.summands == 1 ? 0 : (s_.by_unit ? 3. : 10.) / s_.lanes;
  }
  /// Winograd's products of transformed tiles.
  constexpr double products() const {
    const double L = s_.lanes, most = registers_ == 32 ? 14 : 6;
    const double n = tiles();
    if (pass_ == convolution_pass::filter_gradient) {
      // Tiles of 8 channels; one block alone loads more than it multiplies.
      const double blocks = s_.filters / L;
      return cpu::winograd::products * n * s_.channels / 8 * tile(8, blocks, 8 + blocks);
    }
    const bool backward = pass_ == convolution_pass::image_gradient;
    const double blocks = (backward ? s_.channels : s_.filters) / L;
    const double pairs = double(std::int64_t(blocks / 2)), single = blocks - 2 * pairs;
    const double step = pairs * tile(most, 2, most + 4) + single * tile(most, 1, most + 2);
    return cpu::winograd::products * parts(n, most) * (backward ? s_.filters : s_.channels) * step;
  }
  constexpr double tiles() const {
    return pass_ == convolution_pass::image_gradient
               ? cpu::winograd::tiles(s_.samples, s_.height, s_.width)
               : cpu::winograd::tiles(s_.samples, s_.out_height(), s_.out_width());
  }
  /// Nanoseconds of Winograd's transforms: of tiles, of both operands or of operand and result, and
  /// of filters. Those are four times as large as the filters; what does not fit a cache is
  /// fetched, written and read, or read alone if they are kept from call to call. A filter gradient
  /// keeps the tiles of both operands in memory.
  constexpr double transforms() const {
    const double L = s_.lanes, size = double(size_of(s_.element));
    const double filters = cpu::winograd::products * double(s_.channels) * s_.filters;
    const double filter_bytes = filters * size;
    const double both = cpu::winograd::products * tiles() * (s_.channels + s_.filters);
    const double stored = pass_ == convolution_pass::filter_gradient ? both * size : 0;
    const double of_filters = filter_bytes > m_.cache
                                  ? (s_.keeps_filters ? 1 : 3) * filter_bytes / m_.copies
                              : s_.keeps_filters ? 0
                                                 : filters / L / m_.transforms;
    return both / L / m_.transforms + (stored > m_.cache ? stored / m_.copies : 0) + of_filters;
  }
  /// What does not fit a cache comes from memory once: image, result and so many numbers more.
  constexpr double memory(double filters) const {
    const double bytes =
        (s_.image_size() + s_.result_size() + filters) * double(size_of(s_.element));
    return bytes > m_.cache ? bytes / m_.copies : 0;
  }

  const convolution_shape& s_;
  convolution_pass pass_;
  const convolution_machine& m_;
  int registers_;
};

}  // namespace detail

/// What the model says of one algorithm.
constexpr double modelled_nanoseconds(convolution_algorithm a, const convolution_shape& s,
                                      convolution_pass p,
                                      const convolution_machine& m = tuning::machine) {
  return detail::convolution_model(s, p, m).nanoseconds(a);
}
/// What one algorithm costs: as it was measured here, or else as the model says. Each call that was
/// measured transformed its filters; the model says what is saved where they are kept.
constexpr double convolution_cost(convolution_algorithm a, const convolution_shape& s,
                                  convolution_pass p) {
  const double modelled = modelled_nanoseconds(a, s, p);
  convolution_shape as_measured = s;
  as_measured.keeps_filters = false;
  for (const measured_convolution& m : tuning::measured) {
    if (m.pass == p && m.shape == as_measured && m.nanoseconds[std::size_t(a)] > 0)
      return m.nanoseconds[std::size_t(a)] * modelled / modelled_nanoseconds(a, as_measured, p);
  }
  return modelled;
}

/// Winograd's filtering or the direct sum, of an image in blocks. `forced` is taken where it has a
/// kernel.
constexpr convolution_algorithm choose_in_blocks(const convolution_shape& s, convolution_pass p,
                                                 convolution_algorithm forced) {
  using enum convolution_algorithm;
  if (!has_kernel(minimal, s) || forced == direct) return direct;
  if (forced == minimal) return minimal;
  return convolution_cost(minimal, s, p) < convolution_cost(direct, s, p) ? minimal : direct;
}

}  // namespace cella
