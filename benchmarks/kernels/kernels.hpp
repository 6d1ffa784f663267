// The kernel families that the program `kernels` times.
#pragma once

#include <span>

#include "../workload/workload.hpp"

namespace cella::benchmark {

/// A small net whose layers have the shapes of a workload.
struct kernel_case {
  std::string_view family;
  std::string_view shape;  ///< what the net does, and for which workload
  dtype element{};
  program_profile (*profile)(int threads, double seconds);
};

// Each family stands in files of its own: one net keeps the compiler busy for seconds.
std::span<const kernel_case> products();
std::span<const kernel_case> image_convolutions();
std::span<const kernel_case> small_convolutions();
std::span<const kernel_case> normalizations();
std::span<const kernel_case> memory_bound();
std::span<const kernel_case> attention();

}  // namespace cella::benchmark
