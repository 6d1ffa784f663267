// Convolutions of images of u8 with filters of s8, with sums of 32 bits: products of matrices whose
// rows are the pixels of the result.
#pragma once

#include <array>
#include <cella/backend/cpu/gemm/byte_product.hpp>
#include <cella/ops/window.hpp>

namespace cella::cpu {

/// y[n,o,i,j] = sum over c, k, l of x[n, c, s i + d k - p, t j + e l - q] w[o,c,k,l] modulo 2^32
/// for strides s and t, dilations d and e, and p and q rows and columns before the image: all that
/// `walk` says but groups. x [N,C,H,W], w [O,C,KH,KW] and y are row-major; outside of the image x
/// is `outside`.
struct byte_convolution {
  int samples{}, channels{}, height{}, width{}, filters{}, kernel_height{}, kernel_width{};
  window walk{};
  std::uint8_t outside{};

  constexpr int out_height() const { return walk.positions(height, kernel_height, 0); }
  constexpr int out_width() const { return walk.positions(width, kernel_width, 1); }
  constexpr int padded_height() const { return int(walk.padded(height, 0)); }
  constexpr int padded_width() const { return int(walk.padded(width, 1)); }
  constexpr int taps() const { return kernel_height * kernel_width; }
};

namespace detail {
/// Words of a pixel: each is a group of channels, the last filled up with zeros.
template <class Unit>
constexpr int pixel_words(const byte_convolution& c) {
  return byte_groups<Unit>(c.channels);
}
/// The depth of the product, with those zeros.
template <class Unit>
constexpr int convolution_depth(const byte_convolution& c) {
  return c.taps() * pixel_words<Unit>(c) * byte_form<Unit>::group;
}
}  // namespace detail

/// First filters are put together, in units of strips of them; once for many images.
template <class Unit = matrix_unit>
constexpr int byte_filter_units(const byte_convolution& c) {
  return byte_pack_units<Unit>(c.filters);
}
template <class Unit = matrix_unit>
constexpr std::int64_t byte_filter_words(const byte_convolution& c) {
  return byte_packed_words<Unit>(c.filters, detail::convolution_depth<Unit>(c));
}
template <class Unit = matrix_unit>
void byte_pack_filters(const byte_convolution& c, const std::int8_t* w, std::uint32_t* to,
                       work_range strips) {
  constexpr int group = detail::byte_form<Unit>::group, wide = detail::byte_columns<Unit>;
  const std::int64_t taps = c.taps(), size = taps * c.channels;
  const std::int64_t words = detail::pixel_words<Unit>(c), used = taps * words * wide;
  const std::int64_t strip = byte_packed_words<Unit>(wide, detail::convolution_depth<Unit>(c));
  to += strips.first * strip;
  for (int s = strips.first; s < strips.last; ++s, to += strip) {
    // All taps of a group of channels, which lie side by side, before the next group.
    for (int g = 0; g < words; ++g) {
      const int count = std::min(group, c.channels - g * group);
      for (int tap = 0; tap < taps; ++tap) {
        const std::int8_t* const from = w + s * wide * size + g * group * taps + tap;
        std::uint32_t* const row = to + (tap * words + g) * wide;
        const int width = std::min(wide, c.filters - s * wide);
        for (int o = 0; o < width; ++o)
          row[o] = group_of_bytes<group>(from + o * size, taps, count);
        std::fill(row + width, row + wide, 0u);
      }
    }
    std::fill(to + used, to + strip, 0u);
  }
}

/// Then the image: its channels side by side, with a border, in units of rows.
constexpr int byte_image_units(const byte_convolution& c) { return c.samples * c.padded_height(); }
template <class Unit = matrix_unit>
constexpr std::int64_t byte_image_words(const byte_convolution& c) {
  return std::int64_t{byte_image_units(c)} * c.padded_width() * detail::pixel_words<Unit>(c);
}

namespace detail {

/// `width` pixels, a row of channels that lie `plane` apart, in squares of pixels and groups; may
/// read up to `end`.
template <class Unit>
void pack_pixels(const std::uint8_t* from, const std::uint8_t* end, std::int64_t plane,
                 int channels, int width, std::uint32_t* to) {
  constexpr int group = byte_form<Unit>::group, square = 16;
  const int words = byte_groups<Unit>(channels);
  std::uint32_t some[square][square];
  for (int g = 0; g < words; g += square) {
    const int height = std::min(square, words - g);
    for (int j = 0; j < width; j += square) {
      const int pixels = std::min(square, width - j);
      for (int r = 0; r < height; ++r) {
        const int count = std::min(group, channels - (g + r) * group);
        const std::uint8_t* const first = from + (g + r) * group * plane + j;
        if (end - first >= (count - 1) * plane + square) {
          group_columns<group, square>(first, plane, count, some[r]);
        } else {
          for (int k = 0; k < pixels; ++k)
            some[r][k] = group_of_bytes<group>(first + k, plane, count);
        }
      }
      transpose_words(height, pixels, some, sizeof some[0], to + std::int64_t{j} * words + g,
                      std::int64_t{words} * 4);
    }
  }
}

}  // namespace detail

template <class Unit = matrix_unit>
void byte_pack_image(const byte_convolution& c, const std::uint8_t* x, std::uint32_t* to,
                     work_range rows) {
  constexpr int group = detail::byte_form<Unit>::group;
  const std::int64_t plane = std::int64_t{c.height} * c.width;
  const std::int64_t words = detail::pixel_words<Unit>(c), row_words = c.padded_width() * words;
  const std::int64_t before = c.walk.before[1] * words;
  std::array<std::uint8_t, group> outside;
  outside.fill(c.outside);
  // Of the last group this is more than its channels, which the filters do not have.
  const std::uint32_t border = group_of_bytes<group>(outside.data(), 1, group);
  for (int u = rows.first; u < rows.last; ++u) {
    std::uint32_t* const row = to + u * row_words;
    const int sample = u / c.padded_height(), i = u % c.padded_height() - c.walk.before[0];
    if (i < 0 || i >= c.height) {
      std::fill_n(row, row_words, border);
      continue;
    }
    std::fill_n(row, before, border);
    std::fill_n(row + before + c.width * words, c.walk.after[1] * words, border);
    detail::pack_pixels<Unit>(x + sample * c.channels * plane + std::int64_t{i} * c.width,
                              x + c.samples * c.channels * plane, plane, c.channels, c.width,
                              row + before);
  }
}

/// Then units of pixels are computed, on any number of threads; each needs scratch of its own.
template <class Unit = matrix_unit>
constexpr int byte_convolution_units(const byte_convolution& c) {
  return c.samples * byte_product_units<Unit>(c.out_height() * c.out_width());
}
template <class Unit = matrix_unit>
constexpr std::int64_t byte_convolution_scratch(const byte_convolution& c) {
  return byte_product_scratch<Unit>(detail::convolution_depth<Unit>(c));
}

namespace detail {

/// The words of an image that a pixel of the result is a product of: runs of them, each of so many
/// words that lie side by side.
template <class Unit>
struct byte_windows {
  const byte_convolution& c;
  const std::uint32_t* image{};
  std::int64_t words = pixel_words<Unit>(c), row = c.padded_width() * words;
  /// Taps that lie side by side are one run.
  int runs = c.walk.dilation[1] == 1 ? 1 : c.kernel_width;
  std::int64_t length = c.kernel_width / runs * words;

  const std::uint32_t* corner(int pixel) const {
    const int i = pixel / c.out_width(), j = pixel % c.out_width();
    return image + i * row * c.walk.stride[0] + j * words * c.walk.stride[1];
  }
  void for_each_run(auto f) const {
    for (int k = 0; k < c.kernel_height; ++k)
      for (int l = 0; l < runs; ++l)
        f(k * row * c.walk.dilation[0] + l * words * c.walk.dilation[1]);
  }
  void pack_rows(int first, int rows, std::uint32_t* to) const {
    constexpr int most = byte_sums::rows;
    std::array<const std::uint32_t*, std::size_t(most)> corners;
    for (int r = 0; r < rows; ++r) corners[std::size_t(r)] = corner(first + r);
    for_each_run([&](std::int64_t run) {
      for (std::int64_t at = run; at < run + length; ++at, to += most) {
        for (int r = 0; r < rows; ++r) to[r] = corners[std::size_t(r)][at];
      }
    });
  }
  tiles_of_a tiles_at(int first, int rows, std::byte* to) const {
    const bool as_it_is = c.taps() == 1 && c.walk == window{};
    if (as_it_is && words % unit_words == 0 && rows % unit_rows == 0)
      return {reinterpret_cast<const std::byte*>(corner(first)), words * 4, tile_row_bytes};
    for (int r = 0; r < rows; ++r) {
      tile_row_writer writer(to + r * tile_row_bytes);
      const std::uint32_t* const from = corner(first + r);
      for_each_run([&](std::int64_t run) { writer.append(from + run, length * 4); });
      writer.finish();
    }
    return {to};
  }
};

}  // namespace detail

template <class Unit = matrix_unit>
void byte_convolve(const byte_convolution& c, const std::uint32_t* image,
                   const std::uint32_t* filters, std::int32_t* y, std::byte* scratch,
                   work_range units) {
  const int pixels = c.out_height() * c.out_width(), each = byte_product_units<Unit>(pixels);
  for (int u = units.first; u < units.last;) {
    const int sample = u / each;
    const work_range part{u - sample * each, std::min(each, units.last - sample * each)};
    u += part.size();
    byte_product p{pixels, c.filters, detail::convolution_depth<Unit>(c)};
    p.c = y + std::int64_t{sample} * c.filters * pixels;
    p.c_row = 1;
    p.c_column = pixels;
    detail::byte_windows<Unit> windows{c};
    windows.image = image + sample * c.padded_height() * windows.row;
    detail::multiply_bytes<Unit>(
        p, filters, scratch, part,
        [&](int first, int rows, std::uint32_t* to) { windows.pack_rows(first, rows, to); },
        [&](int first, int rows, std::byte* to) { return windows.tiles_at(first, rows, to); });
  }
}

}  // namespace cella::cpu
