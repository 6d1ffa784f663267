// Convolutions of images of u8 with filters of s8, with sums of 32 bits: products of matrices whose
// rows are the pixels of the result.
#pragma once

#include <array>
#include <cella/backend/cpu/gemm/byte_product.hpp>

namespace cella::cpu {

/// y[n,o,i,j] = sum over c, k, l of x[n, c, s i + k - p, s j + l - p] w[o,c,k,l] modulo 2^32, for
/// row-major x [N,C,H,W], w [O,C,KH,KW] and y. Outside of the image x is `outside`.
struct byte_convolution {
  int samples{}, channels{}, height{}, width{}, filters{}, kernel_height{}, kernel_width{};
  int stride = 1, padding{};
  std::uint8_t outside{};

  constexpr int out_height() const { return (padded_height() - kernel_height) / stride + 1; }
  constexpr int out_width() const { return (padded_width() - kernel_width) / stride + 1; }
  constexpr int padded_height() const { return height + 2 * padding; }
  constexpr int padded_width() const { return width + 2 * padding; }
  constexpr int taps() const { return kernel_height * kernel_width; }
  /// Words of a pixel: each is a group of channels, the last filled up with zeros.
  constexpr int words() const { return detail::byte_groups(channels); }
};

/// First filters are put together, in units of strips of them; once for many images.
constexpr int byte_filter_units(const byte_convolution& c) { return byte_pack_units(c.filters); }
constexpr std::int64_t byte_filter_words(const byte_convolution& c) {
  return std::int64_t{byte_filter_units(c)} * detail::byte_columns * c.taps() * c.words();
}
inline void byte_pack_filters(const byte_convolution& c, const std::int8_t* w, std::uint32_t* to,
                              work_range strips) {
  constexpr int group = byte_sums::group, wide = detail::byte_columns;
  const std::int64_t taps = c.taps(), size = taps * c.channels;
  to += strips.first * taps * c.words() * wide;
  for (int s = strips.first; s < strips.last; ++s) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int first = 0; first < c.channels; first += group) {
        const int count = std::min(group, c.channels - first);
        for (int o = s * wide; o < (s + 1) * wide; ++o)
          *to++ =
              o < c.filters ? group_of_bytes(w + o * size + first * taps + tap, taps, count) : 0;
      }
    }
  }
}

/// Then the image: its channels side by side, with a border, in units of rows.
constexpr int byte_image_units(const byte_convolution& c) { return c.samples * c.padded_height(); }
constexpr std::int64_t byte_image_words(const byte_convolution& c) {
  return std::int64_t{byte_image_units(c)} * c.padded_width() * c.words();
}
inline void byte_pack_image(const byte_convolution& c, const std::uint8_t* x, std::uint32_t* to,
                            work_range rows) {
  constexpr int group = byte_sums::group;
  const std::int64_t plane = std::int64_t{c.height} * c.width;
  const std::int64_t row_words = std::int64_t{c.padded_width()} * c.words();
  std::array<std::uint8_t, group> outside;
  outside.fill(c.outside);
  const std::uint32_t border = group_of_bytes(outside.data(), 1, group);
  for (int u = rows.first; u < rows.last; ++u) {
    std::uint32_t* const row = to + u * row_words;
    const int sample = u / c.padded_height(), i = u % c.padded_height() - c.padding;
    // Of the last group this is more than its channels, which the filters do not have.
    std::fill_n(row, row_words, border);
    if (i < 0 || i >= c.height) continue;
    std::uint32_t* const pixels = row + std::int64_t{c.padding} * c.words();
    for (int g = 0; g < c.words(); ++g) {
      const std::uint8_t* const from =
          x + (std::int64_t{sample} * c.channels + g * group) * plane + std::int64_t{i} * c.width;
      const int count = std::min(group, c.channels - g * group);
      for (int j = 0; j < c.width; ++j)
        pixels[std::int64_t{j} * c.words() + g] = group_of_bytes(from + j, plane, count);
    }
  }
}

/// Then units of pixels are computed, on any number of threads; each needs scratch of its own.
constexpr int byte_convolution_units(const byte_convolution& c) {
  return c.samples * byte_product_units(c.out_height() * c.out_width());
}
constexpr std::int64_t byte_convolution_scratch(const byte_convolution& c) {
  return byte_product_scratch(c.taps() * c.words() * byte_sums::group);
}
inline void byte_convolve(const byte_convolution& c, const std::uint32_t* image,
                          const std::uint32_t* filters, std::int32_t* y, std::byte* scratch,
                          work_range units) {
  constexpr int most = byte_sums::rows;
  const int pixels = c.out_height() * c.out_width(), each = byte_product_units(pixels);
  const int words = c.words();
  const std::int64_t row = std::int64_t{c.padded_width()} * words;
  for (int u = units.first; u < units.last;) {
    const int sample = u / each;
    const work_range part{u - sample * each, std::min(each, units.last - sample * each)};
    u += part.size();
    byte_product p{pixels, c.filters, c.taps() * words * byte_sums::group};
    p.c = y + std::int64_t{sample} * c.filters * pixels;
    p.c_row = 1;
    p.c_column = pixels;
    const std::uint32_t* const from = image + sample * c.padded_height() * row;
    detail::byte_multiply(p, filters, scratch, part, [&](int first, int rows, std::uint32_t* to) {
      std::array<const std::uint32_t*, std::size_t(most)> corner;
      for (int r = 0; r < rows; ++r) {
        const int i = (first + r) / c.out_width(), j = (first + r) % c.out_width();
        corner[std::size_t(r)] = from + i * c.stride * row + std::int64_t{j} * c.stride * words;
      }
      for (int k = 0; k < c.kernel_height; ++k) {
        for (int at = 0; at < c.kernel_width * words; ++at, to += most) {
          for (int r = 0; r < rows; ++r) to[r] = corner[std::size_t(r)][k * row + at];
        }
      }
    });
  }
}

}  // namespace cella::cpu
