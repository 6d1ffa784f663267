// The options of a node: any small plain struct, stored as words so that every node has one type.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace cella {

/// What an operation's struct calls `attributes`: a trivially copyable struct without padding.
template <class T>
concept attribute_struct = std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0 && sizeof(T) <= 88;

/// Holds one attribute struct of at most 88 bytes. Unused words are zero, so that two nodes with
/// the same options compare equal.
class attributes {
 public:
  constexpr attributes() = default;
  template <attribute_struct T>
  constexpr attributes(const T& options) {
    const auto words = std::bit_cast<std::array<std::int32_t, sizeof(T) / 4>>(options);
    std::copy(words.begin(), words.end(), words_.begin());
  }

  template <attribute_struct T>
  constexpr T as() const {
    std::array<std::int32_t, sizeof(T) / 4> words{};
    std::copy_n(words_.begin(), words.size(), words.begin());
    return std::bit_cast<T>(words);
  }

  friend constexpr bool operator==(const attributes&, const attributes&) = default;

 private:
  std::array<std::int32_t, 22> words_{};
};

}  // namespace cella
