// A plan as a straight line of kernel calls.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/lower.hpp>
#include <cella/plan/memory.hpp>

namespace cella::cpu {

/// Shares `units` units out among all threads: run(units, scratch), each with `scratch_bytes` of
/// the scratch.
template <class Run>
void share_units(int units, thread_pool* threads, std::byte* scratch, std::int64_t scratch_bytes,
                 Run run) {
  if (units == 0) return;  // of a tensor without elements
  if (!threads || units == 1) return run({0, units}, scratch);
  // No kernel is called without units: what it computes may end before they would begin.
  const int parts = std::min(threads->size(), units);
  threads->run(parts, [&](work_range part) {
    for (int i = part.first; i < part.last; ++i)
      run(part_of(units, parts, i), scratch + i * scratch_bytes);
  });
}
/// Runs a call with all threads.
inline void run_call(const kernel_call& call, const memory& m, std::byte* scratch,
                     std::int64_t scratch_bytes) {
  share_units(call.units, m.context->threads, scratch, scratch_bytes,
              [&](work_range units, std::byte* own) { call.run(m, units, own); });
}

/// The calls of program P as constant tables: `preparation` is what depends on parameters only, or
/// on nothing, `steps` everything else; one entry per kernel call.
template <class P>
class kernel_calls {
  /// The phases of step I that belong to the table: the first one prepares, if one does.
  template <bool Prepare, int I>
  static constexpr work_range phases() {
    using step = lowered<P, I>;
    if (step::s.carried) return {};
    const int first = step::s.constant ? step::phases() : step::prepares() ? 1 : 0;
    return Prepare ? work_range{0, first} : work_range{first, step::phases()};
  }
  template <bool Prepare, int I, std::size_t N>
  static constexpr void add([[maybe_unused]] std::array<kernel_call, N>& t,
                            [[maybe_unused]] std::size_t& n) {
    using step = lowered<P, I>;
    constexpr work_range range = phases<Prepare, I>();
    [&]<int... K>(std::integer_sequence<int, K...>) {
      ((t[n++] = {&step::template run<range.first + K>, step::units(range.first + K), I,
                  step::scratch_bytes()}),
       ...);
    }
    (std::make_integer_sequence<int, range.size()>{});
  }
  template <bool Prepare, std::size_t... I>
  static constexpr auto make(std::index_sequence<I...>) {
    constexpr std::size_t count =
        (std::size_t(0) + ... + std::size_t(phases<Prepare, int(I)>().size()));
    std::array<kernel_call, count> t{};
    std::size_t n = 0;
    (add<Prepare, int(I)>(t, n), ...);
    return t;
  }
  using every_step = std::make_index_sequence<std::size_t(P::plan.step_count)>;

 public:
  static constexpr auto steps = make<false>(every_step{});
  static constexpr auto preparation = make<true>(every_step{});

  /// Scratch that suffices for each call.
  static constexpr std::int64_t scratch_bytes() {
    std::int64_t most = 0;
    for (const kernel_call& call : steps) most = std::max(most, align_up(call.scratch));
    return most;
  }
};

}  // namespace cella::cpu
