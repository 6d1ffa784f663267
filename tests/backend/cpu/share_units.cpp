#include <doctest/doctest.h>

#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <mutex>
#include <vector>

using namespace cella;

TEST_CASE("units are shared out among threads, each once, and no kernel is called without any") {
  for (const int threads : {1, 2, 3, 5}) {
    thread_pool pool(threads);
    for (int units = 0; units < 12; ++units) {
      std::mutex guard;
      std::vector<int> times(std::size_t(units), 0);
      int empty = 0;
      cpu::share_units(units, &pool, nullptr, 0, [&](work_range mine, std::byte*) {
        const std::lock_guard lock(guard);
        empty += mine.empty();
        for (int i = mine.first; i < mine.last; ++i) ++times[std::size_t(i)];
      });
      CHECK(empty == 0);
      CHECK(times == std::vector<int>(std::size_t(units), 1));
    }
  }
}
