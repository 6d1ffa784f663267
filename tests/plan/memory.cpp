#include <doctest/doctest.h>

#include <cella/graph/random.hpp>
#include <cella/plan/memory.hpp>

using namespace cella;

namespace {

/// Random lifetimes: the bytes that are needed, from step to step.
list<lifetime> random_lifetimes(std::uint64_t seed, int count) {
  generator r(seed);
  list<lifetime> lives;
  for (int i = 0; i < count; ++i) {
    const int first = int(r.below(30));
    lives.push_back({std::int64_t(r.below(5000)), first, first + int(r.below(8)), -1});
  }
  return lives;
}

bool overlap(const lifetime& a, const lifetime& b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

constexpr std::int64_t size_of_two_that_never_meet() {
  list<lifetime> lives{{100, 0, 1, -1}, {100, 2, 3, -1}};
  return plan_memory(lives);
}
static_assert(size_of_two_that_never_meet() == 128);

}  // namespace

TEST_CASE("buffers that live at the same time never overlap and are aligned") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto lives = random_lifetimes(seed, 40);
    const std::int64_t size = plan_memory(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) {
      REQUIRE(lives[i].offset >= 0);
      REQUIRE(lives[i].offset % arena_alignment == 0);
      REQUIRE(lives[i].offset + lives[i].bytes <= size);
      for (std::size_t j = 0; j < i; ++j) REQUIRE_FALSE(overlap(lives[i], lives[j]));
    }
  }
}

TEST_CASE("no arena is smaller than the largest live set, and few are much larger") {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto lives = random_lifetimes(seed, 40);
    const std::int64_t bound = largest_live_set(lives);
    const std::int64_t size = plan_memory(lives);
    REQUIRE(size >= bound);
    worst = std::max(worst, double(size) / double(bound));
  }
  CHECK(worst < 1.5);
}
