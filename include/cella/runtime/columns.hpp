// Text in columns, for tables in a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace cella::detail {

inline std::string left(std::string s, std::size_t width) {
  if (s.size() < width) s.append(width - s.size(), ' ');
  return s;
}
inline std::string right(std::string s, std::size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}
/// 1234567 as 1,234,567.
inline std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3 + (n < 0); i -= 3) s.insert(i - 3, ",");
  return s;
}

}  // namespace cella::detail
