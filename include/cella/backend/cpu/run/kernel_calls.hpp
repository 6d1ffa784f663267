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
  const memory of_step = m.with(call.places);
  share_units(call.units, m.context->threads, scratch, scratch_bytes,
              [&](work_range units, std::byte* own) { call.run(of_step, units, own); });
}

/// The calls of program P as constant tables: `preparation` is what depends on parameters only, or
/// on nothing, `steps` everything else; one entry per kernel call.
template <class P>
class kernel_calls {
  static constexpr int step_count = P::plan.step_count;
  static constexpr auto& codes = step_codes<P>;

  /// The first step of each code.
  static constexpr auto first = [] {
    std::array<int, std::size_t(codes.codes)> all{};
    for (int i = 0; i < step_count; ++i) {
      if (codes[i].of == i) all[std::size_t(codes[i].number)] = i;
    }
    return all;
  }();

  /// The calls of one code: the first so many prepare.
  template <int Phases>
  struct calls_of_code {
    std::array<kernel_call, std::size_t(Phases)> phases{};
    int count{};
    int preparing{};
  };
  template <int I, int Phases>
  static constexpr calls_of_code<Phases> calls_of() {
    using code = lowered<P, I>;
    calls_of_code<Phases> c;
    if constexpr (!code::s.carried) {
      c.count = code::phases();
      c.preparing = code::s.constant ? c.count : code::prepares() ? 1 : 0;
      [&]<int... K>(std::integer_sequence<int, K...>) {
        ((c.phases[std::size_t(K)] = {&code::template run<K>, nullptr, code::units(K), I,
                                      code::scratch_bytes()}),
         ...);
      }
      (std::make_integer_sequence<int, code::phases()>{});
    }
    return c;
  }
  static constexpr auto calls = []<std::size_t... C>(std::index_sequence<C...>) {
    constexpr int most = std::max({1, lowered<P, first[C]>::phases()...});
    return std::array<calls_of_code<most>, first.size()>{calls_of<first[C], most>()...};
  }
  (std::make_index_sequence<first.size()>{});

  /// Calls f(call) for each call of one of the tables.
  template <bool Prepare, class F>
  static constexpr void for_each_call(F f) {
    for (int i = 0; i < step_count; ++i) {
      const auto& c = calls[std::size_t(codes[i].number)];
      for (int k = Prepare ? 0 : c.preparing; k < (Prepare ? c.preparing : c.count); ++k) {
        kernel_call call = c.phases[std::size_t(k)];
        call.step = i;
        if (codes[i].shared) call.places = &shared_places<P>[std::size_t(codes[i].first_place)];
        f(call);
      }
    }
  }
  template <bool Prepare>
  static constexpr auto table() {
    constexpr std::size_t count = [] {
      std::size_t n = 0;
      for_each_call<Prepare>([&](const kernel_call&) { ++n; });
      return n;
    }();
    std::array<kernel_call, count> all{};
    std::size_t n = 0;
    for_each_call<Prepare>([&](const kernel_call& call) { all[n++] = call; });
    return all;
  }

 public:
  static constexpr auto steps = table<false>();
  static constexpr auto preparation = table<true>();

  /// Scratch that suffices for each call.
  static constexpr std::int64_t scratch_bytes() {
    std::int64_t most = 0;
    for (const kernel_call& call : steps) most = std::max(most, align_up(call.scratch));
    return most;
  }
};

}  // namespace cella::cpu
