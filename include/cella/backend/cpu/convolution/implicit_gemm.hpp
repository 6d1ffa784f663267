// Two-dimensional convolution of plain NCHW tensors for any stride, padding, dilation and number of
// groups (gradients: convolution_input_gradient.hpp, convolution_weight_gradient.hpp). It is a
// matrix product whose operand B is never built: each of its rows is the padded image, shifted by a
// filter tap. Extents are run-time values; the epilogue is a sink (sink.hpp). See Dumoulin and
// Visin, "A guide to convolution arithmetic for deep learning", arXiv:1603.07285.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/convolution/extents.hpp>
#include <cella/backend/cpu/convolution/padded_image.hpp>
#include <cella/backend/cpu/gemm/driver.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// Independent units of work, and bytes of scratch (aligned to 64) for each thread that runs a
/// part. Results do not depend on how the units are shared out.
template <class T>
constexpr int convolution_units(const convolution_extents& e);
template <class T>
constexpr std::int64_t convolution_scratch(const convolution_extents& e);

/// y from x and w. The sink gets offsets in y, the output channel as row and the pixel as column.
template <class T, class Sink>
void convolution(const convolution_extents& e, const T* x, const T* w, const Sink& sink,
                 std::byte* scratch, work_range units);

namespace detail {

constexpr std::int64_t aligned_bytes(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Cuts a strip of virtual columns (padded_image::virtual_columns) into the pieces that belong to
/// rows of the result: calls `piece(position in the strip, row, column, count)`.
template <class Piece>
void cut_strip(int first, int last, int pitch, int columns, Piece&& piece) {
  for (int at = first; at < last;) {
    const int row = at / pitch, column = at % pitch;
    const int count = std::min(columns - column, last - at);
    if (count > 0) piece(at - first, row, column, count);
    at += pitch - column;
  }
}

/// Operands of a convolution as a product: rows are result channels, columns are virtual pixels,
/// and the rows of B are shifts of the image.
template <class T>
struct shifted_operands {
  static constexpr bool indirect = true;
  const blocking<T>& plan;
  const T* filters;  // [rows][depth]
  int total_depth;
  const T* pixels;
  const std::int64_t* shifts;  // [depth]

  void begin(int) const {}
  int depth(int pass) const { return std::min(plan.depth, total_depth - pass * plan.depth); }
  matrix<T> a(int pass) const {
    return {filters + std::int64_t{pass} * plan.depth, total_depth, 1};
  }
  void pack_b(int, int, T*) const {}
  void find_b(int pass, int strip, tile_task<T>& task) const {
    task.b = pixels + std::int64_t{strip} * plan.tile_columns;
    task.b_rows = shifts + std::int64_t{pass} * plan.depth;
  }
  tile_output<T> output(int, int) const { return {}; }
};

/// Such a product whose results go to the sink.
template <class T>
struct convolution_source : shifted_operands<T> {
  int pitch;  // of virtual rows
  int rows, columns;
  std::int64_t offset;  // of the first result channel
  int channel;          // its number
  const any_sink<T>& sink;

  void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip) const {
    const int first = strip * this->plan.tile_columns, last = first + this->plan.width(strip);
    const std::int64_t plane = std::int64_t{rows} * columns;
    cut_strip(first, last, pitch, columns, [&](int at, int y, int x, int count) {
      const int pixel = y * columns + x;
      sink.hand_over(tile + at, tile_row, height, count, offset + row * plane + pixel, plane,
                     channel + row, pixel);
    });
  }
};

/// Blocks of such a product. The image is read in place, the filters are packed if that pays.
template <class T>
constexpr blocking<T> shifted_blocking(int rows, int virtual_columns, int depth) {
  blocking<T> plan(rows, virtual_columns);
  plan.copy_a = plan.strips >= 8 && plan.row_tiles > 2;
  const int passes = plan.copy_a ? std::max(1, ceil_divide(depth, 2 * plan.deepest)) : 1;
  plan.set_passes(passes, ceil_divide(depth, passes));
  return plan;
}

/// Where a convolution keeps what, in bytes of scratch: padded image, shifts, blocks.
template <class T>
struct convolution_plan {
  padded_image image;
  int depth;
  blocking<T> blocks;

  constexpr explicit convolution_plan(const convolution_extents& e)
      : image(forward_image(e)),
        depth(e.group_inputs() * e.taps()),
        blocks(shifted_blocking<T>(
            e.group_outputs(), image.virtual_columns(e.vertical.output(), e.horizontal.output()),
            depth)) {}
  constexpr std::int64_t image_bytes() const {
    return image.in_place() ? 0 : aligned_bytes(image.size() * std::int64_t{sizeof(T)});
  }
  constexpr std::int64_t shift_bytes() const {
    return aligned_bytes(depth * std::int64_t{sizeof(std::int64_t)});
  }
};

/// Offsets of the taps in the padded image, [channels][KH][KW].
inline void list_shifts(const convolution_extents& e, const padded_image& image,
                        std::int64_t* shifts) {
  for (int c = 0; c < image.channels; ++c) {
    for (int i = 0; i < e.vertical.kernel; ++i) {
      for (int j = 0; j < e.horizontal.kernel; ++j) {
        *shifts++ =
            c * image.channel() + image.at(i * e.vertical.dilation, j * e.horizontal.dilation);
      }
    }
  }
}

template <class T>
void convolve(const convolution_extents& e, const T* x, const T* w, const any_sink<T>& sink,
              std::byte* scratch, work_range units) {
  if (units.empty()) return;
  const convolution_plan<T> plan(e);
  const auto& image = plan.image;
  T* const copy = reinterpret_cast<T*>(scratch);
  auto* const shifts = reinterpret_cast<std::int64_t*>(scratch + plan.image_bytes());
  T* const blocks = reinterpret_cast<T*>(scratch + plan.image_bytes() + plan.shift_bytes());
  list_shifts(e, image, shifts);
  const int each = plan.blocks.units(), outputs = e.group_outputs();
  for (int unit = units.first; unit < units.last;) {
    const int index = unit / each, group = index % e.groups;
    const work_range part{unit - index * each, std::min(each, units.last - index * each)};
    unit += part.size();
    const T* pixels = x + std::int64_t{index} * e.group_inputs() * e.input_size();
    if (!image.in_place()) {
      copy_padded(image, pixels, copy);
      pixels = copy;
    }
    const convolution_source<T> source{
        {plan.blocks, w + std::int64_t{group} * outputs * plan.depth, plan.depth, pixels, shifts},
        image.horizontal.length,
        e.vertical.output(),
        e.horizontal.output(),
        std::int64_t{index} * outputs * e.output_size(),
        group * outputs,
        sink};
    multiply_units(plan.blocks, part, source, blocks);
  }
}
CELLA_COMPILED_FOR_FLOATS(convolve);

}  // namespace detail

template <class T>
constexpr int convolution_units(const convolution_extents& e) {
  return e.samples * e.groups * detail::convolution_plan<T>(e).blocks.units();
}

template <class T>
constexpr std::int64_t convolution_scratch(const convolution_extents& e) {
  const detail::convolution_plan<T> plan(e);
  return plan.image_bytes() + plan.shift_bytes() + plan.blocks.scratch() * std::int64_t{sizeof(T)};
}

template <class T, class Sink>
void convolution(const convolution_extents& e, const T* x, const T* w, const Sink& sink,
                 std::byte* scratch, work_range units) {
  detail::convolve(e, x, w, detail::any_sink<T>(sink), scratch, units);
}

}  // namespace cella::cpu
