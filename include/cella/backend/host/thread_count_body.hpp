// What thread_count.hpp declares.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cella/backend/host/thread_count.hpp>
#include <cella/graph/error.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>

namespace cella {

CELLA_BODY int usable_cores(const char* quota_file) {
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

CELLA_BODY int thread_count(std::optional<int> wanted, int otherwise) {
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
