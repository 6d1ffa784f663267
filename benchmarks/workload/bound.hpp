// A program with parameters and one batch of data, to be run over and over.
#pragma once

#include <algorithm>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <memory>
#include <random>

#include "workload.hpp"

namespace cella::benchmark {

inline constexpr double learning_rate = 0.01;
struct momentum_sgd : optim::sgd {
  constexpr momentum_sgd() : optim::sgd{.momentum = 0.9} {}
};

/// Mean cross-entropy, gradients and update: what one step of training does.
template <class Net, int... Input>
using training = program<training_step<Net, cross_entropy_loss, momentum_sgd>, true, dtype::f32,
                         tensor<dtype::f32, Input...>, tensor<dtype::i32, std::array{Input...}[0]>>;
template <class Net, int... Input>
using inference = inference_program<Net, tensor<dtype::f32, Input...>>;

namespace detail {

template <class P, int I, bool Prepare>
void add_calls(std::vector<call_profile>& profiles, std::vector<cpu::kernel_call>& calls) {
  using lowered = cpu::lowered<P, I>;
  const auto add = [&](auto phase, bool computes) {
    profiles.push_back({P::plan.steps[std::size_t(I)], computes, lowered::units(phase), 0, 0});
    calls.push_back(
        {&lowered::template run<phase>, lowered::units(phase), lowered::scratch_bytes()});
  };
  using first = std::integral_constant<int, 0>;
  using second = std::integral_constant<int, 1>;
  if constexpr (Prepare) {
    if constexpr (lowered::single_sample()) add(first{}, false);
  } else if constexpr (lowered::single_sample()) {
    add(second{}, true);
  } else {
    add(first{}, lowered::phases() == 1);
    if constexpr (lowered::phases() == 2) add(second{}, true);
  }
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace detail

template <class Net, class P>
class bound {
 public:
  explicit bound(int threads)
      : store_(net_, 1), pool_(threads > 1 ? std::make_unique<thread_pool>(threads) : nullptr) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    x_.resize(std::size_t(input().size()));
    for (float& v : x_) v = normal(random);
    for (int i = 0; i < input()[0]; ++i) labels_.push_back(std::int32_t(random() % 10));
    run_ = std::make_unique<executable<P>>(store_, pool_.get());
    if constexpr (P::training) run_->scalar(P::scalar("learning_rate"), learning_rate);
  }

  void step() {
    if constexpr (P::training) {
      (*run_)(x_.data(), labels_.data());
    } else {
      (*run_)(x_.data());
    }
  }

  measurement measure(clock::time_point start) {
    constexpr int most = 3000, least = 5;
    measurement m;
    for (int i = 0; i < 3; ++i) step();
    m.seconds_to_third_step = std::chrono::duration<double>(clock::now() - start).count();
    m.milliseconds.reserve(most);
    const auto end = clock::now() + std::chrono::seconds(8);
    while ((clock::now() < end || m.milliseconds.size() < least) && m.milliseconds.size() < most) {
      const auto before = clock::now();
      step();
      m.milliseconds.push_back(
          std::chrono::duration<double, std::milli>(clock::now() - before).count());
    }
    return m;
  }

  /// Runs the program's calls one by one, in their order and over memory of their own.
  program_profile profile() {
    program_profile p;
    std::vector<cpu::kernel_call> preparation, calls;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (detail::add_calls<P, int(I), true>(p.preparation, preparation), ...);
      (detail::add_calls<P, int(I), false>(p.calls, calls), ...);
    }
    (std::make_index_sequence<std::size_t(P::plan.step_count)>{});

    aligned_buffer arena(std::size_t(P::plan.arena_bytes));
    aligned_buffer slots(std::size_t(P::plan.slot_bytes));
    aligned_buffer scalars(std::size_t(P::count(input_role::scalar)) * 8);
    cpu::memory memory{};
    memory.base[arena_space] = arena.data();
    memory.base[parameter_space] = store_.data();
    memory.base[slot_space] = slots.data();
    memory.base[scalar_space] = scalars.data();
    memory.base[first_argument] = reinterpret_cast<std::byte*>(x_.data());
    memory.base[first_argument + 1] = reinterpret_cast<std::byte*>(labels_.data());
    if constexpr (P::training) {
      constexpr auto at = std::size_t(P::scalar("learning_rate"));
      *reinterpret_cast<float*>(scalars.data() + at * 8) = float(learning_rate);
    }

    std::vector<double> steps;
    for (int i = 0; i < rounds; ++i) steps.push_back(timed([&] { step(); }));
    p.fastest_step = *std::min_element(steps.begin(), steps.end());
    p.median_step = detail::median(steps);

    const cpu::flush_denormals guard;
    time_calls(memory, preparation, p.preparation);
    time_calls(memory, calls, p.calls);
    return p;
  }

 private:
  static constexpr int rounds = 1000;
  static constexpr tensor_type input() { return P::graph.type(P::graph.input(first_input())); }
  static constexpr int first_input() {
    for (std::size_t i = 0; i < P::graph.inputs.size(); ++i) {
      const input_info& in = P::graph.inputs[i];
      if (in.role == input_role::argument && in.index == 0) return int(i);
    }
    return -1;
  }

  /// Microseconds.
  template <class F>
  static double timed(F f) {
    const auto before = clock::now();
    f();
    return std::chrono::duration<double, std::micro>(clock::now() - before).count();
  }

  void time_calls(cpu::memory& memory, const std::vector<cpu::kernel_call>& calls,
                  std::vector<call_profile>& profiles) {
    double clock_cost = 1e9;
    for (int i = 0; i < rounds; ++i) clock_cost = std::min(clock_cost, timed([] {}));
    std::int64_t scratch_bytes = 0;
    for (const auto& call : calls) scratch_bytes = std::max(scratch_bytes, align_up(call.scratch));
    aligned_buffer scratch(std::size_t(scratch_bytes * (pool_ ? pool_->size() : 1)));

    std::vector<std::vector<double>> times(calls.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const double t = timed([&] { run(memory, calls[i], scratch, scratch_bytes); });
        times[i].push_back(std::max(t - clock_cost, 0.0));
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      profiles[i].fastest = *std::min_element(times[i].begin(), times[i].end());
      profiles[i].median = detail::median(times[i]);
    }
  }
  void run(cpu::memory& memory, const cpu::kernel_call& call, const aligned_buffer& scratch,
           std::int64_t scratch_bytes) {
    if (!pool_ || call.units == 1) return call.run(memory, {0, call.units}, scratch.data());
    const int parts = pool_->size();
    pool_->run(parts, [&](work_range part) {
      for (int i = part.first; i < part.last; ++i) {
        call.run(memory, part_of(call.units, parts, i), scratch.data() + i * scratch_bytes);
      }
    });
  }

  Net net_{};
  parameter_store store_;
  std::unique_ptr<thread_pool> pool_;
  std::unique_ptr<executable<P>> run_;
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
};

template <class Net, class P>
constexpr workload make_workload(std::string_view name) {
  return {
      name,
      [](int threads, clock::time_point start) { return bound<Net, P>(threads).measure(start); },
      [](int threads) { return bound<Net, P>(threads).profile(); }};
}

}  // namespace cella::benchmark
