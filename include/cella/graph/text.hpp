// Sentences of bounded length that can be composed in constant evaluation and at run time alike.
#pragma once

#include <array>
#include <cella/graph/once.hpp>
#include <cella/graph/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>
#include <string_view>

namespace cella {

/// A string of at most 511 characters; what does not fit is dropped. Being a literal type without
/// heap, it can leave a constant expression and become part of a compile error.
class text {
 public:
  static constexpr std::size_t capacity = 511;

  constexpr text() = default;
  constexpr text(std::string_view s) { *this << s; }

  constexpr std::string_view view() const { return {characters_.data(), size_}; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }

  constexpr text& operator<<(std::string_view s) {
    for (char c : s) {
      if (size_ < capacity) characters_[size_++] = c;
    }
    return *this;
  }
  constexpr text& operator<<(const char* s) { return *this << std::string_view(s); }
  constexpr text& operator<<(const text& t) { return *this << t.view(); }
  CELLA_ONCE constexpr text& operator<<(std::int64_t value) {
    char digits[20]{};
    int n = 0;
    const bool negative = value < 0;
    auto rest = negative ? std::uint64_t{0} - std::uint64_t(value) : std::uint64_t(value);
    do {
      digits[n++] = char('0' + rest % 10);
      rest /= 10;
    } while (rest);
    if (negative) *this << "-";
    while (n) *this << std::string_view(&digits[--n], 1);
    return *this;
  }
  constexpr text& operator<<(int value) { return *this << std::int64_t{value}; }
  constexpr text& operator<<(std::size_t value) { return *this << std::int64_t(value); }
  /// Six digits: `-0.9`, `1e-8`.
  CELLA_ONCE constexpr text& operator<<(double value) {
    if (value != value) return *this << "nan";
    if (value < 0) *this << "-", value = -value;
    if (value > std::numeric_limits<double>::max()) return *this << "inf";
    int exponent = 0;
    while (value >= 10) value /= 10, ++exponent;
    while (value != 0 && value < 1) value *= 10, --exponent;
    auto digits = std::int64_t(value * 1e5 + 0.5);  // d.ddddd times 10^5
    if (digits >= 1000000) digits /= 10, ++exponent;
    const bool scientific = exponent < -4 || exponent > 5;
    int behind = 5 - (scientific ? 0 : exponent);  // digits behind the point
    while (behind > 0 && digits % 10 == 0) digits /= 10, --behind;
    std::int64_t unit = 1;
    for (int i = 0; i < behind; ++i) unit *= 10;
    *this << digits / unit;
    if (behind > 0) *this << ".";
    for (std::int64_t rest = digits % unit; unit > 1; rest %= unit) *this << rest / (unit /= 10);
    if (scientific) *this << (exponent < 0 ? "e-" : "e+") << (exponent < 0 ? -exponent : exponent);
    return *this;
  }
  constexpr text& operator<<(dtype t) { return *this << name(t); }
  /// `[32,400]`; a scalar is `[]`.
  CELLA_ONCE constexpr text& operator<<(const shape& s) {
    *this << "[";
    for (int i = 0; i < s.rank; ++i) {
      if (i) *this << ",";
      *this << s[i];
    }
    return *this << "]";
  }
  /// `f32[32,400]`
  CELLA_ONCE constexpr text& operator<<(const tensor_type& t) {
    return *this << t.element << t.shape;
  }
  /// `lenet.cpp:21`
  CELLA_ONCE constexpr text& operator<<(const std::source_location& at) {
    const std::string_view file = at.file_name();
    return *this << file.substr(file.rfind('/') + 1) << ":" << std::int64_t{at.line()};
  }

 private:
  std::array<char, capacity + 1> characters_{};
  std::size_t size_{};
};

namespace detail {
/// The first words of a sentence about a place, if it is known.
constexpr text begun_at(std::source_location at) {
  text begun;
  if (at.line() > 0) begun << at << ": ";
  return begun;
}
}  // namespace detail

}  // namespace cella
