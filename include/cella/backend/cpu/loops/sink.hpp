// What becomes of a kernel's results.
//
// A **sink** is called once for every vector of finished results:
//   sink(vec<T> value, std::int64_t offset, int row, int column, int count)
// `count` (at most lanes<T>) leading elements are valid; they belong at `offset` ... `offset +
// count` of the output, which is row `row`, columns `column` ... of the product (of the image:
// `row` is the channel, `column` the pixel). The caller attaches bias, activation, residual or
// optimizer there. A sink that reads or writes much beside that may have
//   int list_rows(int height, std::int64_t offset, std::int64_t row_step, const void** to, int
//   most)
// which lists where the rows of memory begin that it will touch for a tile, `most` of them at most,
// and returns their number; kernels ask for them while they compute the tile. One that wants tiles
// as a whole has `hand_over` with the parameters of `any_sink::hand_over`. One that only stores
// may say where with
//   T* target()
// and kernels may then store there themselves. Sinks are called by several threads at once, each
// for its own elements.
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// Stores the results.
template <class T>
struct store_to {
  T* target;
  void operator()(vec<T> value, std::int64_t offset, int, int, int count) const {
    if (count == lanes<T>) {
      store_unaligned(target + offset, value);
    } else {
      store_first(target + offset, count, value);
    }
  }
};

/// Adds the results to what is there.
template <class T>
struct accumulate {
  T* target;
  void operator()(vec<T> value, std::int64_t offset, int, int, int count) const {
    if (count == lanes<T>) {
      store_unaligned(target + offset, load_unaligned(target + offset) + value);
    } else {
      store_first(target + offset, count, load_first(target + offset, count) + value);
    }
  }
};

/// A kernel's own copy, which nothing else can see, so that a store does not make the compiler read
/// it again; of a sink that gathers results, the sink itself.
template <class Sink>
using own_sink = std::conditional_t<std::is_copy_constructible_v<Sink>, const Sink, const Sink&>;

namespace detail {

/// A sink whose type is forgotten, so that the kernels are compiled once for each element type and
/// not once for each epilogue. Refers to the sink; one call through a pointer for each tile.
template <class T>
class any_sink {
 public:
  template <class Sink>
  explicit any_sink(const Sink& sink) : sink_(&sink), call_(&call<Sink>) {
    if constexpr (requires { sink.list_rows(1, std::int64_t{}, std::int64_t{}, nullptr, 1); })
      list_rows_ = &list_rows<Sink>;
    if constexpr (std::is_same_v<Sink, store_to<T>> || std::is_same_v<Sink, accumulate<T>>) {
      target_ = sink.target;
      adds_ = std::is_same_v<Sink, accumulate<T>>;
    } else if constexpr (requires { sink.target(); }) {
      target_ = sink.target();
    }
  }

  /// Where results may be stored at once, and whether they are added to what is there; null if they
  /// must be handed over.
  T* target() const { return target_; }
  bool adds() const { return adds_; }

  /// Lists where the rows begin that handing over a tile of `height` rows will touch; returns their
  /// number.
  int list_rows(int height, std::int64_t offset, std::int64_t row_step, const void** to,
                int most) const {
    return list_rows_ ? list_rows_(sink_, height, offset, row_step, to, most) : 0;
  }

  /// Hands over a tile of height x width whose rows lie `tile_row` apart, and in the output
  /// `row_step` apart. `offset`, `row` and `column` are those of its first element.
  void hand_over(const T* tile, std::int64_t tile_row, int height, int width, std::int64_t offset,
                 std::int64_t row_step, int row, int column) const {
    call_(sink_, tile, tile_row, height, width, offset, row_step, row, column);
  }

 private:
  template <class Sink>
  static int list_rows(const void* erased, int height, std::int64_t offset, std::int64_t row_step,
                       const void** to, int most) {
    return static_cast<const Sink*>(erased)->list_rows(height, offset, row_step, to, most);
  }
  template <class Sink>
  static void call(const void* erased, const T* tile, std::int64_t tile_row, int height, int width,
                   std::int64_t offset, std::int64_t row_step, int row, int column) {
    constexpr int L = lanes<T>;
    const Sink& sink = *static_cast<const Sink*>(erased);
    if constexpr (requires {
                    sink.hand_over(tile, tile_row, height, width, offset, row_step, row, column);
                  })
      return sink.hand_over(tile, tile_row, height, width, offset, row_step, row, column);
    for (int i = 0; i < height; ++i, tile += tile_row, offset += row_step) {
      int j = 0;
      for (; j + L <= width; j += L) {
        sink(load_unaligned(tile + j), offset + j, row + i, column + j, L);
      }
      if (j < width)
        sink(load_first(tile + j, width - j), offset + j, row + i, column + j, width - j);
    }
  }

  const void* sink_;
  void (*call_)(const void*, const T*, std::int64_t, int, int, std::int64_t, std::int64_t, int,
                int);
  int (*list_rows_)(const void*, int, std::int64_t, std::int64_t, const void**, int){};
  T* target_{};
  bool adds_{};
};

}  // namespace detail

}  // namespace cella::cpu
