#include <doctest/doctest.h>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of its own AVX-512 intrinsics when xsimd uses them, as the portable operations do.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cella/backend/cpu/simd/simd.hpp>
#include <cmath>
#include <limits>
#include <vector>

using namespace cella::cpu;

namespace {

template <class T>
constexpr T poison = std::numeric_limits<T>::quiet_NaN();

/// start, start + 1, ...
template <class T>
vec<T> count_from(int start) {
  alignas(vec<T>) T row[lanes<T>];
  for (int i = 0; i < lanes<T>; ++i) row[i] = static_cast<T>(start + i);
  return load(row);
}
template <class T>
std::vector<T> listed(vec<T> v) {
  std::vector<T> row(static_cast<std::size_t>(lanes<T>));
  store_unaligned(row.data(), v);
  return row;
}

/// The operations of one implementation against plain loops: `Lanes` is the native or the portable
/// one.
template <class Lanes, class T>
void check_lanes() {
  constexpr int L = lanes<T>;
  const auto at = [](const auto& values, int i) { return values[static_cast<std::size_t>(i)]; };

  for (int n = 0; n <= L; ++n) {
    CAPTURE(n);
    // The buffer ends with the n-th element, so that a sanitizer sees a load or store beyond it.
    std::vector<T> buffer(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) buffer[static_cast<std::size_t>(i)] = static_cast<T>(i + 1);
    const auto loaded = listed<T>(Lanes::load_first(buffer.data(), n));
    for (int i = 0; i < L; ++i) CHECK(at(loaded, i) == static_cast<T>(i < n ? i + 1 : 0));
    Lanes::store_first(buffer.data(), n, count_from<T>(7));
    for (int i = 0; i < n; ++i) CHECK(at(buffer, i) == static_cast<T>(7 + i));

    std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) labels[static_cast<std::size_t>(i)] = i % 3 - 1;
    for (int value : {-1, 0, 1, 2}) {
      unsigned expected = 0;
      for (int i = 0; i < n; ++i) expected |= unsigned{at(labels, i) == value} << i;
      CHECK(Lanes::equal_first(labels.data(), n, value) == expected);
    }
  }

  const vec<T> a = count_from<T>(1), b(static_cast<T>(3));
  CHECK(Lanes::greater(a, b) == (first_bits(L) & ~7u));
  CHECK(Lanes::greater(b, a) == (first_bits(L) & 3u));
  CHECK(Lanes::greater(a, vec<T>(poison<T>)) == 0);
  CHECK(Lanes::greater(vec<T>(poison<T>), a) == 0);
  for (unsigned bits = 0; bits <= first_bits(L); bits += L > 8 ? 77 : 1) {
    const auto kept = listed<T>(Lanes::keep(bits, a)),
               chosen = listed<T>(Lanes::select(bits, a, b));
    for (int i = 0; i < L; ++i) {
      const bool set = bits >> i & 1;
      CHECK(at(kept, i) == static_cast<T>(set ? i + 1 : 0));
      CHECK(at(chosen, i) == static_cast<T>(set ? i + 1 : 3));
    }
  }
  CHECK(listed<T>(Lanes::keep(0, vec<T>(poison<T>))) == listed<T>(vec<T>(T{0})));
  CHECK(listed<T>(Lanes::fma(a, b, b)) == listed<T>(a * b + b));
  CHECK(sum(a) == static_cast<T>(L * (L + 1) / 2));
  CHECK(largest(a) == static_cast<T>(L));
  CHECK(largest(a * vec<T>(T(-1))) == T(-1));
  const auto larger = listed<T>(Lanes::max(a, b)), smaller = listed<T>(Lanes::min(a, b));
  for (int i = 0; i < L; ++i) {
    CHECK(at(larger, i) == static_cast<T>(std::max(i + 1, 3)));
    CHECK(at(smaller, i) == static_cast<T>(std::min(i + 1, 3)));
  }

  vec<T> rows[L], original[L];
  for (int i = 0; i < L; ++i) original[i] = rows[i] = count_from<T>(100 * i);
  const auto totals = listed<T>(Lanes::sums(original));
  Lanes::transpose(rows);
  for (int i = 0; i < L; ++i) {
    const auto column = listed<T>(rows[i]);
    for (int j = 0; j < L; ++j) CHECK(at(column, j) == static_cast<T>(100 * j + i));
    CHECK(at(totals, i) == static_cast<T>(100 * i * L + L * (L - 1) / 2));
  }

  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(L));
  for (int i = 0; i < L; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(254 + i % 3);
  for (int value : {0, 1, 254, 255}) {
    unsigned expected = 0;
    for (int i = 0; i < L; ++i) expected |= unsigned{at(bytes, i) == value} << i;
    CHECK(Lanes::equal_bytes(bytes.data(), static_cast<std::uint8_t>(value)) == expected);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("a shared vector is held as it was loaded", T, float, double) {
  alignas(vec<T>) T row[lanes<T>];
  for (int i = 0; i < lanes<T>; ++i) row[i] = static_cast<T>(3 + i);
  CHECK(listed<T>(load_shared(row)) == listed<T>(count_from<T>(3)));
  CHECK(listed<T>(in_register<T>(load(row))) == listed<T>(count_from<T>(3)));
}

TEST_CASE_TEMPLATE("the portable lane operations agree with plain loops", T, float, double) {
  check_lanes<detail::portable_lanes<T>, T>();
}

TEST_CASE_TEMPLATE("this build's lane operations agree with plain loops", T, float, double) {
  check_lanes<detail::native_lanes<T>, T>();
}

TEST_CASE_TEMPLATE("multiply_add rounds once where the target can", T, float, double) {
#if defined(__FMA__) || defined(__aarch64__)
  // (1 + e)(1 - e) - 1 is -e^2, which a rounded product would lose.
  const T e = std::numeric_limits<T>::epsilon();
  const vec<T> r = multiply_add(vec<T>(1 + e), vec<T>(1 - e), vec<T>(T{-1}));
  CHECK(sum(r) == -e * e * lanes<T>);
#else
  const vec<T> r = multiply_add(vec<T>(T{2}), vec<T>(T{3}), vec<T>(T{4}));
  CHECK(sum(r) == T{10} * lanes<T>);
#endif
}

TEST_CASE("denormals are flushed only while the guard lives") {
#if defined(__SSE2__) || defined(__aarch64__)
  volatile float small = std::numeric_limits<float>::min();
  const auto halve = [&] { return small * 0.5f; };
  CHECK(halve() > 0);
  {
    const flush_denormals guard;
    CHECK(halve() == 0);
  }
  CHECK(halve() > 0);
#else
  MESSAGE("this target has no guard against denormals");
#endif
}

TEST_CASE_TEMPLATE("signs select, that of -0, too", T, float, double) {
  const vec<T> a(T(1)), b(T(2));
  for (const T by : {T(-3), T(-0.0), -std::numeric_limits<T>::infinity()})
    CHECK(largest(select_negative(vec<T>(by), a, b)) == 1);
  for (const T by : {T(3), T(0), std::numeric_limits<T>::infinity()})
    CHECK(-largest(-select_negative(vec<T>(by), a, b)) == 2);
}
