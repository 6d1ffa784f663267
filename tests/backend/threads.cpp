#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cella/backend/cpu/gemm.hpp>
#include <cella/backend/threads.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <vector>

using namespace cella;
using namespace std::chrono_literals;

namespace {

/// Adds one to every unit of the range: what is not exactly one afterwards was lost or done twice.
struct counters {
  std::vector<int> count;
  explicit counters(int units) : count(static_cast<std::size_t>(units), 0) {}
  void operator()(work_range r) {
    for (int i = r.first; i < r.last; ++i) ++count[static_cast<std::size_t>(i)];
  }
  bool all(int n) const {
    for (int c : count) {
      if (c != n) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("parts of a range are contiguous, cover it, and differ by at most one") {
  for (int units = 0; units < 40; ++units) {
    for (int parts = 1; parts < 9; ++parts) {
      int next = 0, least = units, most = 0;
      for (int i = 0; i < parts; ++i) {
        const work_range r = part_of(units, parts, i);
        REQUIRE(r.first == next);
        next = r.last;
        least = std::min(least, r.size());
        most = std::max(most, r.size());
      }
      REQUIRE(next == units);
      REQUIRE(most - least <= 1);
    }
  }
}

TEST_CASE("a region runs every unit exactly once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 5}) {
    thread_pool pool(threads);
    CHECK(pool.size() == threads);
    for (int units : {0, 1, 2, 3, 7, 100}) {
      counters c(units);
      for (int repeat = 0; repeat < 50; ++repeat) pool.run(units, c);
      CHECK(c.all(50));
    }
  }
}

TEST_CASE("a pool of one thread calls the function directly with the whole range") {
  thread_pool pool(1);
  int calls = 0;
  const auto here = std::this_thread::get_id();
  pool.run(17, [&](work_range r) {
    ++calls;
    CHECK(r == work_range{0, 17});
    CHECK(std::this_thread::get_id() == here);
  });
  CHECK(calls == 1);
}

TEST_CASE("a limit of one keeps a larger pool on the calling thread") {
  thread_pool pool(3);
  pool.limit(1);
  CHECK(pool.size() == 1);
  const auto here = std::this_thread::get_id();
  pool.run(9, [&](work_range r) {
    CHECK(r.size() == 9);
    CHECK(std::this_thread::get_id() == here);
  });
  pool.limit(3);
  CHECK(pool.size() == 3);
}

TEST_CASE("a region hands out at most as many ranges as it was told") {
  thread_pool pool(4);
  std::atomic<int> ranges{0};
  pool.run(
      100, [&](work_range) { ++ranges; }, 2);
  CHECK(ranges == 2);
}

TEST_CASE("several threads really take part") {
  thread_pool pool(2);
  // Each range waits for the other one, so one thread alone could not finish.
  std::atomic<int> arrived{0};
  pool.run(2, [&](work_range) {
    ++arrived;
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (arrived < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("a region inside a region runs on the thread that begins it") {
  thread_pool pool(3);
  std::array<std::atomic<int>, 30> done{};
  pool.run(3, [&](work_range outer) {
    for (int i = outer.first; i < outer.last; ++i) {
      const auto here = std::this_thread::get_id();
      pool.run(10, [&](work_range inner) {
        if (inner.size() != 10 || std::this_thread::get_id() != here) return;
        for (int j = 0; j < 10; ++j) ++done[static_cast<std::size_t>(10 * i + j)];
      });
    }
  });
  for (auto& d : done) CHECK(d == 1);
}

TEST_CASE("sleeping threads wake up for the next region") {
  thread_pool pool(3, 0, 0ns);
  counters c(31);
  for (int repeat = 0; repeat < 20; ++repeat) {
    if (repeat % 4 == 0) std::this_thread::sleep_for(2ms);
    pool.run(31, c);
  }
  CHECK(c.all(20));
}

TEST_CASE("the caller sleeps when a worker takes long, and still returns after it") {
  thread_pool pool(2, 0, 0ns);
  const auto here = std::this_thread::get_id();
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<int> begun{0}, finished{0};
    pool.run(2, [&](work_range) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      if (std::this_thread::get_id() != here) std::this_thread::sleep_for(3ms);
      ++finished;
    });
    CHECK(finished == 2);
  }
}

TEST_CASE("pools that are built and destroyed at once leave nothing behind") {
  for (int repeat = 0; repeat < 30; ++repeat) {
    thread_pool pool(3, 1);
    if (repeat % 2) {
      counters c(5);
      pool.run(5, c);
      CHECK(c.all(1));
    }
  }
}

TEST_CASE("two threads may use one pool: neither loses work") {
  thread_pool pool(2);
  counters a(64), b(64);
  std::jthread other([&] {
    for (int i = 0; i < 300; ++i) pool.run(64, b);
  });
  for (int i = 0; i < 300; ++i) pool.run(64, a);
  other.join();
  CHECK(a.all(300));
  CHECK(b.all(300));
}

TEST_CASE("the host's threads can be lent and taken back while regions run") {
  thread_pool pool(1, 2);
  CHECK(pool.size() == 1);
  std::atomic<bool> seated{false};
  std::jthread guest([&](std::stop_token stop) { seated = pool.worker(stop); });
  while (pool.size() < 2) std::this_thread::yield();
  counters c(50);
  for (int i = 0; i < 100; ++i) pool.run(50, c);
  std::jthread coming_and_going([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::stop_source soon;
      std::jthread visitor([&] { pool.worker(soon.get_token()); });
      std::this_thread::sleep_for(300us);
      soon.request_stop();
    }
  });
  for (int i = 0; i < 2000; ++i) pool.run(50, c);
  coming_and_going.request_stop();
  coming_and_going.join();
  guest.request_stop();
  guest.join();
  CHECK(seated);
  CHECK(pool.size() == 1);
  CHECK(c.all(2100));
}

TEST_CASE("kernels on a pool give the same bits as on one thread") {
  std::vector<float> a(61 * 450), b(450 * 150), one(61 * 150), several(61 * 150);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 37) / 37.0f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 41) / 41.0f;
  const cpu::product<float> p{.rows = 61,
                              .columns = 150,
                              .depth = 450,
                              .a = {a.data(), 450, 1},
                              .b = {b.data(), 150, 1},
                              .c_row = 150};
  const auto each = static_cast<std::size_t>((cpu::gemm_scratch(p) + 63) / 64 * 64);
  const std::align_val_t alignment{64};
  const std::unique_ptr<std::byte, void (*)(void*)> scratch(
      static_cast<std::byte*>(::operator new(3 * each, alignment)),
      [](void* bytes) { ::operator delete (bytes, std::align_val_t{64}); });
  cpu::gemm(p, cpu::store_to<float>{one.data()}, scratch.get());
  thread_pool pool(3);
  const int units = cpu::gemm_units(p);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::fill(several.begin(), several.end(), -1.0f);
    std::atomic<std::size_t> taken{0};
    pool.run(units, [&](work_range range) {
      cpu::gemm(p, cpu::store_to<float>{several.data()}, scratch.get() + taken++ * each, range);
    });
    REQUIRE(several == one);
  }
}

TEST_CASE("a guest finds no seat when all are taken") {
  thread_pool pool(2, 0);
  CHECK_FALSE(pool.worker(std::stop_token{}));
}

TEST_CASE("destroying a pool sends its guests home") {
  std::atomic<int> returned{0};
  std::jthread guest;
  {
    thread_pool pool(2, 1, 0ns);
    guest = std::jthread([&] { returned = pool.worker(std::stop_token{}) ? 1 : -1; });
    while (pool.size() < 3) std::this_thread::yield();
  }
  guest.join();
  CHECK(returned == 1);
}

#if defined(__SSE__)
TEST_CASE("a region runs in the caller's floating-point mode, and a guest keeps its own") {
  thread_pool pool(1, 1);
  unsigned before = 0, after = 1;
  std::jthread guest([&](std::stop_token stop) {
    before = _mm_getcsr();
    pool.worker(stop);
    after = _mm_getcsr();
  });
  while (pool.size() < 2) std::this_thread::yield();
  const unsigned mine = _mm_getcsr();
  const unsigned flush = mine | 0x8040u;
  _mm_setcsr(flush);
  std::atomic<int> arrived{0};
  std::array<unsigned, 2> modes{};
  pool.run(2, [&](work_range r) {
    modes[static_cast<std::size_t>(r.first)] = _mm_getcsr();
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  _mm_setcsr(mine);
  guest.request_stop();
  guest.join();
  CHECK((modes[0] & 0x8040u) == 0x8040u);
  CHECK((modes[1] & 0x8040u) == 0x8040u);
  CHECK(before == after);
}
#endif
