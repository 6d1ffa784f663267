// A workload whose graph is traced and planned by the process that runs it: for nets that would
// keep the compiler busy for minutes.
#pragma once

#include <cella/transform/trace.hpp>
#include <memory>

#include "planned_step.hpp"
#include "workload.hpp"

namespace cella::benchmark {

/// Steps of a cell that owns `net`, or is it, on arguments of these types; integers are below
/// `classes`, those of the first argument below `words`.
template <class Net>
measurement measure_planned(Net& net, const graph& traced, int threads, clock::time_point start,
                            int classes, int words) {
  parameter_store store(net, 1);
  const std::vector<aligned_buffer> arguments =
      random_arguments(argument_types_of(traced), classes, words);
  const std::unique_ptr<thread_pool> pool(threads > 1 ? new thread_pool(threads) : nullptr);
  planned_step step(traced, dtype::f32, store, arguments, scalars_of(traced), pool.get());
  measurement m = measure_steps(start, [&] { step(); });
  m.operations = step.operations();
  return m;
}

/// Training steps `Step`, of which the compiler makes no graph either.
template <class Step, int Classes, class... Arguments>
constexpr workload make_planned_training(std::string_view name) {
  const auto measure = [](int threads, clock::time_point start) {
    Step step{};
    const graph traced = trace(step, std::array{Arguments::type...}, {true, dtype::f32});
    return measure_planned(step.wrapped(), traced, threads, start, Classes, Classes);
  };
  workload w{.name = name, .memory = {}, .measure = measure};
  w.measure_at_run_time = measure;
  return w;
}

}  // namespace cella::benchmark
