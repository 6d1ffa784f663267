// How a fault of a model becomes a compile error: one error, whose sentence is the model's own.
#pragma once

#include <cella/graph/freeze.hpp>
#include <utility>

namespace cella {

/// Part of a sentence as a template argument, so that the compiler prints it.
template <std::size_t Size>
struct words {
  char characters[Size]{};
};

/// A model that has no program, because of what the words say.
template <words... Why>
struct wrong_model {};

/// Instantiating this is the error: `no type named 'program' in 'wrong_model<words<56>{"net.cpp:21:
/// matmul: inner dimensions differ: ..."}>'`. The words stand here and there so that they are seen
/// in the first line (g++) as well as in the line of the error.
template <words... Why>
struct model_fault {
  using type = typename wrong_model<Why...>::program;
};
template <>
struct model_fault<> {};

namespace detail {

// g++ prints a character array whole. clang prints some thirty characters of one, so there a
// sentence comes in pieces, which end where a word ends.
#if defined(__clang__)
inline constexpr std::size_t piece_size = 30;
#else
inline constexpr std::size_t piece_size = text::capacity;
#endif

/// Where the piece that begins at `first` ends.
constexpr std::size_t end_of_piece(std::string_view sentence, std::size_t first) {
  if (sentence.size() - first <= piece_size) return sentence.size();
  for (std::size_t end = first + piece_size; end > first; --end) {
    if (sentence[end] == ' ') return end;
  }
  return first + piece_size;
}
constexpr std::string_view piece(std::string_view sentence, std::size_t index) {
  std::size_t first = 0;
  for (; index > 0; --index) first = end_of_piece(sentence, first);
  return sentence.substr(first, end_of_piece(sentence, first) - first);
}
constexpr std::size_t count_pieces(std::string_view sentence) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < sentence.size(); at = end_of_piece(sentence, at)) ++count;
  return count;
}

template <class Make, std::size_t I>
consteval auto words_of() {
  constexpr std::string_view s = piece(freeze_fault<Make>.view(), I);
  words<s.size() + 1> w;
  // The final zero is written as well: where it is only implied, clang prints numbers.
  for (std::size_t i = 0; i <= s.size(); ++i) w.characters[i] = i < s.size() ? s[i] : '\0';
  return w;
}
template <class Make, std::size_t... I>
model_fault<words_of<Make, I>()...> fault_of(std::index_sequence<I...>);

}  // namespace detail

/// A base of what needs the graph of `Make`: an error if there was a fault, else empty.
template <graph_maker Make>
using report_fault = decltype(detail::fault_of<Make>(
    std::make_index_sequence<detail::count_pieces(freeze_fault<Make>.view())>{}));

}  // namespace cella
