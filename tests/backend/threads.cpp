#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/host/threads.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <support/child.hpp>
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

/// The thread sanitizer ends a process that starts threads after a fork.
#if defined(__SANITIZE_THREAD__)
constexpr bool threads_start_after_fork = false;
#elif defined(__has_feature)
constexpr bool threads_start_after_fork = !__has_feature(thread_sanitizer);
#else
constexpr bool threads_start_after_fork = true;
#endif

/// Threads of this process.
int living_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return int(std::distance(begin(tasks), end(tasks)));
}

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

TEST_CASE("a region runs in the caller's floating-point mode, and a guest keeps its own") {
  thread_pool pool(1, 1);
  detail::floating_point_mode before = 0, after = 1;
  std::jthread guest([&](std::stop_token stop) {
    before = detail::get_floating_point_mode();
    pool.worker(stop);
    after = detail::get_floating_point_mode();
  });
  while (pool.size() < 2) std::this_thread::yield();
  const auto mine = detail::get_floating_point_mode();
  const auto flush = mine | detail::denormals_are_zero;
  detail::set_floating_point_mode(flush);
  std::atomic<int> arrived{0};
  std::array<detail::floating_point_mode, 2> modes{};
  pool.run(2, [&](work_range r) {
    modes[static_cast<std::size_t>(r.first)] = detail::get_floating_point_mode();
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  detail::set_floating_point_mode(mine);
  guest.request_stop();
  guest.join();
  CHECK((modes[0] & detail::denormals_are_zero) == detail::denormals_are_zero);
  CHECK((modes[1] & detail::denormals_are_zero) == detail::denormals_are_zero);
  CHECK(before == after);
}

TEST_CASE("a child that is forked has a pool of the calling thread alone, which ends at once") {
  enum { asleep, spinning, in_a_region };
  for (int state : {asleep, spinning, in_a_region}) {
    CAPTURE(state);
    auto pool = std::make_unique<thread_pool>(4, 1, state == asleep ? 0ns : 1s);
    std::jthread guest([&](std::stop_token stop) { pool->worker(stop); });
    while (pool->size() < 5) std::this_thread::yield();
    // A thread that is starting holds locks of the address sanitizer, and the child would wait for
    // them: all have begun before the fork.
    std::atomic<int> begun{0};
    pool->run(5, [&](work_range) {
      ++begun;
      while (begun < 5) std::this_thread::yield();
    });
    counters c(64);
    for (int i = 0; i < 10; ++i) pool->run(64, c);
    // Another thread's region, which the fork may meet at any point.
    counters other(64);
    std::jthread busy;
    if (state == in_a_region) {
      busy = std::jthread([&](std::stop_token stop) {
        for (++begun; !stop.stop_requested();) pool->run(64, other);
      });
      while (begun < 6) std::this_thread::yield();
    }
    std::this_thread::sleep_for(2ms);
    for (int repeat = 0; repeat < 5; ++repeat) {
      const test::child_outcome child = test::in_child([&] {
        const auto here = std::this_thread::get_id();
        counters mine(64);
        std::atomic<bool> elsewhere{false};
        for (int i = 0; i < 10; ++i) {
          pool->run(64, [&](work_range r) {
            mine(r);
            if (std::this_thread::get_id() != here) elsewhere = true;
          });
        }
        std::string faults;
        if (!mine.all(10) || elsewhere) faults += "the pool's region is wrong; ";
        if (pool->size() != 1) faults += "the pool counts threads that are not there; ";
        if (pool->size() == 1 && pool->worker({})) faults += "the pool took a guest; ";
        pool.reset();
        if (threads_start_after_fork) {
          thread_pool fresh(3);
          counters again(64);
          for (int i = 0; i < 10; ++i) fresh.run(64, again);
          if (!again.all(10) || fresh.size() != 3) faults += "a new pool is wrong; ";
        }
        return faults.empty() ? "right" : faults;
      });
      CHECK(child.text == "right");
      CHECK(child.status == 0);
    }
    if (busy.joinable()) {
      busy.request_stop();
      busy.join();
    }
    for (int i = 0; i < 10; ++i) pool->run(64, c);
    CHECK(c.all(20));
    CHECK(pool->size() == 5);
    guest.request_stop();
  }
}

TEST_CASE("a pool of a child is unknown to the child's child, too") {
  if (!threads_start_after_fork) return;
  const test::child_outcome child = test::in_child([] {
    thread_pool pool(3);
    return test::in_child([&] {
             counters c(9);
             pool.run(9, c);
             return std::string(c.all(1) && pool.size() == 1 ? "right" : "wrong");
           })
        .text;
  });
  CHECK(child.text == "right");
}

TEST_CASE("numbers of threads that cannot be meant are refused") {
  for (int n : {-1, 1025, 10000, -2147483647 - 1}) {
    CHECK_THROWS_WITH_AS(thread_pool{n},
                         ("the number of threads is " + std::to_string(n) +
                          "; give 1 to 1024, or 0 for one for each core")
                             .c_str(),
                         error);
  }
  CHECK_THROWS_WITH_AS(thread_pool(1, -1),
                       doctest::Contains("pool for -1 guests was asked for; give 0 to 1024"),
                       error);
  CHECK_THROWS_AS(thread_pool(1, 1025), error);
}

TEST_CASE("a pool for which the system lacks threads says how many there were and leaves nothing") {
  if (!threads_start_after_fork) return;
  // Room for the stacks of few threads: unlike a limit of processes it holds for root as well. What
  // is left beside them has room for what the address sanitizer allocates when these have started.
  const test::child_outcome child = test::in_child([]() -> std::string {
    constexpr std::size_t stack = std::size_t{256} << 20;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    if (pthread_setattr_default_np(&attributes) != 0) return "no stack size";
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = rlim_t(pages) * rlim_t(sysconf(_SC_PAGESIZE)) + 4 * stack + stack / 2;
    const rlimit limit{room, room};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return "no limit";
    std::string said;
    for (int repeat = 0; repeat < 3; ++repeat) {
      try {
        thread_pool pool(64);
        return "64 threads were started";
      } catch (const error& e) { said = e.what(); }
      for (int i = 0; i < 1000 && living_threads() > 1; ++i) std::this_thread::sleep_for(1ms);
      if (living_threads() != 1) return "threads were left behind";
    }
    thread_pool pool(2);
    counters c(20);
    pool.run(20, c);
    return c.all(1) && pool.size() == 2 ? said : "a smaller pool fails";
  });
  CHECK(child.status == 0);
  int started = -1, besides = 0, of = 0, ask = 0;
  char reason[100];
  REQUIRE(std::sscanf(child.text.c_str(),
                      "the system started %d of the %d threads that a pool of %d has besides the "
                      "caller (%99[^)]); ask for at most %d threads, or raise the limits",
                      &started, &besides, &of, reason, &ask) == 5);
  CHECK(started > 0);
  CHECK(started < 5);
  CHECK(besides == 63);
  CHECK(of == 64);
  CHECK(ask == started + 1);
}

TEST_CASE("CELLA_THREADS is the number where the program gives none") {
  ::setenv("CELLA_THREADS", "3", 1);
  CHECK(thread_pool().size() == 3);
  CHECK(thread_pool(2).size() == 2);
  CHECK(thread_count({}, 1) == 3);
  CHECK(thread_count(0, 1) == usable_cores());
  ::setenv("CELLA_THREADS", "0", 1);
  CHECK(thread_pool().size() == usable_cores());
  CHECK(thread_count({}, 1) == usable_cores());
  for (const char* wrong : {"two", "2x", " 2", "-1", "1025", "99999999999999999999", "+2", "2.0"}) {
    ::setenv("CELLA_THREADS", wrong, 1);
    CHECK_THROWS_WITH_AS(thread_pool{},
                         ("CELLA_THREADS is \"" + std::string(wrong) +
                          "\"; set it to a number of threads from 1 to 1024, or to 0 for one for "
                          "each core")
                             .c_str(),
                         error);
    CHECK(thread_pool(2).size() == 2);
  }
  for (const char* none : {"", static_cast<const char*>(nullptr)}) {
    none ? ::setenv("CELLA_THREADS", none, 1) : ::unsetenv("CELLA_THREADS");
    CHECK(thread_pool().size() == usable_cores());
    CHECK(thread_count({}, 1) == 1);
  }
}

TEST_CASE("one thread for each core means those that this process may use") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(usable_cores() == 1);
  CHECK(thread_pool(0).size() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);

  const auto quota =
      std::filesystem::temp_directory_path() / ("cella_quota_" + std::to_string(::getpid()));
  const int all = usable_cores("no such file");
  CHECK(all == std::min(CPU_COUNT(&before), 1024));
  struct {
    const char* text;
    int cores;
  } const cases[]{{"max 100000\n", all},
                  {"100000 100000\n", 1},
                  {"150000 100000\n", 2},
                  {"5000 100000\n", 1},
                  {"", all},
                  {"0 0\n", all},
                  {"99999999999 100000\n", all}};
  for (const auto& [text, cores] : cases) {
    CAPTURE(text);
    std::ofstream(quota) << text;
    CHECK(usable_cores(quota.c_str()) == std::min(cores, all));
  }
  std::filesystem::remove(quota);
}
