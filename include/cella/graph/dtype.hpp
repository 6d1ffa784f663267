// Element types: their names, sizes and C++ types.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cella {

/// Element type of a tensor. `record` is an element that holds a list of tensors (what a loop of
/// unknown length stores for its backward pass); `tuple` is the type of a node with several
/// results.
enum class dtype : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, i64, boolean, record, tuple };
inline constexpr int dtype_count = 11;

/// IEEE 754 binary16, storage only: convert to float to compute.
struct float16 {
  std::uint16_t bits{};
  constexpr float16() = default;
  constexpr explicit float16(float value);
  constexpr operator float() const;
  friend constexpr bool operator==(float16, float16) = default;
};

/// bfloat16 (the upper half of a binary32), storage only: convert to float to compute.
struct bfloat16 {
  std::uint16_t bits{};
  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) {
    const auto b = std::bit_cast<std::uint32_t>(value);
    const bool nan = (b & 0x7fffffffu) > 0x7f800000u;
    bits =
        static_cast<std::uint16_t>(nan ? (b >> 16) | 0x40u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16);
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  friend constexpr bool operator==(bfloat16, bfloat16) = default;
};

/// Lower-case name, as printed in graphs and messages: `f32`, `bool`.
constexpr std::string_view name(dtype t) {
  constexpr std::array<std::string_view, 11> names{"f32", "f64", "f16",  "bf16",   "i8",   "u8",
                                                   "i32", "i64", "bool", "record", "tuple"};
  return names[static_cast<std::size_t>(t)];
}

/// Bytes per element; 0 for `record` and `tuple`, which have no flat storage.
constexpr std::size_t size_of(dtype t) {
  constexpr std::array<std::size_t, 11> sizes{4, 8, 2, 2, 1, 1, 4, 8, 1, 0, 0};
  return sizes[static_cast<std::size_t>(t)];
}

constexpr bool is_floating(dtype t) { return t <= dtype::bf16; }

/// Types of 16 bits, which memory holds and registers do not: their values are computed in f32, and
/// each result is rounded.
constexpr bool is_storage_only(dtype t) { return t == dtype::f16 || t == dtype::bf16; }

/// Whether derivatives flow through values of this type.
constexpr bool is_differentiable(dtype t) { return is_floating(t) || t == dtype::record; }

namespace detail {
template <class T>
struct dtype_of_type;
template <dtype T>
struct type_of_dtype;
// One line per pair keeps both directions in step.
template <class T, dtype D>
struct dtype_pair {
  static constexpr dtype value = D;
  using type = T;
};
template <>
struct dtype_of_type<float> : dtype_pair<float, dtype::f32> {};
template <>
struct dtype_of_type<double> : dtype_pair<double, dtype::f64> {};
template <>
struct dtype_of_type<float16> : dtype_pair<float16, dtype::f16> {};
template <>
struct dtype_of_type<bfloat16> : dtype_pair<bfloat16, dtype::bf16> {};
template <>
struct dtype_of_type<std::int8_t> : dtype_pair<std::int8_t, dtype::i8> {};
template <>
struct dtype_of_type<std::uint8_t> : dtype_pair<std::uint8_t, dtype::u8> {};
template <>
struct dtype_of_type<std::int32_t> : dtype_pair<std::int32_t, dtype::i32> {};
template <>
struct dtype_of_type<std::int64_t> : dtype_pair<std::int64_t, dtype::i64> {};
template <>
struct dtype_of_type<bool> : dtype_pair<bool, dtype::boolean> {};
template <>
struct type_of_dtype<dtype::f32> : dtype_of_type<float> {};
template <>
struct type_of_dtype<dtype::f64> : dtype_of_type<double> {};
template <>
struct type_of_dtype<dtype::f16> : dtype_of_type<float16> {};
template <>
struct type_of_dtype<dtype::bf16> : dtype_of_type<bfloat16> {};
template <>
struct type_of_dtype<dtype::i8> : dtype_of_type<std::int8_t> {};
template <>
struct type_of_dtype<dtype::u8> : dtype_of_type<std::uint8_t> {};
template <>
struct type_of_dtype<dtype::i32> : dtype_of_type<std::int32_t> {};
template <>
struct type_of_dtype<dtype::i64> : dtype_of_type<std::int64_t> {};
template <>
struct type_of_dtype<dtype::boolean> : dtype_of_type<bool> {};
}  // namespace detail

/// The dtype of a C++ element type, and back.
template <class T>
inline constexpr dtype dtype_of = detail::dtype_of_type<T>::value;
template <dtype D>
using element = typename detail::type_of_dtype<D>::type;

/// Calls `f.template operator()<T>()` with the C++ element type of `t`.
/// Precondition: `t` has flat storage (neither `record` nor `tuple`).
template <class F>
constexpr decltype(auto) with_element(dtype t, F&& f) {
  switch (t) {
    case dtype::f64:
      return f.template operator()<double>();
    case dtype::f16:
      return f.template operator()<float16>();
    case dtype::bf16:
      return f.template operator()<bfloat16>();
    case dtype::i8:
      return f.template operator()<std::int8_t>();
    case dtype::u8:
      return f.template operator()<std::uint8_t>();
    case dtype::i32:
      return f.template operator()<std::int32_t>();
    case dtype::i64:
      return f.template operator()<std::int64_t>();
    case dtype::boolean:
      return f.template operator()<bool>();
    default:
      return f.template operator()<float>();
  }
}

constexpr float16::float16(float value) {
  const auto b = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(b >> 16 & 0x8000u);
  const std::uint32_t magnitude = b & 0x7fffffffu;
  std::uint32_t h{};
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u;  // NaN stays NaN
  } else if (magnitude >= 0x47800000u) {
    h = 0x7c00u;  // 65536 and above
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal: shift the significand, ties to even.
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent >= 102) {
      const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
      const std::uint32_t shift = 126 - exponent;
      const std::uint32_t half = 1u << (shift - 1);
      h = significand >> shift;
      const std::uint32_t rest = significand & ((1u << shift) - 1);
      h += static_cast<std::uint32_t>(rest > half || (rest == half && (h & 1u)));
    }
  } else {
    const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u);
    h = rounded >> 13;  // may carry into infinity, which is right
  }
  bits = static_cast<std::uint16_t>(sign | h);
}

constexpr float16::operator float() const {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace cella
