// How a fault of a model becomes a compile error: one error, whose sentence is the model's own.
#pragma once

#include <cella/graph/cell_check.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/graph/words.hpp>

namespace cella {

/// A model that has no program, because of what the words say.
template <words... Why>
struct wrong_model {};

/// Instantiating this is the error: `no type named 'program' in 'wrong_model<words<56>{"net.cpp:21:
/// matmul: inner dimensions differ: ..."}>'`. The words stand here and there so that they are seen
/// in the first line (g++) as well as in the line of the error.
template <class Sentence>
struct model_fault;
template <words... Why>
struct model_fault<joined_words<Why...>> {
  using type = typename wrong_model<Why...>::program;
};
template <>
struct model_fault<joined_words<>> {};

/// A base of what needs the graph of `Make`: an error if there was a fault, else empty.
template <graph_maker Make>
using report_fault = model_fault<detail::sentence_of<freeze_fault<Make>>>;

/// The same for a cell that cannot be traced on `Count` tensors.
template <class Cell, std::size_t Count>
using report_cell_fault = model_fault<detail::sentence_of<cell_fault<Cell, Count>>>;

}  // namespace cella
