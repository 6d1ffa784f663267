// Sentences that the compiler prints: as template arguments, since the message of a static_assert
// cannot be computed.
#pragma once

#include <cella/graph/text.hpp>
#include <cstddef>
#include <string_view>
#include <utility>

namespace cella {

/// Part of a sentence as a template argument, so that the compiler prints it.
template <std::size_t Size>
struct words {
  char characters[Size]{};
};
/// A whole sentence.
template <words... Part>
struct joined_words {};

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

template <const text& Text, std::size_t I>
consteval auto words_of() {
  constexpr std::string_view s = piece(Text.view(), I);
  words<s.size() + 1> w;
  // The final zero is written as well: where it is only implied, clang prints numbers.
  for (std::size_t i = 0; i <= s.size(); ++i) w.characters[i] = i < s.size() ? s[i] : '\0';
  return w;
}
template <const text& Text, std::size_t... I>
joined_words<words_of<Text, I>()...> join_words(std::index_sequence<I...>);

/// The words of a constant: `joined_words<>` if it is empty.
template <const text& Text>
using sentence_of =
    decltype(join_words<Text>(std::make_index_sequence<count_pieces(Text.view())>{}));

}  // namespace detail

}  // namespace cella
