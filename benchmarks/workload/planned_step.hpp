// A step that is planned at run time, with its inputs bound.
#pragma once

#include <cella/runtime/loaded_program.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/slots.hpp>
#include <vector>

namespace cella::benchmark {

/// Puts a traced graph through the passes and plans it. Parameters are found in `store` by name.
class planned_step {
 public:
  planned_step(graph traced, dtype element, const parameter_store& store,
               const std::vector<aligned_buffer>& arguments, const std::vector<double>& scalars,
               thread_pool* threads);
  void operator()() { run_(); }

 private:
  graph graph_;
  slot_store slots_;
  aligned_buffer scalars_;
  loaded_program run_;
};

}  // namespace cella::benchmark
