#include <doctest/doctest.h>

#include <atomic>
#include <cella/data/dataset.hpp>
#include <chrono>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/child.hpp"

using namespace cella;
using namespace cella::data;

namespace {

auto numbers(int n) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < n; ++i) {
    x.insert(x.end(), 3, float(i + 1));
    y.push_back(i + 1);
  }
  return tensor_dataset(column<float>({n, 3}, x), column<std::int32_t>(y));
}

struct seen_batch {
  std::int64_t index, size;
  std::vector<float> x;
  std::vector<std::int32_t> y;
  bool operator==(const seen_batch&) const = default;
};

template <class L>
std::vector<seen_batch> all_of(const L& loader, std::int64_t epoch, std::int64_t first = 0) {
  std::vector<seen_batch> all;
  for (auto& b : loader.epoch(epoch, first)) {
    const auto x = b.template padded<0>();
    const auto y = b.template padded<1>();
    all.push_back({b.index(), b.size(), {x.begin(), x.end()}, {y.begin(), y.end()}});
  }
  return all;
}

}  // namespace

TEST_CASE("the last batch is smaller, tells its size and has zero rows behind") {
  const auto loader = numbers(7).batch(3);
  const auto all = all_of(loader, 0);
  CHECK(loader.batches() == 3);
  CHECK(loader.samples() == 7);
  REQUIRE(all.size() == 3);
  CHECK(all[0].size == 3);
  CHECK(all[2].size == 1);
  CHECK(all[2].y == std::vector<std::int32_t>{7, 0, 0});
  CHECK(all[2].x == std::vector<float>{7, 7, 7, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("the remainder can be dropped") {
  const auto loader = numbers(7).batch(3, true);
  CHECK(loader.batches() == 2);
  CHECK(loader.samples() == 6);
  CHECK(all_of(loader, 0).size() == 2);
  CHECK(numbers(2).batch(3, true).batches() == 0);
  CHECK(all_of(numbers(0).batch(3), 0).empty());
}

TEST_CASE("a batch's columns are contiguous, shaped and aligned to 64 bytes") {
  for (auto& b : numbers(10).batch(4).epoch(0)) {
    CHECK(b.column<0>().extents() == shape{b.size(), 3});
    CHECK(b.column<1>().extents() == shape{b.size()});
    CHECK(b.padded<0>().extents() == shape{4, 3});
    CHECK(reinterpret_cast<std::uintptr_t>(b.column<0>().data()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(b.column<1>().data()) % 64 == 0);
    CHECK(b.capacity() == 4);
  }
}

TEST_CASE("sizes and depths that make no sense are refused") {
  CHECK_THROWS_AS(numbers(3).batch(0), error);
  CHECK_THROWS_AS(numbers(3).batch(-1), error);
  CHECK_THROWS_AS(numbers(3).batch(1).prefetch(0), error);
  CHECK_THROWS_AS(numbers(3).batch(1).epoch(0, -1), error);
  CHECK_THROWS_AS(numbers(3).batch(1).prefetch(1).epoch(0, -1), error);
}

TEST_CASE("an epoch can be resumed in the middle") {
  const auto loader = numbers(20).shuffle(1).batch(3);
  const auto whole = all_of(loader, 2);
  const auto rest = all_of(loader, 2, 4);
  CHECK(rest == std::vector<seen_batch>(whole.begin() + 4, whole.end()));
  CHECK(all_of(loader.prefetch(2), 2, 4) == rest);
}

TEST_CASE("prefetching changes nothing but the thread, whatever the depth") {
  const auto augmented =
      numbers(50).shuffle(7).map<0>([](tensor_view<float> x, generator& g) { x[1] += g.normal(); });
  const auto loader = augmented.batch(8);
  for (int depth : {1, 2, 5, 100}) {
    const auto ahead = loader.prefetch(depth);
    for (int e = 0; e < 3; ++e) CHECK(all_of(ahead, e) == all_of(loader, e));
  }
}

TEST_CASE("a forked child has no loader's thread: it is told so, and ends") {
  std::atomic<int> read{0};
  const auto ahead = numbers(8).map([&](auto) { ++read; }).batch(2).prefetch(1);
  auto range = ahead.epoch(0);
  auto at = range.begin();
  // A thread that starts, reads or allocates may hold a lock that the child would wait for: it has
  // read the batch at hand and the one ahead, and rests.
  while (read < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto child = test::in_child([&] {
    std::string said;
    try {
      ++at;
    } catch (const error& e) { said = e.what(); }
    std::int64_t batches = 0;
    for (const auto& b : ahead.epoch(0)) batches += b.size() > 0;
    return said + " - " + std::to_string(batches);
  });
  CHECK(child.status == 0);
  CHECK(child.text ==
        "this range of batches was begun before a fork, and its thread is in the other process; "
        "begin an epoch here - 4");
  const auto leaving = test::in_child([&] {
    { auto moved = ahead.epoch(0); }
    std::destroy_at(&range);  // would wait for the thread
    return std::string("left");
  });
  CHECK(leaving.text == "left");
}

TEST_CASE("prefetching uses another thread and no more than depth batches ahead") {
  std::atomic<int> read{0};
  std::atomic<bool> elsewhere{true};
  const auto me = std::this_thread::get_id();
  const auto loader = numbers(64)
                          .map([&](auto) {
                            ++read;
                            if (std::this_thread::get_id() == me) elsewhere = false;
                          })
                          .batch(2)
                          .prefetch(3);
  int consumed = 0;
  for (auto& b : loader.epoch(0)) {
    CHECK(b.size() == 2);
    ++consumed;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // The consumer's batch, three ready or in work.
    CHECK(read <= 2 * (consumed + 3));
  }
  CHECK(consumed == 32);
  CHECK(read == 64);
  CHECK(elsewhere);
}

TEST_CASE("buffers are reused within and across epochs") {
  const auto loader = numbers(40).batch(2).prefetch(2);
  std::set<const float*> buffers;
  for (int e = 0; e < 4; ++e) {
    for (auto& b : loader.epoch(e)) buffers.insert(b.column<0>().data());
  }
  CHECK(buffers.size() == 3);
}

TEST_CASE("the producer's exception reaches the consumer after the good batches") {
  const auto loader = numbers(10).map([](auto s) {
    if (s[1_c][0] == 6) throw std::runtime_error("sample 6 is bad");
  });
  const auto count_until_fault = [](const auto& l) {
    int good = 0;
    CHECK_THROWS_WITH_AS(for (auto& b
                              : l.epoch(0)) good += int(b.size()),
                         "sample 6 is bad", std::runtime_error);
    return good;
  };
  CHECK(count_until_fault(loader.batch(2)) == 4);
  CHECK(count_until_fault(loader.batch(2).prefetch(1)) == 4);
  CHECK(count_until_fault(loader.batch(2).prefetch(8)) == 4);
}

TEST_CASE("leaving early stops the producer, even one that waits") {
  std::atomic<int> read{0};
  const auto loader = numbers(1000).map([&](auto) { ++read; }).batch(1).prefetch(2);
  for (int round = 0; round < 50; ++round) {
    for (auto& b : loader.epoch(round)) {
      if (b.index() == round % 5) break;
    }
  }
  const int after = read;
  CHECK(after < 50 * 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(read == after);
  { const auto never_iterated = loader.epoch(0); }
  CHECK(all_of(loader, 0).size() == 1000);
}

TEST_CASE("two epochs of one loader run side by side") {
  const auto loader = numbers(9).batch(2).prefetch(2);
  auto one = loader.epoch(0);
  auto two = loader.epoch(0);
  auto a = one.begin();
  auto b = two.begin();
  for (; a != one.end() && b != two.end(); ++a, ++b) {
    CHECK((*a).column<1>()[0] == (*b).column<1>()[0]);
    CHECK((*a).column<1>().data() != (*b).column<1>().data());
  }
  CHECK(a == one.end());
  CHECK(b == two.end());
}
