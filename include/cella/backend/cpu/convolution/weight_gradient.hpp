// Gradient of the two-dimensional convolution of plain NCHW tensors (convolution.hpp) with respect
// to its weights, for any stride, padding, dilation and number of groups.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// Independent units of work, and bytes of scratch (aligned to 64) for each thread that runs a
/// part. Results do not depend on how the units are shared out. Units are register tiles of dw: a
/// layer of few channels and taps has only one.
template <class T>
constexpr int convolution_weight_gradient_units(const convolution_extents& e);
template <class T>
constexpr std::int64_t convolution_weight_gradient_scratch(const convolution_extents& e);

/// dw from x and dy, summed over the samples. The sink gets offsets in dw, the output channel as
/// row and the position in its filter, [in_channels / groups, KH, KW], as column.
template <class T, class Sink>
void convolution_weight_gradient(const convolution_extents& e, const T* x, const T* dy,
                                 const Sink& sink, std::byte* scratch, work_range units);

namespace detail {

/// The weight gradient as a product: rows are output channels, columns are taps, and the depth is
/// the pixels of all samples, some pixels of one sample in each pass.
template <class T>
struct weight_gradient_source {
  static constexpr bool indirect = false;
  const convolution_extents& e;
  const blocking<T>& plan;
  const padded_image& image;
  int group;
  const T* x;
  const T* dy;
  const std::int64_t* shifts;
  const any_sink<T>& sink;
  T* copy;
  int copied = -1;  // the sample that `pixels` belongs to
  const T* pixels{};

  int passes_of_sample() const { return plan.passes / std::max(1, e.samples); }
  int first_pixel(int pass) const { return pass % passes_of_sample() * plan.depth; }

  void begin(int pass) {
    const int sample = pass / passes_of_sample();
    if (sample == copied || e.samples == 0) return;
    copied = sample;
    pixels = x + (std::int64_t{sample} * e.groups + group) * e.group_inputs() * e.input_size();
    if (image.in_place() || e.output_size() == 0) return;
    copy_padded(image, pixels, copy);
    pixels = copy;
  }
  int depth(int pass) const {
    return e.samples == 0 ? 0 : std::min(plan.depth, e.output_size() - first_pixel(pass));
  }
  matrix<T> a(int pass) const {
    const int sample = pass / passes_of_sample(), size = e.output_size();
    return {dy + (std::int64_t{sample} * e.groups + group) * e.group_outputs() * size +
                first_pixel(pass),
            size, 1};
  }
  void find_b(int, int, tile_task<T>&) const {}

  /// Pixels lie side by side in the image but one below the other in the strip: transposes squares.
  void pack_b(int pass, int strip, T* to) const {
    constexpr int L = lanes<T>;
    const int columns = e.horizontal.output(), width = plan.width(strip);
    const std::int64_t* taps = shifts + std::int64_t{strip} * plan.tile_columns;
    const int first = first_pixel(pass), last = first + depth(pass);
    for (int p = first; p < last;) {
      const int row = p / columns, column = p % columns;
      const int count = std::min({L, columns - column, last - p});
      const T* at = pixels + std::int64_t{row} * image.horizontal.length + column;
      for (int j = 0; j < plan.tile_columns; j += L) {
        vec<T> square[L];
        for (int i = 0; i < L; ++i) {
          square[i] = j + i < width ? load_first(at + taps[j + i], count) : vec<T>(T(0));
        }
        transpose<T>(square);
        for (int i = 0; i < count; ++i) {
          store_unaligned(to + std::int64_t{p - first + i} * plan.tile_columns + j, square[i]);
        }
      }
      p += count;
    }
  }
  tile_output<T> output(int row, int column) const {
    const int channel = group * e.group_outputs() + row;
    return output_of(sink, std::int64_t{channel} * plan.columns + column, plan.columns);
  }
  void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip) const {
    const int channel = group * e.group_outputs() + row, column = strip * plan.tile_columns;
    sink.hand_over(tile, tile_row, height, plan.width(strip),
                   std::int64_t{channel} * plan.columns + column, plan.columns, channel, column);
  }
};

template <class T>
constexpr blocking<T> weight_gradient_blocking(const convolution_extents& e) {
  blocking<T> plan(e.group_outputs(), e.group_inputs() * e.taps());
  const int size = e.output_size();
  const int passes = std::max(1, ceil_divide(size, blocking<T>::deepest));
  plan.pack_b = true;
  plan.copy_a = plan.strips >= 8 && plan.row_tiles > 2;
  plan.set_passes(passes * std::max(1, e.samples), ceil_divide(size, passes));
  return plan;
}

template <class T>
void correlate(const convolution_extents& e, const T* x, const T* dy, const any_sink<T>& sink,
               std::byte* scratch, work_range units) {
  if (units.empty()) return;
  const convolution_plan<T> forward(e);
  const auto& image = forward.image;
  const auto plan = weight_gradient_blocking<T>(e);
  T* const copy = reinterpret_cast<T*>(scratch);
  auto* const shifts = reinterpret_cast<std::int64_t*>(scratch + forward.image_bytes());
  T* const blocks = reinterpret_cast<T*>(scratch + forward.image_bytes() + forward.shift_bytes());
  list_shifts(e, image, shifts);
  const int each = plan.units();
  for (int unit = units.first; unit < units.last;) {
    const int group = unit / each;
    const work_range part{unit - group * each, std::min(each, units.last - group * each)};
    unit += part.size();
    weight_gradient_source<T> source{e, plan, image, group, x, dy, shifts, sink, copy};
    multiply_units(plan, part, source, blocks);
  }
}
CELLA_COMPILED_FOR_FLOATS(correlate);

}  // namespace detail

template <class T>
constexpr int convolution_weight_gradient_units(const convolution_extents& e) {
  return e.groups * detail::weight_gradient_blocking<T>(e).units();
}

template <class T>
constexpr std::int64_t convolution_weight_gradient_scratch(const convolution_extents& e) {
  const detail::convolution_plan<T> plan(e);
  return plan.image_bytes() + plan.shift_bytes() +
         detail::aligned_bytes(detail::weight_gradient_blocking<T>(e).scratch() *
                               std::int64_t{sizeof(T)});
}

template <class T, class Sink>
void convolution_weight_gradient(const convolution_extents& e, const T* x, const T* dy,
                                 const Sink& sink, std::byte* scratch, work_range units) {
  detail::correlate(e, x, dy, detail::any_sink<T>(sink), scratch, units);
}

}  // namespace cella::cpu
