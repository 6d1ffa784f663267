// Every kernel that can compute a convolution, run on extents that are known at run time.
#pragma once

#include <cella/backend/cpu/plan/convolution_cost.hpp>
#include <memory>

namespace cella::tune {

/// Memory for one shape, and the kernels that work on it.
class candidates {
 public:
  explicit candidates(const convolution_shape& shape);
  ~candidates();

  /// Computes one pass once, as a step of training does: filters are packed each time.
  void run(convolution_algorithm a, convolution_pass p);

 private:
  struct memory;
  std::unique_ptr<memory> memory_;
};

/// The fastest of many runs, in nanoseconds.
double measured_nanoseconds(candidates& c, convolution_algorithm a, convolution_pass p,
                            double seconds);

}  // namespace cella::tune
