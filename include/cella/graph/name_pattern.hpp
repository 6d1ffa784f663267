// Patterns of parameter names.
#pragma once

#include <cstddef>
#include <string_view>

namespace cella {

/// Whether `name` is described by `pattern`, in which `*` stands for any characters.
constexpr bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// A pattern as a template argument: `frozen<"conv*">`.
template <std::size_t Size>
struct name_pattern {
  char characters[Size]{};

  constexpr name_pattern(const char (&s)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) characters[i] = s[i];
  }
  constexpr std::string_view view() const { return {characters, Size - 1}; }
};

}  // namespace cella
