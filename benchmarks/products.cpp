// Matrix products alone, in the shapes of the workloads, beside OpenBLAS and oneDNN where the
// machine has them: one thread, operands in memory as they lie in the workloads, no epilogue.
//
// usage: products [SECONDS]      for each shape and library; 0.3 by default
#include <unistd.h>

#include <algorithm>
#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/cpu/run/peak.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>
#ifdef CELLA_WITH_OPENBLAS
#include <cblas.h>
#endif
#ifdef CELLA_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace {

using namespace cella;

/// C = op(A) op(B), all by rows; a transposed operand is stored the other way round.
struct shape {
  const char* where;
  int rows, columns, depth;
  bool transposed_a, transposed_b;
  int leading_a() const { return transposed_a ? rows : depth; }
  int leading_b() const { return transposed_b ? depth : columns; }
};
constexpr shape shapes[] = {
    {"cube", 32, 32, 32, false, false},
    {"cube", 64, 64, 64, false, false},
    {"cube", 128, 128, 128, false, false},
    {"cube", 256, 256, 256, false, false},
    {"cube", 512, 512, 512, false, false},
    {"cube", 1024, 1024, 1024, false, false},
    {"cube", 2048, 2048, 2048, false, false},
    {"odd", 257, 263, 251, false, false},
    {"mlp32: forward", 32, 128, 784, false, false},
    {"mlp32: gradient of the weights", 784, 128, 32, true, false},
    {"mlp128_wide: forward", 128, 1024, 1024, false, false},
    {"mlp128_wide: gradient of the input", 128, 1024, 1024, false, true},
    {"mlp128_wide: gradient of the weights", 1024, 1024, 128, true, false},
    {"gpt_8: up, forward", 1024, 1024, 256, false, false},
    {"gpt_8: up, gradient of the input", 1024, 256, 1024, false, true},
    {"gpt_8: up, gradient of the weights", 256, 1024, 1024, true, false},
    {"gpt_8: down, forward", 1024, 256, 1024, false, false},
    {"gpt_8: down, gradient of the weights", 1024, 256, 1024, true, false},
    {"lstm64: inputs, all steps", 1792, 512, 28, false, false},
    {"lstm64: one step", 64, 512, 128, false, false},
    {"lstm64: gradient of the weights", 128, 512, 1792, true, false},
    {"resnet50_8: dense layer", 8, 1000, 2048, false, false},
};

template <class T>
struct operands {
  std::vector<T> a, b, c;
  explicit operands(const shape& s)
      : a(std::size_t(s.rows) * std::size_t(s.depth)),
        b(std::size_t(s.depth) * std::size_t(s.columns)),
        c(std::size_t(s.rows) * std::size_t(s.columns)) {
    generator random(1);
    for (T& x : a) x = T(random.normal());
    for (T& x : b) x = T(random.normal());
  }
};

template <class T>
struct library {
  std::string name;
  std::function<void(const shape&, operands<T>&)> multiply;
};

template <class T>
void multiply_here(const shape& s, operands<T>& o) {
  cpu::product<T> p;
  p.rows = s.rows;
  p.columns = s.columns;
  p.depth = s.depth;
  p.a = s.transposed_a ? cpu::matrix<T>{o.a.data(), 1, s.rows}
                       : cpu::matrix<T>{o.a.data(), s.depth, 1};
  p.b = s.transposed_b ? cpu::matrix<T>{o.b.data(), 1, s.depth}
                       : cpu::matrix<T>{o.b.data(), s.columns, 1};
  p.c_row = s.columns;
  static aligned_buffer scratch;
  const auto needed = std::size_t(cpu::gemm_scratch(p));
  if (scratch.size() < needed) scratch = aligned_buffer(needed);
  cpu::gemm(p, cpu::store_to<T>{o.c.data()}, scratch.data());
}

template <class T>
std::vector<library<T>> libraries() {
  std::vector<library<T>> all{{"cella", &multiply_here<T>}};
#ifdef CELLA_WITH_OPENBLAS
  all.push_back(
      {"OpenBLAS", [](const shape& s, operands<T>& o) {
         const auto a = s.transposed_a ? CblasTrans : CblasNoTrans;
         const auto b = s.transposed_b ? CblasTrans : CblasNoTrans;
         if constexpr (sizeof(T) == 4)
           cblas_sgemm(CblasRowMajor, a, b, s.rows, s.columns, s.depth, 1, o.a.data(),
                       s.leading_a(), o.b.data(), s.leading_b(), 0, o.c.data(), s.columns);
         else
           cblas_dgemm(CblasRowMajor, a, b, s.rows, s.columns, s.depth, 1, o.a.data(),
                       s.leading_a(), o.b.data(), s.leading_b(), 0, o.c.data(), s.columns);
       }});
#endif
#ifdef CELLA_WITH_ONEDNN
  if constexpr (sizeof(T) == 4)
    all.push_back({"oneDNN", [](const shape& s, operands<T>& o) {
                     dnnl_sgemm(s.transposed_a ? 'T' : 'N', s.transposed_b ? 'T' : 'N', s.rows,
                                s.columns, s.depth, 1, o.a.data(), s.leading_a(), o.b.data(),
                                s.leading_b(), 0, o.c.data(), s.columns);
                   }});
#endif
  return all;
}

/// The least seconds of each library, which take turns, so that all see the same machine.
template <class T>
std::vector<double> times(const shape& s, const std::vector<library<T>>& all, double seconds) {
  using clock = std::chrono::steady_clock;
  operands<T> o(s);
  std::vector<double> best(all.size(), 1e9);
  std::vector<T> first;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].multiply(s, o);
    if (i == 0) first = o.c;
    // What is compared is the same product.
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (!(std::abs(double(o.c[k] - first[k])) <= 1e-3 * std::sqrt(double(s.depth)))) {
        std::fprintf(stderr, "%s and cella differ\n", all[i].name.c_str());
        std::exit(1);
      }
    }
  }
  // Small products are timed in bunches: a look at the clock takes as long as one of them.
  const double flops = 2.0 * s.rows * s.columns * s.depth;
  const int bunch = int(std::clamp(2e6 / flops, 1.0, 1000.0));
  const auto end = clock::now() + std::chrono::duration<double>(seconds * double(all.size()));
  while (clock::now() < end) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto before = clock::now();
      for (int k = 0; k < bunch; ++k) all[i].multiply(s, o);
      const std::chrono::duration<double> took = clock::now() - before;
      best[i] = std::min(best[i], took.count() / bunch);
    }
  }
  return best;
}

template <class T>
void compare(const char* element, double seconds) {
  const auto all = libraries<T>();
  const double peak = cpu::measured_peak<T>();
  std::printf("\n%s: multiply-add peak %.1f GFLOP/s; GFLOP/s of each library\n\n", element,
              peak * 1e-9);
  std::printf("| product | rows x columns x depth |");
  for (const auto& l : all) std::printf(" %s |", l.name.c_str());
  std::printf(" of peak | against the fastest other |\n| --- | ---: |");
  for (std::size_t i = 0; i < all.size() + 2; ++i) std::printf(" ---: |");
  std::printf("\n");
  for (const shape& s : shapes) {
    const auto best = times(s, all, seconds);
    const double flops = 2.0 * s.rows * s.columns * s.depth;
    std::printf("| %s | %d x %d x %d%s%s |", s.where, s.rows, s.columns, s.depth,
                s.transposed_a ? ", A'" : "", s.transposed_b ? ", B'" : "");
    for (double b : best) std::printf(" %.1f |", flops / b * 1e-9);
    std::printf(" %.0f %% |", 100 * flops / best[0] / peak);
    if (best.size() > 1)
      std::printf(" %.2f |", *std::min_element(best.begin() + 1, best.end()) / best[0]);
    else
      std::printf(" |");
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // The libraries read their numbers of threads before `main`.
  if (!getenv("OPENBLAS_NUM_THREADS")) {
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) setenv(name, "1", 1);
    execv("/proc/self/exe", argv);
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  if (argc > 2 || !(seconds > 0)) {
    std::fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
    return 2;
  }
  compare<float>("f32", seconds);
  compare<double>("f64", seconds);
}
