// Convolutions of images of bytes with or without a sign, less their zero, with filters of bytes
// less theirs: the convolution of u8 and s8, and what sums of windows and filters correct.
#pragma once

#include <cella/backend/cpu/convolution/byte_convolution.hpp>
#include <cella/backend/cpu/gemm/integer_product.hpp>

namespace cella::cpu {

/// y = sum of (x - u) (w - v[o]) modulo 2^32 over the walk of `form`, all row-major. Outside of the
/// image lies u. `form` is that of a group, of which each has its own channels and filters; groups
/// lie one behind the other. Units: so many filters of a group of an image.
struct integer_convolution {
  byte_convolution form{};
  zeroed_bytes x{}, w{};
  std::int32_t* y{};

  static constexpr int unit_filters = 4 * detail::byte_columns<matrix_unit>;
  /// That of a unit.
  constexpr byte_convolution part(int filters) const {
    byte_convolution c = form;
    c.samples = 1;
    c.walk.groups = 1;
    c.filters = std::min(filters, unit_filters);
    return c;
  }
  constexpr int groups() const { return form.walk.groups; }
  constexpr int pixels() const { return form.out_height() * form.out_width(); }
  /// Units of a group of an image.
  constexpr int units() const { return (form.filters + unit_filters - 1) / unit_filters; }
};
constexpr int integer_convolution_units(const integer_convolution& c) {
  return c.form.samples * c.groups() * c.units();
}
constexpr std::int64_t integer_convolution_scratch(const integer_convolution& c) {
  const byte_convolution f = c.part(integer_convolution::unit_filters);
  const std::int64_t image = std::int64_t{f.height} * f.width;
  return align_up(4 * byte_filter_words(f)) + align_up(4 * byte_image_words(f)) +
         align_up(byte_convolution_scratch(f)) + align_up(image * f.channels) +
         align_up(std::int64_t{f.filters} * f.taps() * f.channels) + align_up(4 * image) +
         align_up(4 * c.pixels());
}

namespace detail {

/// sums[i,j] = what a window at (i,j) covers of the image, whose outside has `outside` everywhere.
inline void window_sums(const byte_convolution& c, const std::uint8_t* x, std::int32_t* planes,
                        std::int32_t* sums) {
  const std::int64_t plane = std::int64_t{c.height} * c.width;
  std::fill_n(planes, plane, 0);
  for (int channel = 0; channel < c.channels; ++channel)
    for (std::int64_t i = 0; i < plane; ++i) planes[i] += x[channel * plane + i];
  const std::int32_t outside = c.channels * std::int32_t{c.outside};
  for (int i = 0; i < c.out_height(); ++i) {
    for (int j = 0; j < c.out_width(); ++j) {
      std::int32_t sum = 0;
      for (int k = 0; k < c.kernel_height; ++k) {
        const int row = i * c.walk.stride[0] + k * c.walk.dilation[0] - c.walk.before[0];
        for (int l = 0; l < c.kernel_width; ++l) {
          const int column = j * c.walk.stride[1] + l * c.walk.dilation[1] - c.walk.before[1];
          const bool inside = row >= 0 && row < c.height && column >= 0 && column < c.width;
          sum += inside ? planes[std::int64_t{row} * c.width + column] : outside;
        }
      }
      *sums++ = sum;
    }
  }
}

}  // namespace detail

inline void convolve_integers(const integer_convolution& c, work_range units, std::byte* scratch) {
  const byte_convolution whole = c.part(integer_convolution::unit_filters);
  const std::int64_t plane = std::int64_t{whole.height} * whole.width;
  const std::int64_t size = std::int64_t{whole.taps()} * whole.channels;
  detail::byte_scratch parts(scratch);
  auto* const filters = parts.take<std::uint32_t>(byte_filter_words(whole));
  auto* const image = parts.take<std::uint32_t>(byte_image_words(whole));
  auto* const own = parts.take<std::byte>(byte_convolution_scratch(whole));
  auto* const unsigned_image = parts.take<std::uint8_t>(plane * whole.channels);
  auto* const signed_filters = parts.take<std::uint8_t>(whole.filters * size);
  auto* const planes = parts.take<std::int32_t>(plane);
  auto* const sums = parts.take<std::int32_t>(c.pixels());
  const std::int32_t zero = c.x.zero_as_u8(0);
  int there = -1;
  for (int u = units.first; u < units.last; ++u) {
    const int sample = u % c.form.samples, strip = u / c.form.samples;
    const int group = strip / c.units(), within = strip % c.units() * whole.filters;
    const int first = group * c.form.filters + within;
    byte_convolution f = c.part(c.form.filters - within);
    f.outside = static_cast<std::uint8_t>(zero);
    const std::uint8_t* w = c.w.data + first * size;
    if (!c.w.has_sign) {
      if (there != first) detail::flip_signs(w, f.filters * size, signed_filters);
      w = signed_filters;
    }
    const auto* const weights = reinterpret_cast<const std::int8_t*>(w);
    if (there != first) byte_pack_filters(f, weights, filters, {0, byte_filter_units(f)});
    there = first;
    const std::uint8_t* x = c.x.data + (sample * c.groups() + group) * plane * f.channels;
    if (c.x.has_sign) {
      detail::flip_signs(x, plane * f.channels, unsigned_image);
      x = unsigned_image;
    }
    byte_pack_image(f, x, image, {0, byte_image_units(f)});
    std::int32_t* const y =
        c.y + (std::int64_t{sample} * c.groups() * c.form.filters + first) * c.pixels();
    byte_convolve(f, image, filters, y, own, {0, byte_convolution_units(f)});
    bool summed = false;
    for (int o = 0; o < f.filters; ++o) {
      const std::int64_t filter_zero = c.w.zero_as_s8(first + o);
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < size; ++k) sum += weights[o * size + k];
      const std::int64_t all = zero * (size * filter_zero - sum);
      if (filter_zero != 0 && !summed) detail::window_sums(f, x, planes, sums);
      summed |= filter_zero != 0;
      if (all == 0 && filter_zero == 0) continue;
      std::int32_t* const to = y + std::int64_t{o} * c.pixels();
      const std::uint32_t each = detail::residue(filter_zero);
      for (int i = 0; i < c.pixels(); ++i)
        to[i] = static_cast<std::int32_t>(detail::residue(to[i]) + detail::residue(all) -
                                          (each ? each * detail::residue(sums[i]) : 0));
    }
  }
}

}  // namespace cella::cpu
