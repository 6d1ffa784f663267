#include <doctest/doctest.h>

#include <array>
#include <cella/graph/random.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

using namespace cella;

namespace {

// Known answers of the paper's reference implementation, Random123 (kat_vectors).
struct known_answer {
  random_block counter;
  std::array<std::uint32_t, 2> key;
  random_block ten_rounds;
};
// clang-format off
constexpr known_answer known[]{
    {{0, 0, 0, 0}, {0, 0},
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
// clang-format on

constexpr bool agrees(const known_answer& k) {
  return philox4x32(k.counter, k.key) == k.ten_rounds;
}
static_assert(agrees(known[0]) && agrees(known[1]) && agrees(known[2]));
static_assert(uniform<float>(0, 0) == 0x6627e8p-24f);
static_assert(uniform<float>(0, 3) == 0x9b00dbp-24f);
static_assert(permutation(5, 1).size() == 5);
static_assert(std::uniform_random_bit_generator<generator>);

double chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (int c : counts) sum += (c - expected) * (c - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("Philox gives the known answers of its authors at run time") {
  for (const auto& k : known) {
    volatile std::uint32_t opaque = k.counter[0];
    auto counter = k.counter;
    counter[0] = opaque;
    CHECK(philox4x32(counter, k.key) == k.ten_rounds);
    const auto low = std::uint64_t{k.counter[1]} << 32 | k.counter[0];
    const auto high = std::uint64_t{k.counter[3]} << 32 | k.counter[2];
    CHECK(philox4x32(low, high, std::uint64_t{k.key[1]} << 32 | k.key[0]) == k.ten_rounds);
  }
}

TEST_CASE("a generator walks along the stream of its key") {
  generator random(42);
  for (std::uint64_t i = 0; i < 9; ++i) CHECK(random.uniform() == uniform<float>(42, i));
  CHECK(generator(42, 1)() != generator(42, 2)());
  CHECK(generator(42, 1, 0)() != generator(42, 1, 1)());
  CHECK(generator(42, 0)() != generator(43, 0)());
}

TEST_CASE("keys that are folded in differ from one another and from their origin") {
  std::set<std::uint64_t> keys{7};
  for (std::uint64_t i = 0; i < 1000; ++i) keys.insert(fold_in(7, i));
  CHECK(keys.size() == 1001);
}

TEST_CASE_TEMPLATE("uniform numbers fill [0,1) evenly", T, float, double) {
  constexpr int n = 100000;
  std::vector<int> bins(100, 0);
  double sum = 0;
  bool inside = true;
  for (std::uint64_t i = 0; i < n; ++i) {
    const T u = uniform<T>(3, i);
    inside &= u >= 0 && u < 1;
    sum += double(u);
    ++bins[static_cast<std::size_t>(u * 100)];
  }
  CHECK(inside);
  CHECK(std::abs(sum / n - 0.5) < 4 * std::sqrt(1.0 / 12 / n));
  CHECK(chi_square(bins, n / 100.0) < 149);  // 99 degrees of freedom, 0.1 %
}

TEST_CASE_TEMPLATE("normal numbers have the moments of the normal distribution", T, float, double) {
  constexpr int n = 200000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0, last = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = double(normal<T>(11, i));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    lag += x * last;
    last = x;
  }
  const double unit = 4 / std::sqrt(double(n));
  CHECK(std::abs(m1 / n) < unit);
  CHECK(std::abs(m2 / n - 1) < unit * std::sqrt(2.0));
  CHECK(std::abs(m3 / n) < unit * std::sqrt(15.0));
  CHECK(std::abs(m4 / n - 3) < unit * std::sqrt(96.0));
  CHECK(std::abs(lag / n) < unit);
}

TEST_CASE("below is even for a bound that does not divide 2^32") {
  generator random(5);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  CHECK(chi_square(counts, 10000) < 22.5);  // 6 degrees of freedom, 0.1 %
}

TEST_CASE("every order of four elements is equally likely") {
  std::vector<int> counts(256, 0);
  for (std::uint64_t key = 0; key < 24000; ++key) {
    const auto order = permutation(4, key);
    ++counts[static_cast<std::size_t>(order[0] + 4 * order[1] + 16 * order[2] + 64 * order[3])];
  }
  std::erase(counts, 0);
  CHECK(counts.size() == 24);
  CHECK(chi_square(counts, 1000) < 49.7);  // 23 degrees of freedom, 0.1 %
}

TEST_CASE("permuted visits each index once") {
  for (std::int64_t n : {1, 2, 63, 64, 65, 127, 128, 129, 1000, 4096, 60000}) {
    CAPTURE(n);
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    bool once = true;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto p = permuted(i, n, 9);
      once &= p >= 0 && p < n && !seen[static_cast<std::size_t>(p)];
      if (once) seen[static_cast<std::size_t>(p)] = true;
    }
    CHECK(once);
  }
}

TEST_CASE("permuted sends an index anywhere, and neighbours apart") {
  constexpr std::int64_t n = 100;
  std::vector<int> places(n, 0);
  int neighbours = 0;
  constexpr int keys = 5000;
  for (std::uint64_t key = 0; key < keys; ++key) {
    const auto p = permuted(17, n, key);
    ++places[static_cast<std::size_t>(p)];
    neighbours += std::abs(p - permuted(18, n, key)) == 1;
  }
  CHECK(chi_square(places, keys / double(n)) < 149);  // 99 degrees of freedom, 0.1 %
  // A random pair is adjacent with probability 2/n: 100 +- 10.
  CHECK(neighbours > 60);
  CHECK(neighbours < 140);
}
