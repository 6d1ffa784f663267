// How a fault of a model becomes a compile error: one error, whose sentence is the model's own.
// Where a model or an executable is made, or compile() is called, a deleted function is used; where
// a plan is read, it has no such member. So the error is in the user's line, and nothing follows
// from it.
#pragma once

#include <cella/graph/cell_check.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/graph/words.hpp>
#include <type_traits>

namespace cella {

/// The fault of a model as a type, which the compiler prints: `use of deleted function ... [with
/// Why = wrong_model<words<56>{"net.cpp:21: matmul: inner dimensions differ: ..."}>]`.
template <words... Why>
struct wrong_model {};
/// False if there is no fault, or if the compiler could not run the model: see `say_where_it_stops`.
template <class Fault>
concept has_words = !std::is_same_v<Fault, wrong_model<>>;

namespace detail {
template <class Sentence>
struct as_fault;
template <words... Why>
struct as_fault<joined_words<Why...>> {
  using type = wrong_model<Why...>;
};
template <const text& Text>
using fault_of = typename as_fault<sentence_of<Text>>::type;
}  // namespace detail

/// Why a cell cannot be traced on `Count` tensors; `wrong_model<>` if it can.
template <class Cell, std::size_t Count>
using cell_fault_of = detail::fault_of<cell_fault<Cell, Count>>;
/// Why `Make` made no graph; `wrong_model<>` if it did.
template <graph_maker Make>
using graph_fault_of = detail::fault_of<freeze_fault<Make>>;

}  // namespace cella
