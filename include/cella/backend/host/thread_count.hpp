// How many threads: what the program asks for, what the environment says, what the machine has.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace cella {

/// The most threads that a pool takes, and the most guests: twice as many as the largest machines
/// with one memory have cores. A larger number is a mistake, such as a size in its place.
inline constexpr int most_threads = 1024;

/// How many cores this process may use: those of its affinity, or fewer if its control group has a
/// quota of time (rounded up), which `quota_file` tells as the kernel does ("200000 100000": two).
inline int usable_cores(const char* quota_file = "/sys/fs/cgroup/cpu.max") {
  int cores = int(std::thread::hardware_concurrency());  // does not look at the affinity everywhere
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  if (std::FILE* const f = std::fopen(quota_file, "r")) {
    double quota = 0, period = 0;  // "max" instead of a quota: there is none
    if (std::fscanf(f, "%lf %lf", &quota, &period) == 2 && period > 0 && quota < cores * period)
      cores = int((quota + period - 1) / period);
    std::fclose(f);
  }
  return std::clamp(cores, 1, most_threads);
}

/// The number of threads that the program asks for, or else the environment variable CELLA_THREADS,
/// or else `otherwise`; 0 among these means `usable_cores()`. Throws `error` if the program's
/// number or the variable is not one from 0 to `most_threads`.
CELLA_ONCE int thread_count(std::optional<int> wanted, int otherwise) {
  const char* const variable = std::getenv("CELLA_THREADS");
  if (wanted) {
    if (*wanted < 0 || *wanted > most_threads) {
      throw error(text() << "the number of threads is " << *wanted << "; give 1 to " << most_threads
                         << ", or 0 for one for each core");
    }
  } else if (variable && *variable) {
    const std::string_view value = variable;
    const char* const end = value.data() + value.size();
    int n = -1;
    const auto [stop, fault] = std::from_chars(value.data(), end, n);
    if (fault != std::errc{} || stop != end || n < 0 || n > most_threads) {
      throw error(text() << "CELLA_THREADS is \"" << value.substr(0, 80)
                         << "\"; set it to a number of threads from 1 to " << most_threads
                         << ", or to 0 for one for each core");
    }
    wanted = n;
  }
  const int threads = wanted.value_or(otherwise);
  return threads ? threads : usable_cores();
}

}  // namespace cella
