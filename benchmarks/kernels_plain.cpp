// Kernels on plain tensors: matrix products, convolutions, one-sample layers, parallel regions.
// Counter `of_peak` is the share of the fused multiply-adds that this core can do, measured at
// start.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cella/backend/cpu/convolution.hpp>
#include <cella/backend/cpu/convolution_input_gradient.hpp>
#include <cella/backend/cpu/convolution_weight_gradient.hpp>
#include <cella/backend/cpu/gemm.hpp>
#include <cella/backend/cpu/simd.hpp>
#include <cella/backend/cpu/single_sample.hpp>
#include <cella/backend/threads.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Multiply-adds in registers: floating-point operations per second, the best of some tries.
double measure_peak() {
  constexpr int rounds = 20000, chains = 12;
  double best = 0;
  for (int attempt = 0; attempt < 30; ++attempt) {
    vec<float> sums[chains];
    // Chains that differ: equal ones would be computed once.
    for (int j = 0; j < chains; ++j) sums[j] = vec<float>(1.0f + static_cast<float>(j));
    const vec<float> factor(1.0000001f), term(1e-9f);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < chains; ++j) sums[j] = multiply_add(sums[j], factor, term);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    float total = 0;
    for (auto& s : sums) total += sum<float>(s);
    benchmark::DoNotOptimize(total);
    best = std::max(best, 2.0 * rounds * chains * lanes<float> / took.count());
  }
  return best;
}

double peak() {
  static const double value = measure_peak();
  return value;
}

/// Reports the operations done in one iteration.
void report(benchmark::State& state, double operations) {
  state.counters["flops"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] =
      benchmark::Counter(operations / peak(), benchmark::Counter::kIsIterationInvariantRate);
}

std::vector<float> values(std::int64_t size) {
  std::vector<float> v(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(i * 2654435761u % 1000) / 1e3f;
  return v;
}

using scratch_space = std::unique_ptr<std::byte, void (*)(void*)>;

scratch_space allocate(std::int64_t bytes) {
  constexpr std::align_val_t alignment{64};
  return {static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), alignment)),
          [](void* p) { ::operator delete (p, std::align_val_t{64}); }};
}

/// Bias and ReLU: bias by column for products, by row (channel) for convolutions.
template <bool ByRow>
struct bias_relu {
  float* y;
  const float* bias;
  [[gnu::always_inline]] void operator()(vec<float> value, std::int64_t offset, int row, int column,
                                         int count) const {
    const vec<float> b = ByRow ? vec<float>(bias[row]) : load_first(bias + column, count);
    value = maximum(value + b, vec<float>(0.0f));
    if (count == lanes<float>) {
      store_unaligned(y + offset, value);
    } else {
      store_first(y + offset, count, value);
    }
  }
};

enum operand_layout : int { as_is, b_transposed, a_transposed };

void products(benchmark::State& state) {
  const int m = int(state.range(0)), k = int(state.range(1)), n = int(state.range(2));
  const auto a = values(std::int64_t{m} * k), b = values(std::int64_t{k} * n), bias = values(n);
  auto c = values(std::int64_t{m} * n);
  product<float> p{.rows = m, .columns = n, .depth = k};
  p.a = state.range(3) == a_transposed ? matrix<float>{a.data(), 1, m}
                                       : matrix<float>{a.data(), k, 1};
  p.b = state.range(3) == b_transposed ? matrix<float>{b.data(), 1, k}
                                       : matrix<float>{b.data(), n, 1};
  p.c_row = n;
  const scratch_space scratch = allocate(gemm_scratch(p));
  for (auto _ : state) {
    if (state.range(4)) {
      gemm(p, bias_relu<false>{c.data(), bias.data()}, scratch.get());
    } else {
      gemm(p, store_to<float>{c.data()}, scratch.get());
    }
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * m * k * n);
}

void product_arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "n", "layout", "epilogue"});
  for (int size : {8, 16, 32, 64, 128, 256, 512}) b->Args({size, size, size, as_is, 0});
  const int shapes[][3]{{32, 400, 120}, {32, 120, 84}, {32, 784, 128}, {32, 128, 10},
                        {1, 400, 120},  {1, 784, 128}, {64, 576, 3136}};
  for (const auto& s : shapes) {
    for (int layout : {as_is, b_transposed, a_transposed}) b->Args({s[0], s[1], s[2], layout, 1});
  }
}

void threaded_products(benchmark::State& state) {
  const int size = int(state.range(0));
  const auto a = values(std::int64_t{size} * size), b = a;
  auto c = a;
  const product<float> p{.rows = size,
                         .columns = size,
                         .depth = size,
                         .a = {a.data(), size, 1},
                         .b = {b.data(), size, 1},
                         .c_row = size};
  thread_pool pool(2);
  const std::int64_t each = (gemm_scratch(p) + 63) / 64 * 64;
  const scratch_space scratch = allocate(2 * each);
  for (auto _ : state) {
    pool.run(
        gemm_units(p),
        [&](work_range units) {
          gemm(p, store_to<float>{c.data()}, scratch.get() + (units.first ? each : 0), units);
        },
        2);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * size * size * size);
}

convolution_extents extents(const benchmark::State& state) {
  const int size = int(state.range(3)), kernel = int(state.range(4)), stride = int(state.range(5));
  const int padding = int(state.range(6));
  const convolution_axis axis{size, kernel, stride, padding, padding};
  return {int(state.range(0)), int(state.range(1)), int(state.range(2)), 1, axis, axis};
}

enum convolution_pass : int { forward, input_gradient, weight_gradient };

template <convolution_pass Pass>
void convolutions(benchmark::State& state) {
  const convolution_extents e = extents(state);
  auto x = values(std::int64_t{e.samples} * e.in_channels * e.input_size());
  auto y = values(std::int64_t{e.samples} * e.out_channels * e.output_size());
  auto w = values(std::int64_t{e.out_channels} * e.in_channels * e.taps());
  const auto bias = values(e.out_channels);
  const scratch_space scratch = allocate(
      std::max({convolution_scratch<float>(e), convolution_input_gradient_scratch<float>(e),
                convolution_weight_gradient_scratch<float>(e)}));
  for (auto _ : state) {
    if constexpr (Pass == forward) {
      convolution(e, x.data(), w.data(), bias_relu<true>{y.data(), bias.data()}, scratch.get(),
                  {0, convolution_units<float>(e)});
    } else if constexpr (Pass == input_gradient) {
      convolution_input_gradient(e, w.data(), y.data(), store_to<float>{x.data()}, scratch.get(),
                                 {0, convolution_input_gradient_units<float>(e)});
    } else {
      convolution_weight_gradient(e, x.data(), y.data(), store_to<float>{w.data()}, scratch.get(),
                                  {0, convolution_weight_gradient_units<float>(e)});
    }
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * e.samples * e.out_channels * e.output_size() * e.in_channels * e.taps());
}

void convolution_arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "in", "out", "size", "kernel", "stride", "padding"});
  b->Args({32, 1, 6, 28, 5, 1, 2})->Args({32, 6, 16, 14, 5, 1, 0});
  b->Args({1, 64, 64, 56, 3, 1, 1})
      ->Args({1, 64, 128, 56, 3, 2, 1})
      ->Args({1, 64, 256, 28, 1, 1, 0});
}

/// The layers of LeNet-5 on one image.
struct lenet {
  const convolution_extents e1{1, 1, 6, 1, {28, 5, 1, 2, 2}, {28, 5, 1, 2, 2}};
  const convolution_extents e2{1, 6, 16, 1, {14, 5}, {14, 5}};
  const convolution_extents p1 = without_padding(e1);
  std::vector<float> x = values(784), padded = values(1024), y1 = values(1176), y2 = values(400);
  std::vector<float> w1 = values(150), w2 = values(2400), f1 = values(120), f2 = values(84),
                     f3 = values(10);
  std::vector<float> v1 = values(48000), v2 = values(10080), v3 = values(840), bias = values(128);
  std::vector<float> packed = values(packed_channels_size<float>(e2));

  lenet() { pack_channels(e2, w2.data(), packed.data()); }
  void pad() { pad_image(e1, x.data(), padded.data()); }
  void convolution_1() {
    constexpr auto pool = pooling::maximum_2x2;
    convolution_pixels<pool>(p1, padded.data(), w1.data(), bias_relu<true>{y1.data(), bias.data()},
                             {0, convolution_pixels_units<pool>(p1)});
  }
  void convolution_2() {
    constexpr auto pool = pooling::maximum_2x2;
    convolution_channels<pool>(e2, y1.data(), packed.data(),
                               bias_relu<true>{y2.data(), bias.data()},
                               {0, convolution_channels_units<pool, float>(e2)});
  }
  static void dense(const std::vector<float>& from, const std::vector<float>& w,
                    const std::vector<float>& bias, std::vector<float>& to) {
    const int k = int(from.size()), n = int(to.size());
    const product<float> p{.rows = 1,
                           .columns = n,
                           .depth = k,
                           .a = {from.data(), k, 1},
                           .b = {w.data(), 1, k},
                           .c_row = n};
    gemm(p, bias_relu<false>{to.data(), bias.data()}, nullptr);
  }
  void dense_1() { dense(y2, v1, bias, f1); }
  void dense_2() { dense(f1, v2, bias, f2); }
  void dense_3() { dense(f2, v3, bias, f3); }
  void all() {
    pad();
    convolution_1();
    convolution_2();
    dense_1();
    dense_2();
    dense_3();
  }
};

void one_sample(benchmark::State& state, void (lenet::*layer)()) {
  lenet net;
  for (auto _ : state) {
    (net.*layer)();
    benchmark::ClobberMemory();
  }
}

void empty_region(benchmark::State& state) {
  thread_pool pool(2);
  // Both threads must arrive, so that a range is not just taken back by the caller.
  std::atomic<int> arrived{0};
  for (auto _ : state) {
    arrived.store(0, std::memory_order_relaxed);
    pool.run(2, [&](work_range) {
      ++arrived;
      while (arrived.load(std::memory_order_relaxed) < 2) {}
    });
  }
}

}  // namespace

BENCHMARK(products)->Apply(product_arguments);
BENCHMARK(threaded_products)->Arg(64)->Arg(128)->Arg(256)->Arg(512)->UseRealTime();
BENCHMARK(convolutions<forward>)->Apply(convolution_arguments);
BENCHMARK(convolutions<input_gradient>)->Apply(convolution_arguments);
BENCHMARK(convolutions<weight_gradient>)->Apply(convolution_arguments);
BENCHMARK_CAPTURE(one_sample, pad, &lenet::pad);
BENCHMARK_CAPTURE(one_sample, convolution_1, &lenet::convolution_1);
BENCHMARK_CAPTURE(one_sample, convolution_2, &lenet::convolution_2);
BENCHMARK_CAPTURE(one_sample, dense_1, &lenet::dense_1);
BENCHMARK_CAPTURE(one_sample, dense_2, &lenet::dense_2);
BENCHMARK_CAPTURE(one_sample, dense_3, &lenet::dense_3);
BENCHMARK_CAPTURE(one_sample, all, &lenet::all);
BENCHMARK(empty_region)->UseRealTime();

BENCHMARK_MAIN();
