// Products and convolutions of bytes against sums in 64 bits, to the last digit.
#include <doctest/doctest.h>

#include <cella/backend/cpu/convolution/byte_convolution.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Bytes over their whole range; the largest and least are as frequent as all others together.
template <class Byte>
std::vector<Byte> bytes(std::size_t count, std::uint64_t seed) {
  generator random(seed);
  std::vector<Byte> all(count);
  for (Byte& b : all) {
    const float kind = random.uniform(0.f, 4.f);
    b = kind < 1   ? std::numeric_limits<Byte>::max()
        : kind < 2 ? std::numeric_limits<Byte>::min()
                   : static_cast<Byte>(static_cast<int>(random.uniform(0.f, 256.f)));
  }
  return all;
}
std::int32_t low_bits(std::int64_t x) { return static_cast<std::int32_t>(x); }

struct case_of_product {
  int rows, columns, depth;
  bool a_transposed = false, b_transposed = false;
};
/// Computed in `parts` ranges of units, as threads would.
std::vector<std::int32_t> product_in_bytes(const case_of_product& c, const std::uint8_t* a,
                                           const std::int8_t* b, int parts) {
  std::vector<std::int32_t> y(std::size_t(c.rows * c.columns), -1);
  const byte_product p{
      c.rows,
      c.columns,
      c.depth,
      c.a_transposed ? matrix<std::uint8_t>{a, 1, c.rows} : matrix<std::uint8_t>{a, c.depth, 1},
      c.b_transposed ? matrix<std::int8_t>{b, 1, c.depth} : matrix<std::int8_t>{b, c.columns, 1},
      y.data(),
      c.columns};
  std::vector<std::uint32_t> packed(std::size_t(byte_packed_words(c.columns, c.depth)));
  byte_pack(p, packed.data(), {0, byte_pack_units(c.columns)});
  aligned_buffer scratch(std::size_t(byte_product_scratch(c.depth)));
  const int units = byte_product_units(c.rows);
  for (int k = 0; k < parts; ++k)
    byte_multiply(p, packed.data(), scratch.data(), {units * k / parts, units * (k + 1) / parts});
  return y;
}

std::vector<std::int32_t> convolved(const byte_convolution& c, const std::uint8_t* x,
                                    const std::int8_t* w) {
  std::vector<std::uint32_t> filters(std::size_t(byte_filter_words(c)));
  std::vector<std::uint32_t> image(std::size_t(byte_image_words(c)));
  byte_pack_filters(c, w, filters.data(), {0, byte_filter_units(c)});
  byte_pack_image(c, x, image.data(), {0, byte_image_units(c)});
  aligned_buffer scratch(std::size_t(byte_convolution_scratch(c)));
  std::vector<std::int32_t> y(std::size_t(c.samples * c.filters * c.out_height() * c.out_width()),
                              -1);
  const int units = byte_convolution_units(c);
  for (int k = 0; k < 3; ++k)
    byte_convolve(c, image.data(), filters.data(), y.data(), scratch.data(),
                  {units * k / 3, units * (k + 1) / 3});
  return y;
}
std::vector<std::int32_t> convolved_one_by_one(const byte_convolution& c, const std::uint8_t* x,
                                               const std::int8_t* w) {
  std::vector<std::int32_t> y;
  for (int n = 0; n < c.samples; ++n)
    for (int o = 0; o < c.filters; ++o)
      for (int i = 0; i < c.out_height(); ++i)
        for (int j = 0; j < c.out_width(); ++j) {
          std::int64_t sum = 0;
          for (int ch = 0; ch < c.channels; ++ch)
            for (int k = 0; k < c.kernel_height; ++k)
              for (int l = 0; l < c.kernel_width; ++l) {
                const int row = i * c.stride + k - c.padding, column = j * c.stride + l - c.padding;
                if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
                sum +=
                    std::int64_t{x[((n * c.channels + ch) * c.height + row) * c.width + column]} *
                    w[((o * c.channels + ch) * c.kernel_height + k) * c.kernel_width + l];
              }
          y.push_back(low_bits(sum));
        }
  return y;
}

}  // namespace

TEST_CASE("products of bytes are exact") {
  for (const case_of_product& c : {case_of_product{1, 1, 1},
                                   {3, 5, 2},
                                   {14, 32, 64},
                                   {15, 33, 65},
                                   {57, 31, 7},
                                   {6, 16, 3},
                                   {113, 70, 129},
                                   {20, 40, 63, true, false},
                                   {20, 40, 62, false, true},
                                   {33, 17, 61, true, true},
                                   {2, 300, 1000},
                                   {130, 3, 17}}) {
    CAPTURE(c.rows);
    CAPTURE(c.columns);
    CAPTURE(c.depth);
    const auto a = bytes<std::uint8_t>(std::size_t(c.rows * c.depth), 1);
    const auto b = bytes<std::int8_t>(std::size_t(c.depth * c.columns), 2);
    std::vector<std::int32_t> expected;
    for (int i = 0; i < c.rows; ++i) {
      for (int j = 0; j < c.columns; ++j) {
        std::int64_t sum = 0;
        for (int k = 0; k < c.depth; ++k)
          sum += std::int64_t{a[std::size_t(c.a_transposed ? k * c.rows + i : i * c.depth + k)]} *
                 b[std::size_t(c.b_transposed ? j * c.depth + k : k * c.columns + j)];
        expected.push_back(low_bits(sum));
      }
    }
    CHECK(product_in_bytes(c, a.data(), b.data(), 1) == expected);
    CHECK(product_in_bytes(c, a.data(), b.data(), 3) == expected);
  }
}

TEST_CASE("the largest products of bytes neither saturate nor overflow") {
  // 255 * -128 and 255 * 127, of which two do not fit 16 bits; and as many as fit 32.
  for (const int depth : {2, 4, 64, 65793}) {
    const std::vector<std::uint8_t> a(std::size_t(depth), 255);
    for (const int extreme : {-128, 127}) {
      const std::vector<std::int8_t> b(std::size_t(depth), static_cast<std::int8_t>(extreme));
      const auto y = product_in_bytes({1, 1, depth}, a.data(), b.data(), 1);
      CHECK(std::int64_t{y[0]} == std::int64_t{255} * extreme * depth);
    }
  }
}

TEST_CASE("convolutions of bytes are exact") {
  for (const byte_convolution& c : {byte_convolution{1, 1, 5, 5, 1, 3, 3},
                                    {2, 3, 9, 7, 6, 5, 5, 1, 2},
                                    {1, 16, 14, 14, 33, 3, 3, 1, 1},
                                    {2, 7, 11, 10, 40, 3, 3, 2, 1},
                                    {1, 64, 6, 6, 20, 1, 1},
                                    {3, 5, 8, 9, 4, 1, 3, 2, 0}}) {
    CAPTURE(c.channels);
    CAPTURE(c.filters);
    const auto x = bytes<std::uint8_t>(std::size_t(c.samples * c.channels * c.height * c.width), 3);
    const auto w = bytes<std::int8_t>(std::size_t(c.filters * c.channels * c.taps()), 4);
    CHECK(convolved(c, x.data(), w.data()) == convolved_one_by_one(c, x.data(), w.data()));
  }
}
