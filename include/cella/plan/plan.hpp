// What a program does, step by step, as one plain structure of compile-time constants: made by the
// planner, read by the back end, printed by `explain`.
#pragma once

#include <array>
#include <cella/graph/list.hpp>
#include <cella/graph/span.hpp>
#include <cella/plan/step.hpp>
#include <cstdint>

namespace cella {

/// The memory that a plan asks for.
struct plan_bytes {
  std::int64_t arena_bytes{};
  std::int64_t arena_bytes_without_reuse{};
  std::int64_t live_bytes{};  ///< the largest set of values alive at once: no arena can be smaller
  std::int64_t parameter_bytes{};
  std::int64_t slot_bytes{};
};

/// A whole plan, of exactly as many steps, results and links as the program has.
template <int Steps, int Results, int Links>
struct basic_plan : plan_bytes {
  std::array<plan_step, std::size_t(Steps)> steps{};
  std::array<plan_value, std::size_t(Results)> results{};
  std::array<buffer_ref, std::size_t(Links)> links{};
  static constexpr int step_count = Steps;
  static constexpr int result_count = Results;
};

/// The plan of a program as it holds it. This type is the same for all programs, so that a plan is
/// made where it is read, and not with the type of its program.
struct plan_view : plan_bytes {
  span<const plan_step> steps;
  span<const plan_value> results;
  span<const buffer_ref> links;
  int step_count{}, result_count{};

  constexpr plan_view() = default;
  template <int Steps, int Results, int Links>
  constexpr plan_view(const basic_plan<Steps, Results, Links>& p)
      : plan_bytes(p),
        steps(p.steps),
        results(p.results),
        links(p.links),
        step_count(Steps),
        result_count(Results) {}
};

/// A plan while it is made, or of a graph that exists at run time only.
struct growing_plan : plan_bytes {
  list<plan_step> steps;
  list<plan_value> results;
  list<buffer_ref> links;
};

}  // namespace cella
