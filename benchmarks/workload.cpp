// Times one workload as a fresh process and prints one line of JSON, as the scripts for other
// frameworks do that `peers.py` compares it with.
//
// usage: workload NAME [THREADS] [--runtime]
//                                     --runtime: the graph is traced and planned by this process
//        workload --memory            prints what the plans of all workloads take, as Markdown
#include "workload/workload.hpp"

#include <algorithm>
#include <cella/backend/cpu/run/peak.hpp>
#include <cella/graph/error.hpp>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

/// The most memory that this process has held, in kB; getrusage would count the parent's too, whose
/// memory the process had until it became this program.
long peak_memory() {
  long peak = 0;
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    char line[128];
    while (std::fgets(line, sizeof(line), status)) {
      if (std::sscanf(line, "VmHWM: %ld", &peak) == 1) break;
    }
    std::fclose(status);
  }
  return peak;
}

void print_memory() {
  const auto kilobytes = [](std::int64_t bytes) { return std::intmax_t((bytes + 1023) / 1024); };
  std::printf(
      "| workload | arena kB | lower bound kB | arena / bound | without reuse kB | parameters kB | "
      "optimizer kB |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto* w : cella::benchmark::workloads()) {
    const auto& m = w->memory;
    std::printf("| `%.*s` | %jd | %jd | %.3f | %jd | %jd | %jd |\n", int(w->name.size()),
                w->name.data(), kilobytes(m.arena), kilobytes(m.live),
                m.live ? double(m.arena) / double(m.live) : 1.0, kilobytes(m.without_reuse),
                kilobytes(m.parameters), kilobytes(m.slots));
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cella::benchmark;
  const auto start = clock::now();
  if (argc == 2 && std::string_view(argv[1]) == "--memory") {
    print_memory();
    return 0;
  }
  const auto [work, threads, at_run_time] = selected(argc, argv);
  measurement m;
  try {
    m = (at_run_time ? work.measure_at_run_time : work.measure)(threads, start);
  } catch (const cella::error& e) {
    std::fprintf(stderr, "workload: %s\n", e.what());
    return 1;
  }
  std::sort(m.milliseconds.begin(), m.milliseconds.end());
  const std::size_t n = m.milliseconds.size();
  const double median = (m.milliseconds[(n - 1) / 2] + m.milliseconds[n / 2]) / 2;
  std::printf(
      "{\"framework\": \"%s\", \"version\": \"%s\", \"workload\": \"%.*s\", \"threads\": %d, "
      "\"median_ms\": %.5f, \"min_ms\": %.5f, \"steps\": %zu, \"to_third_step_s\": %.4f, "
      "\"peak_rss_mb\": %ld, \"gflop\": %.6f, \"peak_gflops\": %.1f}\n",
      at_run_time ? "cella at run time" : "cella", CELLA_VERSION, int(work.name.size()),
      work.name.data(), threads, median, m.milliseconds[0], n, m.seconds_to_third_step,
      peak_memory() / 1024, (work.operations > 0 ? work.operations : m.operations) * 1e-9, cella::cpu::measured_peak() * threads * 1e-9);
}
