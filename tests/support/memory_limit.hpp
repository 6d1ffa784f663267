// What a reader says when memory is short.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cella/graph/error.hpp>
#include <cstddef>
#include <fstream>
#include <string>

#include "support/sanitized.hpp"

namespace cella::test {

inline constexpr bool memory_can_be_limited = !sanitized;  // they reserve terabytes of addresses

/// The sentence of the `file_error` that `f` throws while this process may have only `bytes` more
/// than it has now. Any other exception goes on.
template <class F>
std::string refusal_with_memory(std::size_t bytes, F f) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_AS, &old) == 0);
  const auto all = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const struct rlimit tight { all, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
  const struct restore {
    struct rlimit limit;
    ~restore() { ::setrlimit(RLIMIT_AS, &limit); }
  } restore{old};
  try {
    f();
  } catch (const file_error& e) { return e.what(); }
  return "nothing thrown";
}

}  // namespace cella::test
