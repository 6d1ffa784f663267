// A program with parameters and one batch of data, to be run over and over.
#pragma once

#include <algorithm>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <memory>
#include <random>

#include "planned_workload.hpp"
#include "workload.hpp"

namespace cella::benchmark {

/// Mean cross-entropy, gradients and update: what one step of training does.
template <class Net, int... Input>
using training =
    program<training_step<Net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>, true,
            dtype::f32, tensor<dtype::f32, Input...>, tensor<dtype::i32, std::array{Input...}[0]>>;
template <class Net, int... Input>
using inference = inference_program<Net, tensor<dtype::f32, Input...>>;

namespace detail {

/// Copies a step out of line: each is a thousand bytes of constants.
[[gnu::noinline]] inline call_profile profile_of(const plan_step& s) {
  call_profile call{.what = s};
  for (int i = 0; i < s.loops; ++i)
    call.operands += (i ? " " : "") + std::to_string(s.loop[std::size_t(i)]);
  return call;
}

/// Describes the calls that step I becomes, in the order of `cpu::kernel_calls<P>::steps`.
template <class P, int I>
void describe(program_profile& p) {
  using lowered = cpu::lowered<P, I>;
  if constexpr (lowered::s.carried) return;
  call_profile call = profile_of(lowered::s);
  constexpr const node& anchor = lowered::anchor();
  for (int k = 0; k < std::min<int>(anchor.operand_count, 2) && !lowered::s.loops; ++k)
    call.operands += (k ? " " : "") + std::string((text() << lowered::operand(k).shape).view());
  if (has_form(lowered::s, convolution_form::winograd))
    call.needed = double(cpu::winograd::products) / (cpu::winograd::tile * cpu::winograd::tile * 9);
  if constexpr (lowered::s.constant) {
    p.preparation.push_back(call);
    return;
  }
  for (int phase = 0; phase + 1 < lowered::phases(); ++phase)
    (lowered::prepares() && phase == 0 ? p.preparation : p.calls).push_back(call);
  call.computes = true;
  p.calls.push_back(call);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace detail

/// Program P on random numbers; integers are below `Classes`, those of the first argument below
/// `Words`.
template <class Net, class P, int Classes, int Words>
class bound {
  /// Found by the compiler: the program need not hold its graph.
  static constexpr auto argument_types = [] {
    std::array<tensor_type, std::size_t(P::count(input_role::argument))> types{};
    for (std::size_t i = 0; i < P::graph.inputs.size(); ++i) {
      const input_info& in = P::graph.inputs[i];
      if (in.role == input_role::argument)
        types[std::size_t(in.index)] = P::graph.type(P::graph.input(int(i)));
    }
    return types;
  }();

 public:
  explicit bound(int threads)
      : store_(net_, 1, P::element_type),
        pool_(threads > 1 ? std::make_unique<thread_pool>(threads) : nullptr),
        arguments_(random_arguments(argument_types, Classes, Words)) {
    run_ = std::make_unique<executable<P>>(store_, pool_.get());
    for_each_scalar([&](int index, double value) { run_->scalar(index, value); });
  }

  void step() {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      run_->call_unchecked(arguments_[K].data()...);
    }
    (std::make_index_sequence<std::size_t(P::count(input_role::argument))>{});
  }

  measurement measure(clock::time_point start) {
    return measure_steps(start, [&] { step(); });
  }

  /// Runs the program's calls one by one, in their order and over memory of their own, for about so
  /// many seconds.
  program_profile profile(double seconds = 8) {
    program_profile p;
    [&]<std::size_t... I>(std::index_sequence<I...>) { (detail::describe<P, int(I)>(p), ...); }
    (std::make_index_sequence<std::size_t(P::plan.step_count)>{});

    scratch_ = aligned_buffer(std::size_t(scratch_bytes() * (pool_ ? pool_->size() : 1)));
    aligned_buffer arena(std::size_t(P::plan.arena_bytes));
    aligned_buffer slots(std::size_t(P::plan.slot_bytes));
    aligned_buffer scalars(std::size_t(P::count(input_role::scalar)) * 8);
    std::array<std::byte*, std::size_t(first_argument + P::count(input_role::argument))> spaces{};
    cpu::run_context context;
    context.threads = pool_.get();
    const cpu::memory memory{spaces.data(), &context};
    spaces[arena_space] = arena.data();
    spaces[parameter_space] = store_.data();
    spaces[slot_space] = slots.data();
    spaces[scalar_space] = scalars.data();
    for (std::size_t k = 0; k < arguments_.size(); ++k)
      spaces[first_argument + k] = arguments_[k].data();
    for_each_scalar([&](int index, double value) {
      using number = element<P::element_type>;
      *reinterpret_cast<number*>(scalars.data() + index * 8) = number(value);
    });

    const cpu::flush_denormals guard;
    std::vector<double> steps;
    std::vector<std::vector<double>> preparation(p.preparation.size()), calls(p.calls.size());
    // In turns, so that whole steps and single calls see the same machine.
    const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(
                                        std::chrono::duration<double>(seconds));
    for (int turn = 0; turn < 40 && (turn < 2 || clock::now() < end); ++turn) {
      for (int i = 0; i < 25; ++i) {
        time_calls(memory, cpu::kernel_calls<P>::preparation, preparation);
        time_calls(memory, cpu::kernel_calls<P>::steps, calls);
      }
      step();
      for (int i = 0; i < 25; ++i) steps.push_back(timed([&] { step(); }));
    }
    summarize(preparation, p.preparation);
    summarize(calls, p.calls);
    p.fastest_step = *std::min_element(steps.begin(), steps.end());
    p.median_step = detail::median(steps);
    return p;
  }

 private:
  /// The numbers of a step: the learning rate, and for some optimizers the count of steps, which is
  /// held at the second.
  template <class F>
  static void for_each_scalar(F f) {
    constexpr int rate = P::scalar("learning_rate"), step = P::scalar("step");
    if constexpr (rate >= 0) f(rate, step >= 0 ? 1e-3 : learning_rate);
    if constexpr (step >= 0) f(step, 2.0);
  }

  /// Microseconds.
  template <class F>
  static double timed(F f) {
    const auto before = clock::now();
    f();
    return std::chrono::duration<double, std::micro>(clock::now() - before).count();
  }

  template <std::size_t N>
  void time_calls(const cpu::memory& memory, const std::array<cpu::kernel_call, N>& calls,
                  std::vector<std::vector<double>>& times) {
    if (times.size() != N) throw error("the profile does not describe this program's calls");
    for (std::size_t i = 0; i < N; ++i) {
      times[i].push_back(timed([&] { run(memory, calls[i]); }));
    }
  }
  static void summarize(const std::vector<std::vector<double>>& times,
                        std::vector<call_profile>& profiles) {
    double clock_cost = 1e9;
    for (int i = 0; i < 1000; ++i) clock_cost = std::min(clock_cost, timed([] {}));
    for (std::size_t i = 0; i < times.size(); ++i) {
      profiles[i].fastest =
          std::max(*std::min_element(times[i].begin(), times[i].end()) - clock_cost, 0.0);
      profiles[i].median = std::max(detail::median(times[i]) - clock_cost, 0.0);
    }
  }
  void run(const cpu::memory& memory, const cpu::kernel_call& call) {
    cpu::run_call(call, memory, scratch_.data(), scratch_bytes());
  }
  static constexpr std::int64_t scratch_bytes() { return cpu::kernel_calls<P>::scratch_bytes(); }

  Net net_{};
  parameter_store store_;
  std::unique_ptr<thread_pool> pool_;
  std::unique_ptr<executable<P>> run_;
  aligned_buffer scratch_;
  std::vector<aligned_buffer> arguments_;
};

template <class Net, class P, int Classes = 10, int Words = Classes>
constexpr workload make_workload(std::string_view name) {
  constexpr const auto& plan = P::plan;
  constexpr double operations = [] {
    double all = 0;
    for (const plan_step& s : plan.steps) all += double(s.flops);
    return all;
  }();
  workload w{.name = name,
             .memory = {plan.arena_bytes, plan.live_bytes, plan.arena_bytes_without_reuse,
                        plan.parameter_bytes, plan.slot_bytes},
             .measure = [](int threads, clock::time_point start) {
               return bound<Net, P, Classes, Words>(threads).measure(start);
             }};
  w.operations = operations;
#ifndef CELLA_WORKLOAD_WITHOUT_PROFILE
  w.measure_at_run_time = [](int threads, clock::time_point start) {
    Net net{};
    return measure_planned(net, P::traced(), threads, start, Classes, Words);
  };
  w.profile = [](int threads) { return bound<Net, P, Classes, Words>(threads).profile(); };
#endif
  return w;
}

}  // namespace cella::benchmark
