// How many threads: what the program asks for, what the environment says, what the machine has.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <optional>

namespace cella {

/// The most threads that a pool takes, and the most guests: twice as many as the largest machines
/// with one memory have cores. A larger number is a mistake, such as a size in its place.
inline constexpr int most_threads = 1024;

/// How many cores this process may use: those of its affinity, or fewer if its control group has a
/// quota of time (rounded up), which `quota_file` tells as the kernel does ("200000 100000": two).
int usable_cores(const char* quota_file = "/sys/fs/cgroup/cpu.max");

/// The number of threads that the program asks for, or else the environment variable CELLA_THREADS,
/// or else `otherwise`; 0 among these means `usable_cores()`. Throws `error` if the program's
/// number or the variable is not one from 0 to `most_threads`.
int thread_count(std::optional<int> wanted, int otherwise);

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/backend/host/thread_count_body.hpp>
#endif
