// Gradients of the two-dimensional convolution of plain NCHW tensors (convolution.hpp) with respect
// to its input and its weights, for any stride, padding, dilation and number of groups.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// Independent units of work, and bytes of scratch (aligned to 64) for each thread that runs a
/// part. Results do not depend on how the units are shared out.
template <class T>
constexpr int convolution_input_gradient_units(const convolution_extents& e);
template <class T>
constexpr std::int64_t convolution_input_gradient_scratch(const convolution_extents& e);

/// dx from w and dy. The sink gets offsets in dx, the input channel as row and the pixel as column.
template <class T, class Sink>
void convolution_input_gradient(const convolution_extents& e, const T* w, const T* dy,
                                const Sink& sink, std::byte* scratch, work_range units);

namespace detail {

/// One axis of the input gradient. With stride s, elements phase, phase + s, phase + 2s ... of dx
/// depend on the taps k for which s divides phase + padding - k dilation, each on dy shifted by the
/// quotient: s convolutions of stride 1 (without the zeros of a spread-out dy).
struct gradient_axis {
  convolution_axis axis;
  int first = 0, last = 0;  // the least and the largest shift

  constexpr explicit gradient_axis(const convolution_axis& a) : axis(a) {
    bool found = false;
    for (int phase = 0; phase < phases(); ++phase) {
      for (int k = 0; k < a.kernel; ++k) {
        if (!meets(phase, k)) continue;
        first = found ? std::min(first, shift(phase, k)) : shift(phase, k);
        last = found ? std::max(last, shift(phase, k)) : shift(phase, k);
        found = true;
      }
    }
  }
  constexpr int phases() const { return std::min(axis.stride, axis.size); }
  constexpr int extent(int phase) const { return ceil_divide(axis.size - phase, axis.stride); }
  constexpr int shift(int phase, int k) const {
    return (phase + axis.padding_before - k * axis.dilation) / axis.stride;
  }
  constexpr bool meets(int phase, int k) const {
    return (phase + axis.padding_before - k * axis.dilation) % axis.stride == 0;
  }
  constexpr int taps(int phase) const {
    int n = 0;
    for (int k = 0; k < axis.kernel; ++k) n += meets(phase, k);
    return n;
  }
  constexpr padded_axis padded() const {
    return {axis.output(), -first, 1, extent(0) + last - first};
  }
};

/// Where the input gradient keeps what, in bytes of scratch: padded dy, shifts, filters, then the
/// blocks of the one phase, or one row of tiles of dx where there are several.
template <class T>
struct input_gradient_plan {
  const convolution_extents& e;
  gradient_axis vertical, horizontal;
  padded_image image;
  int depth;           // of all phases together
  blocking<T> blocks;  // of the first phase

  constexpr explicit input_gradient_plan(const convolution_extents& extents)
      : e(extents),
        vertical(e.vertical),
        horizontal(e.horizontal),
        image{e.group_outputs(), vertical.padded(), horizontal.padded()},
        depth(e.group_outputs() * e.taps()),
        blocks(shifted_blocking<T>(e.group_inputs(),
                                   image.virtual_columns(vertical.extent(0), horizontal.extent(0)),
                                   depth)) {}
  constexpr bool one_phase() const { return e.vertical.stride == 1 && e.horizontal.stride == 1; }
  /// Of one sample and group: tiles, or rows of tiles.
  constexpr int units() const { return one_phase() ? blocks.units() : blocks.row_tiles; }
  constexpr std::int64_t image_bytes() const {
    return image.in_place() ? 0 : aligned_bytes(image.size() * std::int64_t{sizeof(T)});
  }
  constexpr std::int64_t shift_bytes() const {
    return aligned_bytes(depth * std::int64_t{sizeof(std::int64_t)});
  }
  constexpr std::int64_t filter_bytes() const {
    return aligned_bytes(std::int64_t{e.group_inputs()} * depth * std::int64_t{sizeof(T)});
  }
  constexpr std::int64_t result_bytes() const {
    return std::int64_t{sizeof(T)} *
           (one_phase() ? blocks.scratch() : std::int64_t{blocks.tile_rows} * e.input_size());
  }

  /// Calls `f(vertical phase, horizontal phase, taps, taps of earlier phases)`.
  template <class F>
  void for_each_phase(F&& f) const {
    int before = 0;
    for (int i = 0; i < vertical.phases(); ++i) {
      for (int j = 0; j < horizontal.phases(); ++j) {
        const int taps = vertical.taps(i) * horizontal.taps(j);
        f(i, j, taps, before);
        before += taps;
      }
    }
  }

  /// Shifts [phases][out][taps of the phase], filters [phases][in][out][taps of the phase] from
  /// w [out][in][taps].
  void arrange(const T* w, std::int64_t* shifts, T* filters) const {
    const int outputs = e.group_outputs(), inputs = e.group_inputs();
    for_each_phase([&](int i, int j, int taps, int before) {
      int tap = 0;
      for (int kh = 0; kh < e.vertical.kernel; ++kh) {
        for (int kw = 0; kw < e.horizontal.kernel; ++kw) {
          if (!vertical.meets(i, kh) || !horizontal.meets(j, kw)) continue;
          const std::int64_t shift =
              std::int64_t{vertical.shift(i, kh) - vertical.first} * image.horizontal.length +
              horizontal.shift(j, kw) - horizontal.first;
          const T* from = w + kh * e.horizontal.kernel + kw;
          T* to = filters + std::int64_t{before} * outputs * inputs + tap;
          for (int o = 0; o < outputs; ++o) {
            shifts[before * outputs + o * taps + tap] = o * image.channel() + shift;
            for (int c = 0; c < inputs; ++c, from += e.taps()) {
              to[(std::int64_t{c} * outputs + o) * taps] = *from;
            }
          }
          ++tap;
        }
      }
    });
  }
};

/// One phase of several: results go to every s-th place of dx [channels of a tile][H][W].
template <class T>
struct phase_source : shifted_operands<T> {
  const convolution_extents& e;
  int pitch, columns;
  int row_phase, column_phase;
  T* dx;

  void finish(const T* tile, std::int64_t tile_row, int, int height, int strip) const {
    const int first = strip * this->plan.tile_columns, last = first + this->plan.width(strip);
    const int step = e.horizontal.stride;
    cut_strip(first, last, pitch, columns, [&](int at, int y, int x, int count) {
      T* to = dx + std::int64_t{row_phase + y * e.vertical.stride} * e.horizontal.size +
              column_phase + x * step;
      for (int i = 0; i < height; ++i, to += e.input_size()) {
        const T* from = tile + i * tile_row + at;
        for (int j = 0; j < count; ++j) to[j * step] = from[j];
      }
    });
  }
};

/// All phases of the channels of row tile `tile`, first into `dx`, then to the sink.
template <class T>
void gradient_of_tile(const input_gradient_plan<T>& plan, int tile, const T* pixels,
                      const std::int64_t* shifts, const T* filters, T* dx, std::int64_t offset,
                      int channel, const any_sink<T>& sink) {
  const auto& e = plan.e;
  const int outputs = e.group_outputs(), inputs = e.group_inputs();
  plan.for_each_phase([&](int i, int j, int taps, int before) {
    const int rows = plan.vertical.extent(i), columns = plan.horizontal.extent(j);
    blocking<T> blocks(inputs, plan.image.virtual_columns(rows, columns));
    blocks.set_passes(1, outputs * taps);
    const phase_source<T> source{{blocks, filters + std::int64_t{before} * outputs * inputs,
                                  outputs * taps, pixels, shifts + before * outputs},
                                 e,
                                 plan.image.horizontal.length,
                                 columns,
                                 i,
                                 j,
                                 dx};
    multiply_tiles<T>(blocks, {tile, tile + 1}, {0, blocks.strips}, source, nullptr);
  });
  const int size = e.input_size(), first = plan.blocks.first_row(tile);
  sink.hand_over(dx, size, plan.blocks.first_row(tile + 1) - first, size,
                 offset + std::int64_t{first} * size, size, channel + first, 0);
}

template <class T>
void convolve_back(const convolution_extents& e, const T* w, const T* dy, const any_sink<T>& sink,
                   std::byte* scratch, work_range units) {
  const input_gradient_plan<T> plan(e);
  T* const copy = reinterpret_cast<T*>(scratch);
  scratch += plan.image_bytes();
  auto* const shifts = reinterpret_cast<std::int64_t*>(scratch);
  scratch += plan.shift_bytes();
  T* const filters = reinterpret_cast<T*>(scratch);
  T* const results = reinterpret_cast<T*>(scratch + plan.filter_bytes());
  const int each = plan.units(), inputs = e.group_inputs(), outputs = e.group_outputs();
  int filters_of = -1;
  for (int unit = units.first; unit < units.last;) {
    const int index = unit / each, group = index % e.groups;
    const work_range part{unit - index * each, std::min(each, units.last - index * each)};
    unit += part.size();
    if (group != filters_of) {
      plan.arrange(w + std::int64_t{group} * inputs * plan.depth, shifts, filters);
      filters_of = group;
    }
    const T* pixels = dy + std::int64_t{index} * outputs * e.output_size();
    if (!plan.image.in_place()) {
      copy_padded(plan.image, pixels, copy);
      pixels = copy;
    }
    const std::int64_t offset = std::int64_t{index} * inputs * e.input_size();
    if (plan.one_phase()) {
      const convolution_source<T> source{{plan.blocks, filters, plan.depth, pixels, shifts},
                                         plan.image.horizontal.length,
                                         e.vertical.size,
                                         e.horizontal.size,
                                         offset,
                                         group * inputs,
                                         sink};
      multiply_units(plan.blocks, part, source, results);
    } else {
      for (int tile = part.first; tile < part.last; ++tile) {
        gradient_of_tile(plan, tile, pixels, shifts, filters, results, offset, group * inputs,
                         sink);
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(convolve_back);

}  // namespace detail

template <class T>
constexpr int convolution_input_gradient_units(const convolution_extents& e) {
  return e.samples * e.groups * detail::input_gradient_plan<T>(e).units();
}

template <class T>
constexpr std::int64_t convolution_input_gradient_scratch(const convolution_extents& e) {
  const detail::input_gradient_plan<T> plan(e);
  return plan.image_bytes() + plan.shift_bytes() + plan.filter_bytes() + plan.result_bytes();
}

template <class T, class Sink>
void convolution_input_gradient(const convolution_extents& e, const T* w, const T* dy,
                                const Sink& sink, std::byte* scratch, work_range units) {
  detail::convolve_back(e, w, dy, detail::any_sink<T>(sink), scratch, units);
}

}  // namespace cella::cpu
