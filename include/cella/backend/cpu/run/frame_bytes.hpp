// How much memory the bodies of control nodes take besides the arena of their program.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/run/control.hpp>

namespace cella::cpu {

template <class P, int... Outer>
consteval std::int64_t frame_bytes();

namespace detail {

template <class P, int I, int... Outer>
consteval std::int64_t frame_bytes_of_step() {
  if constexpr (P::plan.steps[std::size_t(I)].kind != step_kind::control) {
    return 0;
  } else {
    constexpr const auto& n = P::graph.nodes[std::size_t(P::plan.steps[std::size_t(I)].anchor)];
    auto of_region = []<int R, int Carries, int FirstConstant>() -> std::int64_t {
      if constexpr (R < 0) {
        return 0;
      } else if constexpr (((R == Outer) || ...) || runs_in_registers<typename P::root, R>) {
        return 0;
      } else {
        using body = region_program<typename P::root, R, Carries, FirstConstant>;
        return align_up(body::plan.arena_bytes) + frame_bytes<body, R, Outer...>();
      }
    };
    constexpr int none = plan_options::no_constants;
    if constexpr (is<scan_op>(n)) {
      constexpr auto o = n.attributes.template as<scan_options>();
      return of_region.template operator()<n.regions[0], o.carries, o.carries + o.xs>();
    } else if constexpr (is<while_op>(n)) {
      constexpr int carries = n.attributes.template as<while_options>().carries;
      return of_region.template operator()<n.regions[0], 0, carries>() +
             of_region.template operator()<n.regions[1], carries, carries>();
    } else {
      return std::max(of_region.template operator()<n.regions[0], 0, none>(),
                      of_region.template operator()<n.regions[1], 0, none>());
    }
  }
}

}  // namespace detail

/// Bytes of the frames that are alive at once while program P runs: of the bodies of its control
/// nodes, and of the bodies in those. One level of a recursion counts, since only the data know
/// how many there are. `Outer` are the regions round P.
template <class P, int... Outer>
consteval std::int64_t frame_bytes() {
  std::int64_t most = 0;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((most = std::max(most, detail::frame_bytes_of_step<P, I, Outer...>())), ...);
  }
  (std::make_integer_sequence<int, P::plan.step_count>{});
  return most;
}

}  // namespace cella::cpu
