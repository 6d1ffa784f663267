// Convolutions of images of bf16 in blocks of channels, in pairs of summands (simd/pairs.hpp).
// Neighbouring channels of a pixel are a pair as they lie in memory, so that an image is read as
// half as many words, and filters are packed to match: blocked_convolution and
// blocked_input_gradient with two summands. The sums of a filter's gradient run over pixels, which
// are put together for that.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/weight_gradient.hpp>

namespace cella::cpu {

/// Filters w [out_blocks L][in_blocks L][taps], rounded to bf16, as words
/// [out_blocks][taps][in_blocks][L / 2 pairs in][L out]. Units: blocks of output channels.
template <class T, class S>
void pack_filter_pairs(work_range units, int in_blocks, int taps, const S* w, T* packed);
/// The same filters as the gradient of the image reads them:
/// [in_blocks][taps][out_blocks][L / 2 pairs out][L in]. Units: blocks of input channels.
template <class T, class S>
void pack_filter_pairs_transposed(work_range units, int in_blocks, int out_blocks, int taps,
                                  const S* w, T* packed);

/// Units and bytes of scratch of the sums that blocked_weight_gradient takes, in the same order.
template <class T>
constexpr int paired_weight_gradient_units(const blocked_convolution_extents& e);
template <class T>
constexpr std::int64_t paired_weight_gradient_scratch(const blocked_convolution_extents& e);
template <class T>
void paired_weight_gradient(work_range units, const blocked_convolution_extents& e,
                            const bfloat16* x, const bfloat16* dy, T* sums, std::byte* scratch);

namespace detail {

/// Puts summand `k` of the pairs of a row into its half; the first comes first.
template <class T>
[[gnu::always_inline]] inline void put_summand(T* row, int k, vec<T> v) {
  v = rounded_to<bfloat16>(v);
  store(row, k % 2 == 0 ? pair_up(v, vec<T>(T{0})) : pair_up(first_of_pairs(load(row)), v));
}

/// How the sums of filters' gradients are cut: by groups of blocks of output channels, of which
/// each unit takes some columns, which are blocks of input channels at one tap. Pixels come in
/// chunks whose pairs of a group stay in the second cache.
template <class T>
struct pair_cut {
  static constexpr int most_blocks = 32, columns_of_unit = 4;
  int blocks, columns;  // of output channels; in all
  std::int64_t pixels;  // of a slice of the samples

  constexpr explicit pair_cut(const blocked_convolution_extents& e)
      : blocks(e.out_blocks),
        columns(e.taps() * e.in_blocks),
        pixels(e.out_plane() *
               ((e.samples + weight_gradient_slices<T>(e) - 1) / weight_gradient_slices<T>(e))) {}
  constexpr int groups() const { return (blocks + most_blocks - 1) / most_blocks; }
  constexpr int ranges() const { return (columns + columns_of_unit - 1) / columns_of_unit; }
  constexpr int units() const { return groups() * ranges(); }
  constexpr int blocks_of_group() const { return (blocks + groups() - 1) / groups(); }
  constexpr int pairs_of_chunk() const {
    constexpr std::int64_t bytes = std::int64_t{lanes<T>} * sizeof(T);
    const std::int64_t fit = (256 << 10) / (blocks_of_group() * bytes);
    return int(std::min(std::clamp<std::int64_t>(fit, 32, 512), (pixels + 1) / 2));
  }
};

/// sums[j][i] (+)= x[.., i] dy[.. of block j] over so many pairs of pixels, which lie one after the
/// other; words between the blocks of dy, elements between those of sums.
template <int Blocks, class T>
[[gnu::noinline]] void add_pixel_pairs(int pairs, const T* x, const T* dy, std::int64_t dy_block,
                                       T* sums, std::int64_t sum_step, bool start) {
  constexpr int L = lanes<T>, C = gradient_channels<T>;
  vec<T> sum[C][Blocks];
#pragma GCC unroll 8
  for (int i = 0; i < C; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const auto add_pair = [&]() __attribute__((always_inline)) {
    vec<T> d[Blocks];
#pragma GCC unroll 3
    for (int j = 0; j < Blocks; ++j) d[j] = load_shared(dy + j * dy_block);
#pragma GCC unroll 8
    for (int i = 0; i < C; ++i) {
      const vec<T> v(x[i]);
#pragma GCC unroll 3
      for (int j = 0; j < Blocks; ++j) sum[i][j] = add_pairs(v, d[j], sum[i][j]);
    }
    x += L;
    dy += L;
  };
  for (; pairs > 1; pairs -= 2) {
    add_pair();
    add_pair();
  }
  if (pairs > 0) add_pair();
#pragma GCC unroll 8
  for (int i = 0; i < C; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < Blocks; ++j) {
      T* const to = sums + j * sum_step + i * L;
      store(to, start ? sum[i][j] : load(to) + sum[i][j]);
    }
  }
}

/// Where the pixels of a chunk lie in images of `blocks` blocks of channels, of block 0, as a tap
/// reads them; `outside` where there is none.
class chunk_pixels {
 public:
  static constexpr int most = 2 * 512;
  static constexpr std::int64_t outside = -1;

  /// Of dy: results [first, first + count) of the samples from `sample` on.
  void find_results(const blocked_convolution_extents& e, int sample, std::int64_t first, int count,
                    int lanes) {
    find(e, sample, first, count, [&](int n, int row, int column) {
      return ((std::int64_t{n} * e.out_blocks * e.out_height + row) * e.out_width + column) * lanes;
    });
  }
  /// Of x, for one tap.
  void find_sources(const blocked_convolution_extents& e, int tap, int sample, std::int64_t first,
                    int count, int lanes) {
    const int down = tap / e.kernel_width - e.padding_top;
    const int right = tap % e.kernel_width - e.padding_left;
    find(e, sample, first, count, [&](int n, int row, int column) {
      const int i = row * e.stride_vertical + down, j = column * e.stride_horizontal + right;
      if (i < 0 || i >= e.height || j < 0 || j >= e.width) return outside;
      return ((std::int64_t{n} * e.in_blocks * e.height + i) * e.width + j) * lanes;
    });
  }
  /// The words of all pairs of these pixels of a block that begins at `block`; what is missing is
  /// zero.
  template <class T>
  void pack(const bfloat16* block, T* to) const {
    alignas(64) static constexpr std::array<bfloat16, std::size_t(lanes<T>)> zeros{};
    const auto at = [&](int k) {
      const std::int64_t offset = at_[std::size_t(k)];
      return offset < 0 ? zeros.data() : block + offset;
    };
    for (int k = 0; k < count_; k += 2, to += lanes<T>)
      store(to, load_pairs(at(k), k + 1 < count_ ? at(k + 1) : zeros.data()));
  }

 private:
  template <class F>
  void find(const blocked_convolution_extents& e, int sample, std::int64_t first, int count,
            F place) {
    count_ = count;
    const auto plane = e.out_plane();
    int n = sample + int(first / plane), row = int(first % plane) / e.out_width,
        column = int(first % plane) % e.out_width;
    for (int k = 0; k < count; ++k) {
      at_[std::size_t(k)] = place(n, row, column);
      if (++column < e.out_width) continue;
      column = 0;
      if (++row == e.out_height) row = 0, ++n;
    }
  }

  std::array<std::int64_t, std::size_t(most)> at_;
  int count_ = 0;
};

}  // namespace detail

template <class T, class S>
void pack_filter_pairs(work_range units, int in_blocks, int taps, const S* w, T* packed) {
  constexpr int L = lanes<T>;
  const std::int64_t filter = std::int64_t{in_blocks} * L * taps;
  for (int o = units.first; o < units.last; ++o) {
    for (int b = 0; b < in_blocks; ++b) {
      const S* from = w + o * L * filter + std::int64_t{b} * L * taps;
      for (int e = 0; e < L * taps; e += L) {
        vec<T> square[L];
        for (int k = 0; k < L; ++k) square[k] = load_stored<T>(from + k * filter + e);
        transpose<T>(square);
        int channel = e / taps, tap = e % taps;
        for (int k = 0; k < L; ++k) {
          const std::int64_t block = (std::int64_t{o} * taps + tap) * in_blocks + b;
          detail::put_summand(packed + (block * (L / 2) + channel / 2) * L, channel, square[k]);
          if (++tap == taps) tap = 0, ++channel;
        }
      }
    }
  }
}

template <class T, class S>
void pack_filter_pairs_transposed(work_range units, int in_blocks, int out_blocks, int taps,
                                  const S* w, T* packed) {
  constexpr int L = lanes<T>;
  const std::int64_t filter = std::int64_t{in_blocks} * L * taps;
  for (int b = units.first; b < units.last; ++b) {
    for (int o = 0; o < out_blocks; ++o) {
      for (int k = 0; k < L; ++k) {
        const S* from = w + (std::int64_t{o} * L + k) * filter + std::int64_t{b} * L * taps;
        for (int tap = 0; tap < taps; ++tap) {
          const std::int64_t block = (std::int64_t{b} * taps + tap) * out_blocks + o;
          T* const to = packed + (block * (L / 2) + k / 2) * L;
          S row[L];
          for (int c = 0; c < L; ++c) row[c] = from[c * taps + tap];
          detail::put_summand(to, k, load_stored<T>(row));
        }
      }
    }
  }
}

template <class T>
constexpr int paired_weight_gradient_units(const blocked_convolution_extents& e) {
  return weight_gradient_slices<T>(e) * detail::pair_cut<T>(e).units();
}
template <class T>
constexpr std::int64_t paired_weight_gradient_scratch(const blocked_convolution_extents& e) {
  const detail::pair_cut<T> cut(e);
  return std::int64_t{cut.blocks_of_group() + 1} * cut.pairs_of_chunk() * lanes<T> *
         std::int64_t{sizeof(T)};
}

template <class T>
void paired_weight_gradient(work_range units, const blocked_convolution_extents& e,
                            const bfloat16* x, const bfloat16* dy, T* sums, std::byte* scratch) {
  constexpr int L = lanes<T>, C = detail::gradient_channels<T>;
  const detail::pair_cut<T> cut(e);
  const int slices = weight_gradient_slices<T>(e), most = 2 * cut.pairs_of_chunk();
  const std::int64_t dy_block = std::int64_t{cut.pairs_of_chunk()} * L;
  const std::int64_t sum_step = std::int64_t{e.in_blocks} * e.taps() * L * L;
  T* const dy_pairs = reinterpret_cast<T*>(scratch);
  T* const x_pairs = dy_pairs + cut.blocks_of_group() * dy_block;
  detail::chunk_pixels pixels;
  for (int u = units.first; u < units.last; ++u) {
    const int slice = u / cut.units(), group = u % cut.units() / cut.ranges();
    const work_range samples = part_of(e.samples, slices, slice);
    const work_range blocks = part_of(cut.blocks, cut.groups(), group);
    const work_range columns = part_of(cut.columns, cut.ranges(), u % cut.ranges());
    const std::int64_t all = samples.size() * e.out_plane();
    for (std::int64_t first = 0; first < all; first += most) {
      const int count = int(std::min<std::int64_t>(most, all - first)), pairs = (count + 1) / 2;
      pixels.find_results(e, samples.first, first, count, L);
      for (int j = 0; j < blocks.size(); ++j)
        pixels.pack(dy + (blocks.first + j) * e.out_plane() * L, dy_pairs + j * dy_block);
      for (int column = columns.first, tap = -1; column < columns.last; ++column) {
        const int b = column % e.in_blocks;
        if (tap != column / e.in_blocks) {
          tap = column / e.in_blocks;
          pixels.find_sources(e, tap, samples.first, first, count, L);
        }
        pixels.pack(x + b * e.in_plane() * L, x_pairs);
        T* const to = sums + slice * filter_elements<T>(e) +
                      ((std::int64_t{blocks.first} * e.in_blocks + b) * e.taps() + tap) * L * L;
        const int tiles = detail::gradient_groups(blocks.size());
        for (int t = 0; t < tiles; ++t) {
          const work_range of = detail::gradient_group(blocks.size(), t);
          const auto add = [&]<int Blocks>() {
            for (int c = 0; c < L; c += C)
              detail::add_pixel_pairs<Blocks>(pairs, x_pairs + c, dy_pairs + of.first * dy_block,
                                              dy_block, to + of.first * sum_step + c * L, sum_step,
                                              first == 0);
          };
          if (of.size() == 3)
            add.template operator()<3>();
          else if (of.size() == 2)
            add.template operator()<2>();
          else
            add.template operator()<1>();
        }
      }
    }
  }
}

}  // namespace cella::cpu
