// Times one derivative as a fresh process and prints one line of JSON, as `workload` does, for
// `peers.py`. The line also holds the first results, to be compared.
//
// usage: derivatives NAME [THREADS]
#include <algorithm>
#include <array>
#include <cella/runtime/compile.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <vector>

#include "derivatives/functions.hpp"

namespace {

using namespace cella;
using clock_type = std::chrono::steady_clock;

struct result {
  std::vector<double> milliseconds;
  double to_third{};
  std::vector<double> first;  ///< results
};

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Runs for two seconds, after three runs to warm up.
template <dtype E, class F, class... Arguments, class... X>
result measure(clock_type::time_point start, std::tuple<Arguments...>, const X&... x) {
  compiled<F, Arguments...> run;
  result r;
  for (int k = 0; k < 3; ++k) run(x...);
  r.to_third = seconds_since(start);
  for (element<E> v : run.template result<0>()) {
    if (r.first.size() < 6) r.first.push_back(double(v));
  }
  const auto began = clock_type::now();
  while (seconds_since(began) < 2 || r.milliseconds.size() < 5) {
    const auto before = clock_type::now();
    run(x...);
    r.milliseconds.push_back(1e3 * seconds_since(before));
  }
  return r;
}

template <dtype E, class F>
result measure_populations(clock_type::time_point start) {
  using number = element<E>;
  const std::array<number, 2> y{number(1), number(0.5)};
  const std::array<number, 4> p{number(1.1), number(0.4), number(0.1), number(0.4)};
  return measure<E, F>(start, std::tuple<tensor<E, 2>, tensor<E, 4>>{}, y, p);
}
template <dtype E>
result measure_net(clock_type::time_point start) {
  using number = element<E>;
  std::array<number, 64> w;
  std::array<number, 80> x;
  std::array<number, 16> t;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = number(int(i * 7 % 13) - 6) / 8;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = number(int(i * 5 % 11) - 5) / 4;
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = number(int(i * 3 % 7) - 3) / 2;
  return measure<E, benchmark::net_hessian>(
      start, std::tuple<tensor<E, 64>, tensor<E, 16, 5>, tensor<E, 16, 1>>{}, w, x, t);
}

struct entry {
  std::string_view name;
  result (*run)(clock_type::time_point);
};
constexpr dtype f32 = dtype::f32;
constexpr dtype f64 = dtype::f64;
constexpr std::array entries{
    entry{"scan_1000_f32", &measure_populations<f32, benchmark::scan_gradient<1000>>},
    entry{"scan_1000_f64", &measure_populations<f64, benchmark::scan_gradient<1000>>},
    entry{"while_f64", &measure_populations<f64, benchmark::while_gradient<0>>},
    entry{"while_bounded_f64", &measure_populations<f64, benchmark::while_gradient<20000>>},
    entry{"hessian_f32", &measure_net<f32>},
    entry{"hessian_f64", &measure_net<f64>}};

/// The most memory that this process has held, in kB.
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

}  // namespace

int main(int argc, char** argv) {
  const auto start = clock_type::now();
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const entry& e : entries) {
    if (e.name != name) continue;
    result r = e.run(start);
    std::sort(r.milliseconds.begin(), r.milliseconds.end());
    const std::size_t n = r.milliseconds.size();
    std::printf(
        "{\"framework\": \"cella\", \"version\": \"%s\", \"workload\": \"%s\", \"threads\": 1, "
        "\"median_ms\": %.6f, \"min_ms\": %.6f, \"steps\": %zu, \"to_third_step_s\": %.4f, "
        "\"peak_rss_mb\": %ld, \"results\": [",
        CELLA_VERSION, argv[1], r.milliseconds[n / 2], r.milliseconds[0], n, r.to_third,
        peak_memory() / 1024);
    for (std::size_t i = 0; i < r.first.size(); ++i)
      std::printf("%s%.9g", i ? ", " : "", r.first[i]);
    std::printf("]}\n");
    return 0;
  }
  std::fprintf(stderr, "usage: %s NAME [THREADS]\nNAME is one of:\n", argv[0]);
  for (const entry& e : entries) std::fprintf(stderr, "  %s\n", e.name.data());
  return 2;
}
