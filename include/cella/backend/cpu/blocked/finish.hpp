// What nearly all convolutions of nets without training end in - a bias, an image that is added,
// ReLU or ReLU6 - as data, so that a tile of sums is finished in its registers. Other epilogues get
// the sums from memory, by a call (blocked/layout.hpp).
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>
#include <limits>

namespace cella::cpu {

/// y = min(high, max(low, sum + bias + added)), of which all but the sum may lack, by the numbers
/// of what a step reads.
struct finish_form {
  bool fits{};  ///< what follows is of this form
  int bias = -1, added = -1;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

/// The same with addresses; `target` is null where what follows has another form.
template <class T>
struct blocked_finish {
  T* target{};
  const T *bias{}, *added{};
  T low{}, high{};

  blocked_finish() = default;
  template <class Addresses>
  blocked_finish(const finish_form& f, const Addresses& a) {
    if (!f.fits) return;
    target = a.out[0];
    if (f.bias >= 0) bias = a.in[std::size_t(f.bias)];
    if (f.added >= 0) added = a.in[std::size_t(f.added)];
    low = T(f.low), high = T(f.high);
  }

  /// Stores `Pixels` neighbours of one block of channels, which begin at vector `first`: of(i) is
  /// the sum of pixel i.
  template <int Pixels, class Of>
  [[gnu::always_inline]] void store_pixels(std::int64_t first, int block, Of of) const {
    constexpr int L = lanes<T>;
    // -0 leaves every number as it is; 0 would make 0 of -0.
    const vec<T> offset = bias ? load_unaligned(bias + std::int64_t{block} * L) : vec<T>(T(-0.0));
    const vec<T> least(low), most(high);
    T* const to = target + first * L;
    // Where one is NaN, or both are zero, x86 takes the second operand, as the operations do.
    const auto finish = [&](int i, vec<T> y) __attribute__((always_inline)) {
      store(to + i * L, minimum<T>(most, maximum<T>(least, y)));
    };
    if (const T* const more = added) {
#pragma GCC unroll 16
      for (int i = 0; i < Pixels; ++i)
        finish(i, of(i) + offset + load_unaligned(more + (first + i) * L));
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < Pixels; ++i) finish(i, of(i) + offset);
    }
  }
  /// The same for a tile of `Blocks` blocks, the first of which is number `block`, in images of
  /// `plane` pixels; vector `first` is block 0's. of(i, j) is the sum of pixel i and block j.
  template <int Pixels, int Blocks, class Of>
  [[gnu::always_inline]] void store_tile(std::int64_t first, std::int64_t plane, int block,
                                         Of of) const {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j)
      store_pixels<Pixels>(
          first + (block + j) * plane,
          block + j, [&](int i) __attribute__((always_inline)) { return of(i, j); });
  }
};

}  // namespace cella::cpu
