// How messages quote names that come from files.
#pragma once

#include <algorithm>
#include <cella/graph/once.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace cella::interop {

/// `"text"` for a message: control characters become `?`; what is longer than `limit` bytes is cut.
/// Names in files are as long and as strange as their author likes.
CELLA_ONCE std::string in_quotes(std::string_view s, std::size_t limit = 80) {
  std::size_t end = std::min(s.size(), limit);
  while (end > 0 && end < s.size() && (static_cast<unsigned char>(s[end]) & 0xc0u) == 0x80u) --end;
  std::string out(1, '"');
  out += s.substr(0, end);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  out += end < s.size() ? "...\"" : "\"";
  return out;
}

}  // namespace cella::interop
