// The options of a node: any small plain struct, stored as words so that every node has one type.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cella {

/// All words of a node's options. The largest options are those of a slice: a rank, and an extent,
/// a start and a step for each of eight axes.
using attribute_words = std::array<std::int32_t, 25>;

/// What an operation's struct calls `options`: a trivially copyable struct without padding, of
/// whole words.
template <class T>
concept attribute_struct = std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
                           (sizeof(T) % 4 == 0) &&
                           sizeof(T) <= sizeof(attribute_words);

/// Holds the options of any operation. Unused words are zero, so that two nodes with the same
/// options compare equal.
class attributes {
 public:
  constexpr attributes() = default;
  template <attribute_struct T>
  constexpr attributes(const T& options) {
    const auto from = std::bit_cast<words<sizeof(T) / 4>>(options);
    for (std::size_t i = 0; i < sizeof(T) / 4; ++i) words_.word[i] = from.word[i];
  }

  template <attribute_struct T>
  constexpr T as() const {
    words<sizeof(T) / 4> to;
    for (std::size_t i = 0; i < sizeof(T) / 4; ++i) to.word[i] = words_.word[i];
    return std::bit_cast<T>(to);
  }

  friend constexpr bool operator==(const attributes&, const attributes&) = default;

 private:
  template <std::size_t N>
  struct words {
    std::int32_t word[N]{};
    friend constexpr bool operator==(const words&, const words&) = default;
  };

  words<std::tuple_size_v<attribute_words>> words_;
};

}  // namespace cella
