// Places buffers in one arena so that those that live at the same time do not overlap.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cstdint>

namespace cella {

/// Bytes that are needed from step `first` to step `last`, both included.
struct lifetime {
  std::int64_t bytes{};
  int first{};
  int last{};
  std::int64_t offset = -1;  ///< the result
};

inline constexpr std::int64_t arena_alignment = 64;
constexpr std::int64_t align_up(std::int64_t n, std::int64_t to = arena_alignment) {
  return (n + to - 1) / to * to;
}

/// Sets the offsets and returns the size of the arena. Greedy by size (Pisarchyk and Lee 2020): the
/// largest first, each at the lowest offset that is free during its whole life.
constexpr std::int64_t plan_memory(list<lifetime>& buffers) {
  // Pointers, since a call for each access is what planning would take most of its time for.
  lifetime* const all = buffers.data();
  list<int> order;
  for (std::size_t i = 0; i < buffers.size(); ++i) order.push_back(int(i));
  std::sort(order.begin(), order.end(), [all](int a, int b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  // The placed buffers by offset, each with the number of the next; the first stands behind all.
  const int none = int(buffers.size());
  list<int> successors(buffers.size() + 1, none);
  int* const next = successors.data();
  std::int64_t size = 0;
  for (int i : order) {
    lifetime& b = all[i];
    std::int64_t at = 0;
    int before = none;  // the last that begins at or before `at`
    for (int j = next[none]; j != none; j = next[j]) {
      const lifetime& c = all[j];
      if (c.last >= b.first && b.last >= c.first) {
        if (c.offset >= at + b.bytes) break;
        const std::int64_t end = align_up(c.offset + c.bytes);
        if (end > at) at = end;
      }
      if (c.offset <= at) before = j;
    }
    b.offset = at;
    size = std::max(size, align_up(at + b.bytes));
    next[i] = next[before];
    next[before] = i;
  }
  return size;
}

/// The largest number of bytes alive in one step: the lower bound of any arena.
constexpr std::int64_t largest_live_set(const list<lifetime>& buffers) {
  int steps = 0;
  for (const lifetime& b : buffers) steps = std::max(steps, b.last + 1);
  list<std::int64_t> alive(std::size_t(steps + 1), 0);
  for (const lifetime& b : buffers) {
    alive[std::size_t(b.first)] += align_up(b.bytes);
    alive[std::size_t(b.last + 1)] -= align_up(b.bytes);
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (std::int64_t change : alive) most = std::max(most, now += change);
  return most;
}

}  // namespace cella
