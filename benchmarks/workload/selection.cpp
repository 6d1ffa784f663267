#include <cstdio>
#include <cstdlib>

#include "workload.hpp"

namespace cella::benchmark {

selection selected(int argc, const char* const* argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  for (const workload* w : workloads()) {
    if (argc <= 3 && w->name == name && threads > 0) return {*w, threads};
  }
  std::fprintf(stderr, "usage: %s NAME [THREADS]\nNAME is one of:\n", argv[0]);
  for (const workload* w : workloads()) {
    std::fprintf(stderr, "  %.*s\n", int(w->name.size()), w->name.data());
  }
  std::exit(2);
}

}  // namespace cella::benchmark
