#include <cstdio>
#include <cstdlib>

#include "workload.hpp"

namespace cella::benchmark {

selection selected(int argc, const char* const* argv) {
  const bool at_run_time = argc > 1 && std::string_view(argv[argc - 1]) == "--runtime";
  const int words = argc - at_run_time;
  const std::string_view name = words > 1 ? argv[1] : "";
  const int threads = words > 2 ? std::atoi(argv[2]) : 1;
  for (const workload* w : workloads()) {
    if (words <= 3 && w->name == name && threads > 0) return {*w, threads, at_run_time};
  }
  std::fprintf(stderr, "usage: %s NAME [THREADS] [--runtime]\nNAME is one of:\n", argv[0]);
  for (const workload* w : workloads()) {
    std::fprintf(stderr, "  %.*s\n", int(w->name.size()), w->name.data());
  }
  std::exit(2);
}

}  // namespace cella::benchmark
