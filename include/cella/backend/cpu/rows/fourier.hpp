// Fourier transforms of lines of a plain tensor along an axis: several lines at a time, one in each
// lane.
#pragma once

#include <array>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/rows/line_lanes.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/fourier_kernels.hpp>
#include <optional>

namespace cella::cpu {

/// Along an axis of complex numbers: lines in units, and scratch for one.
template <class T>
constexpr int fourier_units(const search_extents& e);
template <class T>
constexpr std::int64_t fourier_scratch(const search_extents& e);
/// Lines of x -> lines of y, as fourier_transform says, multiplied with `scale`.
template <class T>
void fourier_lines(work_range units, const search_extents& e, int sign, T scale,
                   const std::complex<T>* x, std::complex<T>* y, std::byte* scratch);

/// The same between real numbers, of which `e` has the extents, and the first half of their
/// transforms, whose middle counts so many `times`: as real_fourier_transform says.
template <class T>
constexpr std::int64_t real_fourier_scratch(const search_extents& e);
template <class T>
void lines_to_spectra(work_range units, const search_extents& e, T times, T scale, const T* x,
                      std::complex<T>* y, std::byte* scratch);
template <class T>
void spectra_to_lines(work_range units, const search_extents& e, T times, T scale,
                      const std::complex<T>* x, T* y, std::byte* scratch);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// How many lines are transformed at a time: one in each lane, or one, if there are few or if they
/// would need much memory.
template <class T>
constexpr int fourier_lanes(const search_extents& e) {
  return e.outer * e.inner >= lanes<T> / 2 && e.extent <= 1 << 16 ? lanes<T> : 1;
}
/// Lines that are taken together where they lie side by side: those of one outer place, if they
/// fill a vector, else all.
struct line_groups {
  std::int64_t lines, units;  ///< of a group
  std::int64_t count;
};
constexpr line_groups groups_of_lines(const search_extents& e, int at_once) {
  const bool apart = e.inner >= at_once;
  const std::int64_t lines = apart ? e.inner : e.outer * e.inner;
  return {lines, (lines + at_once - 1) / at_once, apart ? e.outer : 1};
}
struct line_unit {
  std::int64_t first;
  int count;
};
constexpr line_unit lines_of_unit(const search_extents& e, int at_once, std::int64_t unit) {
  const line_groups g = groups_of_lines(e, at_once);
  const std::int64_t part = unit % g.units * at_once;
  return {unit / g.units * g.lines + part, int(std::min<std::int64_t>(at_once, g.lines - part))};
}

/// The tables of a length, which this thread has kept from the last calls.
template <class Transform>
const Transform& transform_of(std::int64_t n, int sign) {
  struct tables {
    std::int64_t n{};
    int sign{};
    std::optional<Transform> of{};
  };
  static thread_local std::array<tables, 4> kept;
  static thread_local std::size_t next = 0;
  for (const tables& t : kept)
    if (t.of && t.n == n && t.sign == sign) return *t.of;
  tables& t = kept[next++ % kept.size()];
  t.n = n;
  t.sign = sign;
  return t.of.emplace(n, sign);
}

template <class T, template <class> class Transform>
constexpr std::int64_t transform_scratch(const search_extents& e) {
  const std::int64_t n = 2 * Transform<T>::room(e.extent) + Transform<T>::work_space(e.extent);
  return n * fourier_lanes<T>(e) * std::int64_t{sizeof(std::complex<T>)};
}

/// Calls transform(line, result, work) for the lines of each unit, of `room` numbers at most.
template <class T, class C, class Transform>
void each_line(work_range units, const search_extents& e, const line_layout& from, const T* x,
               const line_layout& to, T* y, T scale, std::int64_t room, std::byte* scratch,
               Transform transform) {
  constexpr int at_once = int(sizeof(C) / sizeof(std::complex<T>));
  C* const line = reinterpret_cast<C*>(scratch);
  C* const result = line + room;
  for (std::int64_t unit = units.first; unit < units.last; ++unit) {
    const line_unit u = lines_of_unit(e, at_once, unit);
    read_lines(x, from, u.first, u.count, line);
    transform(line, result, result + room);
    write_lines(result, scale, to, u.first, u.count, y);
  }
}
template <class T, class... Arguments>
void each_line_of(work_range units, const search_extents& e, Arguments... arguments) {
  if (fourier_lanes<T>(e) > 1)
    each_line<T, complex_lanes<T>>(units, e, arguments...);
  else
    each_line<T, std::complex<T>>(units, e, arguments...);
}

/// Real and imaginary parts by turns.
template <class T>
const T* parts_of(const std::complex<T>* x) {
  return reinterpret_cast<const T*>(x);
}
template <class T>
T* parts_of(std::complex<T>* x) {
  return reinterpret_cast<T*>(x);
}

/// Along the axis of numbers, and that of their transforms.
constexpr line_layout layout_of_numbers(const search_extents& e) {
  return e.extent % 2 ? line_layout::of_real(e.extent, e.inner)
                      : line_layout::of_pairs(e.extent / 2, e.inner);
}
constexpr line_layout layout_of_spectra(const search_extents& e) {
  return line_layout::of_complex(e.extent / 2 + 1, e.inner);
}

}  // namespace detail

template <class T>
constexpr int fourier_units(const search_extents& e) {
  if (e.extent == 0) return 0;
  const detail::line_groups g = detail::groups_of_lines(e, detail::fourier_lanes<T>(e));
  return int(g.count * g.units);
}
template <class T>
constexpr std::int64_t fourier_scratch(const search_extents& e) {
  return detail::transform_scratch<T, cella::detail::fourier_transform>(e);
}
template <class T>
constexpr std::int64_t real_fourier_scratch(const search_extents& e) {
  return detail::transform_scratch<T, cella::detail::real_fourier_transform>(e);
}

template <class T>
void fourier_lines(work_range units, const search_extents& e, int sign, T scale,
                   const std::complex<T>* x, std::complex<T>* y, std::byte* scratch) {
  const auto& of = detail::transform_of<cella::detail::fourier_transform<T>>(e.extent, sign);
  const auto layout = line_layout::of_complex(e.extent, e.inner);
  detail::each_line_of<T>(
      units, e, layout, detail::parts_of(x), layout, detail::parts_of(y), scale, of.room(e.extent),
      scratch, [&](const auto* line, auto* result, auto* work) { of(line, result, work); });
}

template <class T>
void lines_to_spectra(work_range units, const search_extents& e, T times, T scale, const T* x,
                      std::complex<T>* y, std::byte* scratch) {
  const auto& of = detail::transform_of<cella::detail::real_fourier_transform<T>>(e.extent, -1);
  detail::each_line_of<T>(units, e, detail::layout_of_numbers(e), x, detail::layout_of_spectra(e),
                          detail::parts_of(y), scale, of.room(e.extent), scratch,
                          [&](const auto* line, auto* result, auto* work) {
                            of.to_spectrum(line, result, work, times);
                          });
}
template <class T>
void spectra_to_lines(work_range units, const search_extents& e, T times, T scale,
                      const std::complex<T>* x, T* y, std::byte* scratch) {
  const auto& of = detail::transform_of<cella::detail::real_fourier_transform<T>>(e.extent, 1);
  detail::each_line_of<T>(
      units, e, detail::layout_of_spectra(e), detail::parts_of(x), detail::layout_of_numbers(e), y,
      scale, of.room(e.extent), scratch,
      [&](auto* line, auto* result, auto* work) { of.from_spectrum(line, result, work, times); });
}

}  // namespace cella::cpu
