// Kernels with the batch in the lanes on the shapes of LeNet-5's training step, batch 32. Each
// reports GFLOP/s and its share of the multiply-add peak that this run measured first. Pin it to
// one core.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cella/backend/cpu/lanes_convolution_weights.hpp>
#include <cella/backend/cpu/lanes_dense.hpp>
#include <cella/backend/cpu/lanes_softmax.hpp>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace cella;
using namespace cella::cpu;

using real = float;
using buffer = std::vector<real, xsimd::aligned_allocator<real, 64>>;

constexpr int batch = 32;
constexpr int blocks = lane_blocks<real>(batch);
constexpr lanes_convolution_extents first{blocks, 1, 28, 28, 6, 5, 5, 1, 1, 2, 2};
constexpr lanes_convolution_extents second{blocks, 6, 14, 14, 16, 5, 5};

double peak_flops = 1;

buffer random_values(std::int64_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<real> uniform(-1, 1);
  buffer values(static_cast<std::size_t>(n));
  for (auto& v : values) v = uniform(random);
  return values;
}

/// Operands of any of these kernels, large enough for all of them.
struct operands {
  buffer x = random_values(1 << 18), y = random_values(1 << 18), out = random_values(1 << 18),
         scratch = random_values(1 << 18), w = random_values(1 << 16), v = random_values(1 << 16),
         bias = random_values(512);
  std::vector<std::uint16_t> corners = std::vector<std::uint16_t>(1 << 16);
};
operands& data() {
  static operands all;
  return all;
}

constexpr double flops(const lanes_convolution_extents& e) {
  return 2.0 * batch * e.in_channels * e.taps() * e.out_channels *
         static_cast<double>(e.out_plane());
}

template <class Kernel>
void measure(benchmark::State& state, double flops, Kernel kernel) {
  const flush_denormals guard;
  for (auto _ : state) {
    kernel();
    benchmark::ClobberMemory();
  }
  if (flops == 0) return;
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["FLOP/s"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(total / peak_flops, benchmark::Counter::kIsRate);
}

/// Epilogues as the compiler of a model would fuse them.
struct bias_relu {
  real* y;
  const real* bias;
  [[gnu::always_inline]] void operator()(vec<real> value, std::int64_t element, int row) const {
    store(y + element * lanes<real>, maximum(value + vec<real>(bias[row]), vec<real>(real{0})));
  }
};
struct bias_relu_pool {
  real* y;
  std::uint16_t* corners;
  const real* bias;
  [[gnu::always_inline]] void operator()(vec<real> value, const corner_bits& at,
                                         std::int64_t element, int channel) const {
    const vec<real> zero(real{0}), y_value = maximum(value + vec<real>(bias[channel]), zero);
    store(y + element * lanes<real>, y_value);
    store_corners(corners + element * 4, at, greater(y_value, zero));
  }
};
struct relu_gradient {
  real* dx;
  const real* y;
  [[gnu::always_inline]] void operator()(vec<real> value, std::int64_t element, int) const {
    const auto at = element * lanes<real>;
    store(dx + at, keep(greater(load(y + at), vec<real>(real{0})), value));
  }
};
struct momentum_step {
  real *w, *v;
  [[gnu::always_inline]] void operator()(vec<real> gradient, std::int64_t offset, int n) const {
    const vec<real> momentum(real{0.9f}), rate(real{-1e-9f});
    if (n == lanes<real>) {
      const vec<real> next = multiply_add(momentum, load_unaligned(v + offset), gradient);
      store_unaligned(v + offset, next);
      store_unaligned(w + offset, multiply_add(rate, next, load_unaligned(w + offset)));
    } else {
      const vec<real> next = multiply_add(momentum, load_first(v + offset, n), gradient);
      store_first(v + offset, n, next);
      store_first(w + offset, n, multiply_add(rate, next, load_first(w + offset, n)));
    }
  }
};

void pack(benchmark::State& state) {
  constexpr lanes_image_extents e{batch, 1, 28, 28, 2, 2};
  auto& d = data();
  measure(state, 0, [&] {
    pack_lanes<real>({0, pack_lanes_units<real>(e)}, e, d.x.data(), d.out.data());
  });
}
BENCHMARK(pack);

void convolution(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution<5>({0, lanes_convolution_units(e)}, e, d.x.data(), d.w.data(),
                         bias_relu{d.out.data(), d.bias.data()});
  });
}
BENCHMARK_CAPTURE(convolution, first, first);
BENCHMARK_CAPTURE(convolution, second, second);

void convolution_pool(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution_pool<5>({0, lanes_convolution_pool_units(e)}, e, d.x.data(), d.w.data(),
                              bias_relu_pool{d.out.data(), d.corners.data(), d.bias.data()});
  });
}
BENCHMARK_CAPTURE(convolution_pool, first, first);
BENCHMARK_CAPTURE(convolution_pool, second, second);

void convolution_any_width(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution_pool<0>({0, lanes_convolution_pool_units(e)}, e, d.x.data(), d.w.data(),
                              bias_relu_pool{d.out.data(), d.corners.data(), d.bias.data()});
  });
}
BENCHMARK_CAPTURE(convolution_any_width, second, second);

void convolution_input_gradient(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution_input_gradient({0, lanes_convolution_input_gradient_units(e)}, e, d.y.data(),
                                     d.w.data(), store_lanes<real>{d.out.data()});
  });
}
BENCHMARK_CAPTURE(convolution_input_gradient, second, second);

void convolution_weight_gradient(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution_weight_gradient<5>({0, lanes_convolution_weight_gradient_units<5>(e)}, e,
                                         d.x.data(), d.y.data(), d.scratch.data(),
                                         store_plain<real>{d.out.data()});
  });
}
BENCHMARK_CAPTURE(convolution_weight_gradient, second, second);

void convolution_pool_weight_gradient(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, flops(e), [&] {
    lanes_convolution_pool_weight_gradient<5>({0, lanes_convolution_weight_gradient_units<5>(e)}, e,
                                              d.x.data(), d.y.data(), d.corners.data(),
                                              d.scratch.data(), store_plain<real>{d.out.data()},
                                              store_plain<real>{d.out.data() + 4096});
  });
}
BENCHMARK_CAPTURE(convolution_pool_weight_gradient, first, first);

void unpool(benchmark::State& state, lanes_convolution_extents e) {
  auto& d = data();
  measure(state, 0, [&] {
    lanes_unpool<real>({0, lanes_unpool_units(e)}, e, d.y.data(), d.corners.data(), d.out.data(),
                       store_plain<real>{d.scratch.data()});
  });
}
BENCHMARK_CAPTURE(unpool, second, second);

void dense(benchmark::State& state) {
  auto& d = data();
  const int in = static_cast<int>(state.range(0)), out = static_cast<int>(state.range(1));
  const lanes_dense_extents e{blocks, out, in, in, 1};
  measure(state, 2.0 * batch * in * out, [&] {
    lanes_dense({0, lanes_dense_units(e)}, e, d.w.data(), d.x.data(),
                bias_relu{d.out.data(), d.bias.data()});
  });
}
BENCHMARK(dense)->Args({400, 120})->Args({120, 84})->Args({84, 10});

void dense_input_gradient(benchmark::State& state) {
  auto& d = data();
  const int in = static_cast<int>(state.range(0)), out = static_cast<int>(state.range(1));
  const lanes_dense_extents e{blocks, in, out, 1, in};
  measure(state, 2.0 * batch * in * out, [&] {
    lanes_dense({0, lanes_dense_units(e)}, e, d.w.data(), d.y.data(),
                relu_gradient{d.out.data(), d.x.data()});
  });
}
BENCHMARK(dense_input_gradient)->Args({400, 120})->Args({120, 84})->Args({84, 10});

void dense_weight_step(benchmark::State& state) {
  auto& d = data();
  const int in = static_cast<int>(state.range(0)), out = static_cast<int>(state.range(1));
  const lanes_dense_weight_extents e{blocks, out, in};
  measure(state, 2.0 * batch * in * out, [&] {
    lanes_transpose<real>({0, lanes_transpose_units<real>(e)}, e, d.x.data(), d.scratch.data());
    lanes_dense_weight_gradient({0, lanes_dense_weight_gradient_units<real>(e)}, e, d.y.data(),
                                d.scratch.data(), momentum_step{d.w.data(), d.v.data()});
    lanes_channel_sums<real>({0, lanes_channel_sums_units<real>(out)}, blocks, out, 1, d.y.data(),
                             momentum_step{d.bias.data(), d.bias.data() + 256});
  });
}
BENCHMARK(dense_weight_step)->Args({400, 120})->Args({120, 84})->Args({84, 10});

void softmax(benchmark::State& state) {
  auto& d = data();
  constexpr lanes_softmax_extents e{batch, 10};
  const std::vector<std::int32_t> labels(batch, 3);
  std::vector<real> loss(blocks);
  measure(state, 0, [&] {
    lanes_softmax_cross_entropy<real>({0, blocks}, e, d.x.data(), labels.data(), real{1} / batch,
                                      d.out.data(), loss.data());
  });
}
BENCHMARK(softmax);

/// Independent multiply-adds in registers, the best of many short runs.
double measure_peak() {
  constexpr int chains = 12, steps = 20000;
  const vec<real> factor(real{0.999f});
  double best = 0;
  for (int run = 0; run < 200; ++run) {
    vec<real> sum[chains];
    for (auto& s : sum) s = factor;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 12
      for (int c = 0; c < chains; ++c) sum[c] = multiply_add(sum[c], factor, factor);
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    for (auto& s : sum) benchmark::DoNotOptimize(s);
    best = std::max(best, 2.0 * lanes<real> * chains * steps / time.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  peak_flops = measure_peak();
  benchmark::AddCustomContext("peak GFLOP/s", std::to_string(peak_flops / 1e9));
  benchmark::RunSpecifiedBenchmarks();
}
