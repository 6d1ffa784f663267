// Whether the compiler can make the graph of a cell: asked before it tries, and answered in one
// sentence.
#pragma once

#include <cella/graph/cell_check.hpp>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace cella {

namespace detail {
#if defined(__clang__)
/// clang says itself, in the line of the model, that a call operator is not constexpr.
template <class F, class... A>
inline constexpr bool is_constexpr_call = true;
template <auto F, class... A>
inline constexpr bool is_constexpr_function = true;
#else
/// Whether F is declared constexpr where it takes these. g++ asks that of one branch of an `if`, or
/// else the lambda is not constexpr; a label never is, but it may be run.
template <class F, class... A>
inline constexpr bool is_constexpr_call = requires {
  typename std::bool_constant<(
      [](bool really, F* f, auto*... a) {
        if (really) {
          static_cast<void>((*f)(*a...));
        } else {
          [[maybe_unused]] never:;
        }
      }(false, static_cast<F*>(nullptr), static_cast<A*>(nullptr)...),
      true)>;
};
/// The same of a pointer to a function: through an argument it does not tell.
template <auto F, class... A>
inline constexpr bool is_constexpr_function = requires {
  typename std::bool_constant<(
      [](bool really, auto*... a) {
        if (really) {
          static_cast<void>((*F)(*a...));
        } else {
          [[maybe_unused]] never:;
        }
      }(false, static_cast<A*>(nullptr)...),
      true)>;
};
#endif
template <class F, class... A>
constexpr text constexpr_fault() {
  text fault;
  if (!is_constexpr_call<F, A...>)
    fault << type_name<F>()
          << ": its call operator is not constexpr, so that the compiler cannot trace it; write "
             "constexpr in front of it";
  return fault;
}
}  // namespace detail

/// Why the compiler makes no graph of a cell on `Count` tensors: what keeps it from being traced at
/// all, or only from being traced by the compiler. A cell that is made of others says the latter by
/// a function `constexpr_fault()`.
template <class Cell, std::size_t Count>
constexpr text find_compiled_cell_fault() {
  if constexpr (!cell_fault<Cell, Count>.empty()) {
    return cell_fault<Cell, Count>;
  } else if constexpr (requires { Cell::constexpr_fault(); }) {
    return Cell::constexpr_fault();
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return detail::constexpr_fault<Cell, std::remove_reference_t<detail::var_argument<I>>...>();
    }
    (std::make_index_sequence<Count>{});
  }
}
template <class Cell, std::size_t Count>
inline constexpr text compiled_cell_fault = find_compiled_cell_fault<Cell, Count>();

}  // namespace cella
