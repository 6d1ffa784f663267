// What becomes of a kernel's results.
//
// A **sink** is called once for every vector of finished results:
//   sink(vec<T> value, std::int64_t offset, int row, int column, int count)
// `count` (at most lanes<T>) leading elements are valid; they belong at `offset` ... `offset +
// count` of the output, which is row `row`, columns `column` ... of the product (of the image:
// `row` is the channel, `column` the pixel). The caller attaches bias, activation, residual or
// optimizer there. Sinks are called by several threads at once, each for its own elements.
#pragma once

#include <cella/backend/cpu/simd.hpp>
#include <cstdint>

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

}  // namespace cella::cpu
