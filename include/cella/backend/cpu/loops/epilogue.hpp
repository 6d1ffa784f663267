// The epilogues of kernels: what their lines of terms see, and the sinks that store the results.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/finish.hpp>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

// ---- where lines read

/// What terms see of a kernel whose results are lane vectors (the batch in the lanes).
template <class T, int Reads, int Writes>
struct lanes_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t element;  // lane vector of the result
  int channel;

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How, class S>
  vec<T> read() const {
    static_assert(std::is_void_v<S>);
    const T* p = a.in[std::size_t(K)];
    if constexpr (How == access::same)
      return load(p + element * lanes<T>);
    else if constexpr (How == access::row)
      return vec<T>(p[channel]);
    else
      return vec<T>(*p);
  }
};

/// The same for plain results, `count` at consecutive offsets.
template <class T, int Reads, int Writes>
struct plain_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t offset;
  int row, column, count;

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How, class S>
  vec<T> read() const {
    const auto* p = elements_at<S>(a.in[std::size_t(K)]);
    if constexpr (How == access::same)
      return some(p + offset);
    else if constexpr (How == access::row)
      return vec<T>(static_cast<T>(p[row]));
    else if constexpr (How == access::column)
      return some(p + column);
    else if constexpr (How == access::drawn)
      return drawn_at<K, T>(p, offset);
    else
      return vec<T>(static_cast<T>(*p));
  }
  vec<T> some(const auto* p) const {
    return count == lanes<T> ? load_stored<T>(p) : load_stored<T>(p, count);
  }
};

/// What terms see of a kernel whose results are vectors of a block of channels.
template <class T, int Reads, int Writes>
struct blocked_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t element;  // vector of the result
  int block;             // of channels

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How, class S>
  vec<T> read() const {
    const auto* p = elements_at<S>(a.in[std::size_t(K)]);
    if constexpr (How == access::same)
      return load_stored<T>(p + element * lanes<T>);
    else if constexpr (How == access::row)
      return load_stored<T>(p + block * lanes<T>);
    else
      return vec<T>(static_cast<T>(*p));
  }
};

// ---- sinks: the epilogues of kernels

/// Values in the lanes that no sample fills are stored as zeros, so that sums over the batch need
/// not look. `from` is the first lane vector with such lanes; none if the batch fills them.
struct dead_lanes {
  std::int64_t from;
  unsigned live;
};

/// For kernels that yield lane vectors. All values are computed before the first is stored: a
/// result may replace a value that another one reads.
template <class T, int Reads, bool Ragged, class Line>
struct lanes_sink {
  addresses<T, Reads, Line::results> a;
  dead_lanes dead{};

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int channel) const {
    const lanes_cursor<T, Reads, Line::results> c{a, value, element, channel};
    const auto y = Line::evaluate(c);
    for (std::size_t k = 0; k < y.size(); ++k) {
      store(a.out[k] + element * lanes<T>,
            Ragged && element >= dead.from ? keep(dead.live, y[k]) : y[k]);
    }
  }
};

/// For kernels that yield vectors of channels: (value, element, block).
template <class T, int Reads, class Line>
struct blocked_sink {
  addresses<T, Reads, Line::results> a;
  finish_form form{};

  blocked_finish<T> finish() const { return {form, a}; }

  int list_arrays(const T** to, int most) const { return a.template list_in_step<Line>(to, most); }

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int block) const {
    const blocked_cursor<T, Reads, Line::results> c{a, value, element, block};
    const auto y = Line::evaluate(c);
    Line::store_vectors(a.out, y, [&](std::size_t) { return element * lanes<T>; });
  }
};

/// For pooling in registers: also stores which corner was the largest, if somebody asks.
template <class T, class Sink, bool Corners>
struct pooled_sink {
  Sink values;
  std::uint16_t* corners;

  template <class Bits>
  [[gnu::always_inline]] void operator()(vec<T> value, const Bits& where, std::int64_t element,
                                         int channel) const {
    values(value, element, channel);
    if constexpr (Corners) {
      for (std::size_t k = 0; k < 4; ++k)
        corners[element * 4 + std::int64_t(k)] = static_cast<std::uint16_t>(where[k]);
    }
  }
};

/// For kernels that yield runs of plain results: (value, offset, count), or with row and column.
template <class T, int Reads, class Line>
struct plain_sink {
  addresses<T, Reads, Line::results> a;

  /// Where the kernel may store its results itself, since nothing follows from them.
  T* target() const requires(Line::is_accumulated) { return a.out[0]; }

  int list_rows(int height, std::int64_t offset, std::int64_t row_step, const void** to,
                int most) const {
    std::array<const T*, std::size_t(Reads) + Line::results> arrays;
    const int known = a.template list_in_step<Line>(arrays.data(), int(arrays.size()));
    int count = 0;
    for (int k = 0; k < known; ++k) {
      const T* row = arrays[std::size_t(k)] + offset;
      for (const int end = std::min(most, count + height); count < end; row += row_step)
        to[count++] = row;
    }
    return count;
  }

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int count) const {
    (*this)(value, offset, 0, 0, count);
  }
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int row, int column,
                                         int count) const {
    const plain_cursor<T, Reads, Line::results> c{a, value, offset, row, column, count};
    const auto y = Line::evaluate(c);
    Line::store(a.out, y, count, [&](std::size_t) { return offset; });
  }
};

}  // namespace cella::cpu
