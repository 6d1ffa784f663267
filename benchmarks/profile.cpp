// Where the time of a workload goes: one line per kernel call, with its share of the multiply-add
// peak that is measured in the same run.
//
// usage: profile NAME [THREADS]
#include <algorithm>
#include <cella/backend/cpu/run/peak.hpp>
#include <cstdio>
#include <string>

#include "workload/workload.hpp"

namespace {

using namespace cella;
using namespace cella::benchmark;

void print(const std::vector<call_profile>& calls, double step, double peak) {
  std::printf("%3s  %-34s %-6s %-34s %7s %9s %9s %6s %9s %6s\n", "", "kind", "layout", "operands",
              "Mflop", "min us", "median", "share", "GFLOP/s", "peak");
  double fastest = 0, median = 0, flops = 0;
  int i = 0;
  for (const call_profile& c : calls) {
    const double work = c.computes ? double(c.what.flops) : 0;
    const std::string kind = std::string(name(c.what.kind)) + (c.computes ? "" : " (prepares)");
    std::printf("%3d  %-34s %-6s %-34s %7.3f %9.3f %9.3f %5.1f%%", i++, kind.c_str(),
                name(c.what.arrangement).data(), c.operands.c_str(), work * 1e-6, c.fastest,
                c.median, 100 * c.fastest / step);
    if (work > 0) {
      std::printf(" %9.2f %5.1f%%", work / c.fastest * 1e-3, 100 * work * 1e6 / c.fastest / peak);
    }
    std::printf("\n");
    fastest += c.fastest;
    median += c.median;
    flops += work;
  }
  std::printf("%3s  %-34s %-6s %-34s %7.3f %9.3f %9.3f %5.1f%% %9.2f %5.1f%%\n", "", "sum", "", "",
              flops * 1e-6, fastest, median, 100 * fastest / step, flops / fastest * 1e-3,
              100 * flops * 1e6 / fastest / peak);
}

}  // namespace

int main(int argc, char** argv) {
  const auto [work, threads, at_run_time] = selected(argc, argv);
  if (at_run_time) {
    std::fprintf(stderr, "profile: it takes compiled programs only; leave --runtime out\n");
    return 2;
  }
  const double peak = cpu::measured_peak() * threads;
  const program_profile p = work.profile(threads);
  std::printf("%.*s, %d thread%s: %.3f us per step (median %.3f); multiply-add peak %.1f GFLOP/s\n",
              int(work.name.size()), work.name.data(), threads, threads == 1 ? "" : "s",
              p.fastest_step, p.median_step, peak * 1e-9);
  if (!p.preparation.empty()) {
    std::printf("\nwhen parameters have changed:\n");
    print(p.preparation, p.fastest_step, peak);
    std::printf("\nevery step:\n");
  }
  print(p.calls, p.fastest_step, peak);
}
