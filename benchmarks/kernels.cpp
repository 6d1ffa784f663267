// Every kernel family in the shapes of the workloads, held against what this machine can do: one
// row for each kernel call, or with --json one line of JSON.
//
// usage: kernels [--json] [FAMILY] [THREADS]
#include "kernels/kernels.hpp"

#include <algorithm>
#include <cella/backend/cpu/run/peak.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>

namespace {

using namespace cella::benchmark;
using cella::dtype;
namespace cpu = cella::cpu;

/// What the machine can do, measured when it is first asked for. With threads the arithmetic is
/// counted for each, memory once: it is shared.
class machine {
 public:
  explicit machine(int threads) : threads_(threads) {}

  double flops(dtype e) {
    const auto found = flops_.try_emplace(e);
    double& peak = found.first->second;
    if (found.second)
      peak = e == dtype::f64 ? cpu::measured_peak<double>() : cpu::measured_peak<float>();
    return peak * threads_;
  }
  /// Bytes per second of copies that touch as many bytes, to the next power of two.
  double copy(std::int64_t bytes) {
    std::size_t size = 1 << 12;
    while (size < std::size_t(bytes)) size *= 2;
    const auto found = copy_.try_emplace(size);
    if (found.second) found.first->second = cpu::measured_copy(size);
    return found.first->second;
  }

 private:
  int threads_;
  std::map<dtype, double> flops_;
  std::map<std::size_t, double> copy_;
};

/// One step beside its bound: the longer of its arithmetic at the peak and of a copy of as many
/// bytes.
struct row {
  std::string kernel;
  double microseconds, bound, gflops, of_peak, gbs, of_copy;
};

/// `before`: microseconds of the calls that prepare this one in every step.
row measured(const call_profile& c, double before, dtype element, machine& m) {
  row r{};
  r.kernel = name(c.what.kind);
  if (c.needed < 1) r.kernel += ", Winograd";
  r.microseconds = std::max(c.fastest + before, 1e-3);
  const double seconds = r.microseconds * 1e-6;
  const double flops = double(c.what.flops), bytes = double(c.what.bytes);
  r.gflops = flops / seconds * 1e-9;
  r.of_peak = flops * c.needed / seconds / m.flops(element);
  r.gbs = bytes / seconds * 1e-9;
  r.of_copy = bytes > 0 ? bytes / seconds / m.copy(c.what.bytes) : 0;
  r.bound = std::max(r.of_peak, r.of_copy) * r.microseconds;
  return r;
}

void print(const kernel_case& k, const call_profile& c, const row& r, bool json) {
  const std::string_view layout = name(c.what.arrangement);
  if (json) {
    std::printf(
        "{\"family\": \"%.*s\", \"case\": \"%.*s\", \"element\": \"%s\", \"kernel\": \"%s\", "
        "\"layout\": \"%.*s\", \"us\": %.3f, \"bound_us\": %.3f, \"gflops\": %.2f, "
        "\"of_peak\": %.4f, \"gbs\": %.2f, \"of_copy\": %.4f}\n",
        int(k.family.size()), k.family.data(), int(k.shape.size()), k.shape.data(),
        k.element == dtype::f64 ? "f64" : "f32", r.kernel.c_str(), int(layout.size()),
        layout.data(), r.microseconds, r.bound, r.gflops, r.of_peak, r.gbs, r.of_copy);
    return;
  }
  const auto rate = [](double value, double share) {
    if (value < 0.005)
      std::printf("%17s", "");
    else
      std::printf(" %9.2f %5.0f%%", value, 100 * share);
  };
  std::printf("  %-38s %-6s %10.2f", r.kernel.c_str(), layout.data(), r.microseconds);
  rate(r.bound, r.bound / r.microseconds);
  rate(r.gflops, r.of_peak);
  rate(r.gbs, r.of_copy);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::string_view wanted;
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else if (std::atoi(argv[i]) > 0)
      threads = std::atoi(argv[i]);
    else
      wanted = argv[i];
  }
  machine m(threads);
  if (!json)
    std::printf(
        "multiply-add peak %.1f GFLOP/s in f32, %.1f in f64; copies %.1f GB/s in the first "
        "level, %.1f of 64 MiB\n",
        m.flops(dtype::f32) * 1e-9, m.flops(dtype::f64) * 1e-9, m.copy(1 << 14) * 1e-9,
        m.copy(1 << 26) * 1e-9);
  const auto families = {products(),       image_convolutions(), small_convolutions(),
                         normalizations(), memory_bound(),       attention()};
  bool any = false;
  for (const auto& cases : families) {
    for (const kernel_case& k : cases) {
      if (!wanted.empty() && k.family != wanted) continue;
      any = true;
      if (!json) {
        std::printf("\n%.*s: %.*s\n  %-38s %-6s %10s %9s %6s %9s %6s %9s %6s\n",
                    int(k.family.size()), k.family.data(), int(k.shape.size()), k.shape.data(),
                    "kernel", "layout", "min us", "bound us", "of it", "GFLOP/s", "peak", "GB/s",
                    "copy");
      }
      double before = 0;
      for (const call_profile& c : k.profile(threads, 0.3).calls) {
        if (c.computes) print(k, c, measured(c, before, k.element, m), json);
        before = c.computes ? 0 : before + c.fastest;
      }
      std::fflush(stdout);
    }
  }
  if (any) return 0;
  std::fprintf(stderr, "usage: %s [--json] [FAMILY] [THREADS]\nFAMILY is one of:\n", argv[0]);
  std::string_view last;
  for (const auto& cases : families) {
    for (const kernel_case& k : cases) {
      if (k.family != last) std::fprintf(stderr, "  %.*s\n", int(k.family.size()), k.family.data());
      last = k.family;
    }
  }
  return 2;
}
