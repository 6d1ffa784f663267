// What traced_steps.hpp declares.
#pragma once

#include <cella/train/traced_steps.hpp>
#include <utility>
#if !defined(CELLA_KERNELS)
#include <cella/passes/simplify/dce.hpp>
#endif

namespace cella::detail {

#if defined(CELLA_KERNELS)
CELLA_BODY traced_step::traced_step(graph traced, dtype precision, thread_pool* threads)
    : graph_(compiled_once::optimize(std::move(traced))) {
  if (loaded_program::refusal(graph_, precision).empty())
    planned_.emplace(graph_, precision, threads);
}
CELLA_BODY void traced_step::run(runtime_path& on) {
  if (!planned_) return on.run(graph_);
  if (prepared_ != on.version()) planned_->prepare_again();
  prepared_ = on.version();
  on.run(graph_, *planned_);
}
#else
// The passes prepare a graph for a plan. The interpreter gains little by them, and a program that
// interprets would have to compile them all.
CELLA_BODY traced_step::traced_step(graph traced, dtype, thread_pool*)
    : graph_(dce(std::move(traced))) {}
CELLA_BODY void traced_step::run(runtime_path& on) { on.run(graph_); }
#endif

CELLA_BODY traced_steps::traced_steps() = default;
CELLA_BODY traced_steps::traced_steps(traced_steps&&) noexcept = default;
CELLA_BODY traced_steps& traced_steps::operator=(traced_steps&&) noexcept = default;
CELLA_BODY traced_steps::~traced_steps() = default;
CELLA_BODY traced_step& traced_steps::get(std::int64_t rows,
                                          const std::function<void(builder&)>& trace,
                                          trace_options options, thread_pool* threads) {
  return known_.get(rows, [&] {
    builder b;
    b.training = options.training;
    b.precision = options.precision;
    trace(b);
    return traced_step(std::move(b.g), options.precision, threads);
  });
}

}  // namespace cella::detail
