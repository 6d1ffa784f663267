// The gradient of a loop of STEPS steps: how large its program is, and how long a step takes.
#include <algorithm>
#include <array>
#include <cella/runtime/compile.hpp>
#include <chrono>
#include <cstdio>

#include "functions.hpp"

int main() {
  using namespace cella;
  compiled<benchmark::scan_gradient<STEPS>, tensor<dtype::f64, 2>, tensor<dtype::f64, 4>> run;
  using program = decltype(run)::program;
  const std::array y{1.0, 0.5};
  const std::array p{1.1, 0.4, 0.1, 0.4};
  double least = 1e9;
  for (int k = 0; k < 2'000'000 / STEPS; ++k) {
    const auto start = std::chrono::steady_clock::now();
    run(y.data(), p.data());
    least = std::min(
        least,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf(
      "{\"steps\": %d, \"nodes\": %zu, \"arena_bytes\": %lld, \"nanoseconds_per_step\": %.1f}\n",
      STEPS, program::graph.nodes.size(), static_cast<long long>(program::plan.arena_bytes),
      least / STEPS);
}
