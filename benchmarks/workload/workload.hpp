// The networks that are timed: what the programs `workload` and `profile` know of them.
#pragma once

#include <array>
#include <cella/plan/plan.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cella::benchmark {

using clock = std::chrono::steady_clock;

struct measurement {
  std::vector<double> milliseconds;  ///< of each step after three to warm up
  double seconds_to_third_step{};
  double operations{};  ///< of one step, where `workload` does not say
};

/// One kernel call of a program.
struct call_profile {
  plan_step what;
  std::string operands{};      ///< shapes of what its node reads, or the extents of its loops
  bool computes{};             ///< it does the step's floating-point work, rather than prepare it
  double fastest{}, median{};  ///< microseconds
  /// The operations that the algorithm needs, as a share of the step's `flops`: Winograd's
  /// filtering does with fewer multiplications than the sum that is counted.
  double needed = 1;
};
struct program_profile {
  std::vector<call_profile> preparation;  ///< runs again only when parameters have changed
  std::vector<call_profile> calls;
  double fastest_step{}, median_step{};  ///< microseconds, without a clock between the calls
};

/// What the plan takes, in bytes.
struct memory_use {
  std::int64_t arena{};  ///< for values between steps
  std::int64_t live{};   ///< the largest set of them that lives at once: no arena is smaller
  std::int64_t without_reuse{};  ///< all of them side by side
  std::int64_t parameters{}, slots{};
};

struct workload {
  std::string_view name;
  memory_use memory;
  double operations{};  ///< floating-point, of one step
  /// Steps for up to eight seconds or 3,000 steps, at least five; `start` is the program's.
  measurement (*measure)(int threads, clock::time_point start);
  /// The same of the graph that is traced, optimized and planned at run time.
  measurement (*measure_at_run_time)(int threads, clock::time_point start) = nullptr;
  program_profile (*profile)(int threads) = nullptr;
};

// Each stands in a file of its own: one program keeps the compiler busy for seconds.
extern const workload lenet32;
extern const workload lenet256;
extern const workload lenet1_infer;
extern const workload mlp32;
extern const workload mlp128_wide;
extern const workload mlp1_infer;
extern const workload gpt_8;
extern const workload gpt_1_infer;
extern const workload lstm64;
extern const workload resnet20_32;
extern const workload resnet20_1_infer;
extern const workload resnet50_8;
extern const workload resnet50_1_infer;
extern const workload mobilenet2_1_infer;
extern const workload bert_base_1_infer;
extern const workload gpt_decode;
extern const workload unet_4;
extern const workload resnet50_32_infer;
extern const workload vit_8;
extern const workload gru128;
extern const workload embedding_bag;

inline std::array<const workload*, 21> workloads() {
  return {&lenet32,
          &lenet256,
          &lenet1_infer,
          &mlp32,
          &mlp128_wide,
          &mlp1_infer,
          &gpt_8,
          &gpt_1_infer,
          &lstm64,
          &resnet20_32,
          &resnet20_1_infer,
          &resnet50_8,
          &resnet50_1_infer,
          &mobilenet2_1_infer,
          &bert_base_1_infer,
          &gpt_decode,
          &unet_4,
          &resnet50_32_infer,
          &vit_8,
          &gru128,
          &embedding_bag};
}

/// The workload and the number of threads that a command line names, and whether it says
/// `--runtime`; explains itself on standard error and ends the process with 2 if it names none.
struct selection {
  const workload& work;
  int threads;
  bool at_run_time;
};
selection selected(int argc, const char* const* argv);

}  // namespace cella::benchmark
