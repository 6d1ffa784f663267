// Products and convolutions of bytes against sums in 64 bits, to the last digit: by this build, in
// vectors, and in tiles of the matrix unit that is emulated.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/backend/cpu/convolution/byte_convolution.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <utility>
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

  matrix<std::uint8_t> left(const std::uint8_t* a) const {
    return a_transposed ? matrix<std::uint8_t>{a, 1, rows} : matrix<std::uint8_t>{a, depth, 1};
  }
  matrix<std::int8_t> right(const std::int8_t* b) const {
    return b_transposed ? matrix<std::int8_t>{b, 1, depth} : matrix<std::int8_t>{b, columns, 1};
  }
};
/// How sums lie, of which some memory holds no sum.
enum class place { rows, columns, apart };
constexpr std::int32_t untouched = -7;

/// Computed in `parts` ranges of units, as threads would; row-major, if C is left alone elsewhere.
template <class Unit>
std::vector<std::int32_t> product_in_bytes(const case_of_product& c, const std::uint8_t* a,
                                           const std::int8_t* b, int parts,
                                           place lies = place::rows) {
  byte_product p{c.rows, c.columns, c.depth, c.left(a), c.right(b)};
  p.c_row = lies == place::rows ? c.columns + 1 : lies == place::columns ? 1 : 2 * c.columns + 3;
  p.c_column = lies == place::rows ? 1 : lies == place::columns ? c.rows + 1 : 2;
  std::vector<std::int32_t> y(std::size_t(c.rows * p.c_row + c.columns * p.c_column), untouched);
  p.c = y.data();
  std::vector<std::uint32_t> packed(std::size_t(byte_packed_words<Unit>(c.columns, c.depth)));
  byte_pack<Unit>(p, packed.data(), {0, byte_pack_units<Unit>(c.columns)});
  aligned_buffer scratch(std::size_t(byte_product_scratch<Unit>(c.depth)));
  const int units = byte_product_units<Unit>(c.rows);
  for (int k = 0; k < parts; ++k)
    byte_multiply<Unit>(p, packed.data(), scratch.data(),
                        {units * k / parts, units * (k + 1) / parts});
  std::vector<std::int32_t> sums;
  for (int i = 0; i < c.rows; ++i) {
    for (int j = 0; j < c.columns; ++j)
      sums.push_back(std::exchange(y[std::size_t(i * p.c_row + j * p.c_column)], untouched));
  }
  if (std::ranges::count(y, untouched) != std::ptrdiff_t(y.size())) FAIL("C is written elsewhere");
  return sums;
}

template <class Unit>
std::vector<std::int32_t> convolved(const byte_convolution& c, const std::uint8_t* x,
                                    const std::int8_t* w) {
  std::vector<std::uint32_t> filters(std::size_t(byte_filter_words<Unit>(c)));
  std::vector<std::uint32_t> image(std::size_t(byte_image_words<Unit>(c)));
  byte_pack_filters<Unit>(c, w, filters.data(), {0, byte_filter_units<Unit>(c)});
  byte_pack_image<Unit>(c, x, image.data(), {0, byte_image_units(c)});
  aligned_buffer scratch(std::size_t(byte_convolution_scratch<Unit>(c)));
  std::vector<std::int32_t> y(std::size_t(c.samples * c.filters * c.out_height() * c.out_width()),
                              -1);
  const int units = byte_convolution_units<Unit>(c);
  for (int k = 0; k < 3; ++k)
    byte_convolve<Unit>(c, image.data(), filters.data(), y.data(), scratch.data(),
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
                const int row = i * c.walk.stride[0] + k * c.walk.dilation[0] - c.walk.before[0];
                const int column = j * c.walk.stride[1] + l * c.walk.dilation[1] - c.walk.before[1];
                if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
                sum +=
                    std::int64_t{x[((n * c.channels + ch) * c.height + row) * c.width + column]} *
                    w[((o * c.channels + ch) * c.kernel_height + k) * c.kernel_width + l];
              }
          y.push_back(low_bits(sum));
        }
  return y;
}

std::vector<std::int32_t> product_one_by_one(const case_of_product& c, const std::uint8_t* a,
                                             const std::int8_t* b) {
  const matrix<std::uint8_t> left = c.left(a);
  const matrix<std::int8_t> right = c.right(b);
  std::vector<std::int32_t> y;
  for (int i = 0; i < c.rows; ++i) {
    for (int j = 0; j < c.columns; ++j) {
      std::int64_t sum = 0;
      for (int k = 0; k < c.depth; ++k)
        sum += left.data[i * left.row + k * left.column] *
               right.data[k * right.row + j * right.column];
      y.push_back(low_bits(sum));
    }
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
                                   {130, 3, 17},
                                   {160, 64, 128},
                                   {48, 70, 192},
                                   {40, 1100, 1030}}) {
    CAPTURE(c.rows);
    CAPTURE(c.columns);
    CAPTURE(c.depth);
    const auto a = bytes<std::uint8_t>(std::size_t(c.rows * c.depth), 1);
    const auto b = bytes<std::int8_t>(std::size_t(c.depth * c.columns), 2);
    const auto expected = product_one_by_one(c, a.data(), b.data());
    CHECK(product_in_bytes<matrix_unit>(c, a.data(), b.data(), 1) == expected);
    CHECK(product_in_bytes<matrix_unit>(c, a.data(), b.data(), 3) == expected);
    CHECK(product_in_bytes<void>(c, a.data(), b.data(), 2) == expected);
    CHECK(product_in_bytes<emulated_unit>(c, a.data(), b.data(), 2) == expected);
  }
}

TEST_CASE("products of bytes are exact for all extents around those of tiles") {
  constexpr std::array extents{1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129};
  const auto a = bytes<std::uint8_t>(129 * 129, 5);
  const auto b = bytes<std::int8_t>(129 * 129, 6);
  int turn = 0;
  for (const int rows : extents) {
    for (const int columns : extents) {
      for (const int depth : extents) {
        // All ways in turn, which meet all extents, as there are eleven of them.
        const case_of_product c{rows, columns, depth, turn % 2 == 1, turn / 2 % 2 == 1};
        const place lies{turn / 4 % 3};
        ++turn;
        const auto expected = product_one_by_one(c, a.data(), b.data());
        const bool same =
            product_in_bytes<matrix_unit>(c, a.data(), b.data(), 1, lies) == expected &&
            product_in_bytes<void>(c, a.data(), b.data(), 1, lies) == expected &&
            product_in_bytes<emulated_unit>(c, a.data(), b.data(), 1, lies) == expected;
        if (!same) FAIL(rows, " x ", columns, " x ", depth, " in turn ", turn - 1);
      }
    }
  }
}

TEST_CASE("the largest products of bytes neither saturate nor overflow") {
  // 255 * -128 and 255 * 127, of which two do not fit 16 bits; and as many as fit 32.
  for (const int depth : {2, 4, 64, 65793}) {
    const std::vector<std::uint8_t> a(std::size_t(depth), 255);
    for (const int extreme : {-128, 127}) {
      const std::vector<std::int8_t> b(std::size_t(depth), static_cast<std::int8_t>(extreme));
      const std::vector<std::int32_t> y{low_bits(std::int64_t{255} * extreme * depth)};
      CHECK(product_in_bytes<matrix_unit>({1, 1, depth}, a.data(), b.data(), 1) == y);
      CHECK(product_in_bytes<void>({1, 1, depth}, a.data(), b.data(), 1) == y);
      CHECK(product_in_bytes<emulated_unit>({1, 1, depth}, a.data(), b.data(), 1) == y);
    }
  }
}

TEST_CASE("convolutions of bytes are exact") {
  const auto same = [](int stride, int padding, int dilation = 1) {
    return window{{stride, stride}, {padding, padding}, {padding, padding}, {dilation, dilation}};
  };
  for (const byte_convolution& c :
       {byte_convolution{1, 1, 5, 5, 1, 3, 3},
        {2, 3, 9, 7, 6, 5, 5, same(1, 2)},
        {1, 16, 14, 14, 33, 3, 3, same(1, 1)},
        {2, 7, 11, 10, 40, 3, 3, same(2, 1)},
        {1, 64, 6, 6, 20, 1, 1},
        {3, 5, 8, 9, 4, 1, 3, same(2, 0)},
        {1, 64, 17, 21, 40, 3, 3, same(1, 1)},
        {2, 128, 4, 4, 33, 1, 1},
        {1, 12, 12, 13, 5, 3, 2, same(1, 2, 2)},
        {1, 70, 19, 18, 20, 2, 2, same(3, 3, 4)},
        // As TensorFlow pads an even image, and all that may differ between axes.
        {1, 32, 14, 14, 20, 3, 3, {{2, 2}, {0, 0}, {1, 1}}},
        {2, 6, 9, 12, 35, 2, 3, {{1, 3}, {2, 0}, {0, 1}, {3, 2}}},
        {1, 64, 5, 6, 20, 1, 1, {{1, 2}, {0, 0}, {0, 0}}},
        {1, 64, 5, 6, 20, 1, 1, {{1, 1}, {0, 1}, {1, 0}}}}) {
    CAPTURE(c.channels);
    CAPTURE(c.filters);
    const auto x = bytes<std::uint8_t>(std::size_t(c.samples * c.channels * c.height * c.width), 3);
    const auto w = bytes<std::int8_t>(std::size_t(c.filters * c.channels * c.taps()), 4);
    const auto expected = convolved_one_by_one(c, x.data(), w.data());
    CHECK(convolved<matrix_unit>(c, x.data(), w.data()) == expected);
    CHECK(convolved<void>(c, x.data(), w.data()) == expected);
    CHECK(convolved<emulated_unit>(c, x.data(), w.data()) == expected);
  }
}
