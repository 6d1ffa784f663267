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
    constexpr auto bytes = [of_region]<int K>() {
      constexpr region_use use = use_of_region(n, K);
      return of_region.template operator()<n.regions[K], use.carries, use.first_constant>();
    };
    constexpr std::int64_t first = bytes.template operator()<0>();
    constexpr std::int64_t second = bytes.template operator()<1>();
    return is<while_op>(n) ? first + second : std::max(first, second);
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
