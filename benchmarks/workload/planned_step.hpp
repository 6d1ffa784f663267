// A step that is planned at run time, with its inputs bound.
#pragma once

#include <cella/ops/strided.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/slots.hpp>
#include <random>
#include <vector>

#include "workload.hpp"

namespace cella::benchmark {

inline constexpr double learning_rate = 0.01;

/// Random numbers for arguments of these types; integers are below `classes`, those of the first
/// argument below `words`.
inline std::vector<aligned_buffer> random_arguments(span<const tensor_type> types, int classes,
                                                    int words) {
  std::vector<aligned_buffer> arguments;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const tensor_type& t : types) {
    const unsigned below = unsigned(arguments.empty() ? words : classes);
    arguments.emplace_back(std::size_t(t.bytes()));
    for (std::int64_t i = 0; i < t.size(); ++i)
      write_element({arguments.back().data(), t}, i,
                    is_floating(t.element) ? double{normal(random)} : double(random() % below));
  }
  return arguments;
}
/// The types of a graph's arguments.
std::vector<tensor_type> argument_types_of(const graph& g);
/// The numbers of a step: the learning rate, and for some optimizers the count of steps, which is
/// held at the second.
std::vector<double> scalars_of(const graph& g);

/// Three steps to warm up, then as many as `workload::measure` says.
template <class Step>
measurement measure_steps(clock::time_point start, Step step) {
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

/// Puts a traced graph through the passes and plans it. Parameters are found in `store` by name.
class planned_step {
 public:
  planned_step(graph traced, dtype element, const parameter_store& store,
               const std::vector<aligned_buffer>& arguments, const std::vector<double>& scalars,
               thread_pool* threads);
  void operator()() { run_(); }
  double operations() const;  ///< floating-point, of one step

 private:
  graph graph_;
  slot_store slots_;
  aligned_buffer scalars_;
  loaded_program run_;
};

}  // namespace cella::benchmark
