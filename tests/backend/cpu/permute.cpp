#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/permute.hpp>
#include <cella/backend/host/buffer.hpp>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// The number of elements at a wrong place, or written where none belongs.
template <class T>
int misplaced(const shape& source, const std::array<int, 5>& permutation) {
  const auto n = std::size_t(source.size());
  aligned_buffer memory(n * sizeof(T) + 64), result((n + 4) * sizeof(T) + 64);
  T* const x = reinterpret_cast<T*>(memory.data());
  T* const y = reinterpret_cast<T*>(result.data());
  for (std::size_t i = 0; i < n; ++i) x[i] = T(i % 251 + 1);
  for (std::size_t i = 0; i < n + 4; ++i) y[i] = T(0);
  const permutation_extents e = permutation_of(source, permutation);
  // Units in any order, so that none may count on another.
  for (int u = permute_units<T>(e); u-- > 0;) permute<T>({u, u + 1}, e, x, y);

  const auto steps = row_major_strides(source);
  std::array<int, 5> index{};
  int wrong = 0;
  for (std::size_t k = 0; k < n; ++k) {
    std::int64_t from = 0;
    for (int d = 0; d < source.rank; ++d)
      from += index[std::size_t(d)] * steps[std::size_t(permutation[std::size_t(d)])];
    wrong += y[k] != x[from];
    for (int d = source.rank; d-- > 0;) {
      if (++index[std::size_t(d)] < source[permutation[std::size_t(d)]]) break;
      index[std::size_t(d)] = 0;
    }
  }
  for (std::size_t k = n; k < n + 4; ++k) wrong += y[k] != T(0);
  return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("matrices are transposed", T, float, double, std::uint16_t, std::uint8_t) {
  for (int rows : {1, 2, 7, 8, 9, 15, 16, 17, 31, 67}) {
    for (int columns : {1, 3, 7, 8, 9, 15, 16, 17, 33, 101}) {
      CAPTURE(rows);
      CAPTURE(columns);
      CHECK(misplaced<T>({rows, columns}, {1, 0}) == 0);
      CHECK(misplaced<T>({3, rows, columns}, {0, 2, 1}) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("axes are permuted", T, float, double, std::uint16_t, std::uint8_t) {
  CHECK(misplaced<T>({2, 5, 3, 16}, {0, 2, 1, 3}) == 0);
  CHECK(misplaced<T>({2, 5, 3, 7}, {0, 2, 1, 3}) == 0);
  CHECK(misplaced<T>({2, 5, 3, 17}, {3, 2, 1, 0}) == 0);
  CHECK(misplaced<T>({2, 17, 3, 4}, {0, 2, 3, 1}) == 0);
  CHECK(misplaced<T>({2, 3, 4, 17}, {0, 3, 1, 2}) == 0);
  CHECK(misplaced<T>({4, 1, 5, 1, 6}, {4, 3, 0, 1, 2}) == 0);
  CHECK(misplaced<T>({2, 3, 4, 5, 6}, {3, 1, 4, 0, 2}) == 0);
  CHECK(misplaced<T>({3, 4}, {0, 1}) == 0);
  CHECK(misplaced<T>({1, 1}, {1, 0}) == 0);
}

TEST_CASE_TEMPLATE("pairs are taken apart", T, float, double, std::uint16_t, std::uint8_t) {
  for (int rows : {1, 7, 8, 17, 40, 129}) {
    CAPTURE(rows);
    CHECK(misplaced<T>({rows, 2}, {1, 0}) == 0);
    CHECK(misplaced<T>({3, rows, 2}, {0, 2, 1}) == 0);
    CHECK(misplaced<T>({3, 5, 2, rows, 2}, {0, 2, 4, 1, 3}) == 0);  // space to depth
  }
}

TEST_CASE("large results, which pass the caches, are right, too") {
  CHECK(misplaced<float>({1024, 2112}, {1, 0}) == 0);
  CHECK(misplaced<double>({520, 2056}, {1, 0}) == 0);
  CHECK(misplaced<float>({1023, 2112}, {1, 0}) == 0);
  CHECK(misplaced<float>({16, 80, 32, 64}, {0, 2, 1, 3}) == 0);
  CHECK(misplaced<float>({16, 80, 32, 60}, {0, 2, 1, 3}) == 0);
}

TEST_CASE("axes that move together are one") {
  const permutation_extents heads = permutation_of({8, 128, 4, 64}, std::array{0, 2, 1, 3});
  CHECK(heads.rank == 4);
  CHECK(heads.copies_rows());
  const permutation_extents pixels = permutation_of({8, 16, 7, 7}, std::array{0, 2, 3, 1});
  CHECK(pixels.rank == 3);
  CHECK(pixels.columns() == 49);
  CHECK(pixels.rows() == 16);
  CHECK(permutation_of({5, 6}, std::array{0, 1}).rank == 1);
}
