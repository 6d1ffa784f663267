// Element types: one table says what each of them is.
#pragma once

#include <array>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cella {

/// What kind of numbers an element type holds; `none` has no flat storage.
enum class number_kind : std::uint8_t {
  none,
  floating,
  signed_integer,
  unsigned_integer,
  boolean,
  complex
};

// The element types, a line each: the enumerator and name in the library, the C++ type, the kind of
// number, the type's code in .npy files (bfloat16, which NumPy lacks, is what ml_dtypes stores) and
// its name in safetensors files, with its place in the enumeration of that format's reference
// implementation, by which writers order tensors. f32 comes first: it is the default.
// clang-format off
#define CELLA_ELEMENT_TYPES(TYPE)                                                   \
  TYPE(f32,     "f32",  float,                floating,         "<f4",  "F32",  15) \
  TYPE(f64,     "f64",  double,               floating,         "<f8",  "F64",  17) \
  TYPE(f16,     "f16",  float16,              floating,         "<f2",  "F16",  11) \
  TYPE(bf16,    "bf16", bfloat16,             floating,         "<V2",  "BF16", 12) \
  TYPE(i8,      "i8",   std::int8_t,          signed_integer,   "|i1",  "I8",   5)  \
  TYPE(i16,     "i16",  std::int16_t,         signed_integer,   "<i2",  "I16",  9)  \
  TYPE(i32,     "i32",  std::int32_t,         signed_integer,   "<i4",  "I32",  13) \
  TYPE(i64,     "i64",  std::int64_t,         signed_integer,   "<i8",  "I64",  18) \
  TYPE(u8,      "u8",   std::uint8_t,         unsigned_integer, "|u1",  "U8",   4)  \
  TYPE(u16,     "u16",  std::uint16_t,        unsigned_integer, "<u2",  "U16",  10) \
  TYPE(u32,     "u32",  std::uint32_t,        unsigned_integer, "<u4",  "U32",  14) \
  TYPE(u64,     "u64",  std::uint64_t,        unsigned_integer, "<u8",  "U64",  19) \
  TYPE(boolean, "bool", bool,                 boolean,          "|b1",  "BOOL", 0)  \
  TYPE(c64,     "c64",  std::complex<float>,  complex,          "<c8",  "C64",  16) \
  TYPE(c128,    "c128", std::complex<double>, complex,          "<c16", "",     0)

/// Element type of a tensor. `c64` and `c128` are complex numbers of two f32 or f64. `record` is an
/// element that holds a list of tensors (what a loop of unknown length stores for its backward
/// pass); `tuple` is the type of a node with several results.
enum class dtype : std::uint8_t {
#define CELLA_TYPE(enumerator, ...) enumerator,
  CELLA_ELEMENT_TYPES(CELLA_TYPE)
#undef CELLA_TYPE
  record, tuple
};
// clang-format on
inline constexpr int dtype_count = int(dtype::tuple) + 1;

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

/// What the table says of an element type.
struct dtype_facts {
  std::string_view name;
  std::size_t size{};  ///< bytes of an element; 0 for `record` and `tuple`
  number_kind kind{};
  std::string_view npy{}, safetensors{};  ///< what files call it; empty: they have no such type
  int safetensors_rank{};
};
// clang-format off
inline constexpr dtype_facts dtype_table[dtype_count]{  // std::array would cost two calls more
#define CELLA_TYPE(enumerator, name, type, kind, npy, safetensors, rank) \
  {name, sizeof(type), number_kind::kind, npy, safetensors, rank},
  CELLA_ELEMENT_TYPES(CELLA_TYPE)
#undef CELLA_TYPE
  {"record"}, {"tuple"}
};
// clang-format on
constexpr const dtype_facts& facts_of(dtype t) { return dtype_table[static_cast<int>(t)]; }

/// Lower-case name, as printed in graphs and messages: `f32`, `bool`.
constexpr std::string_view name(dtype t) { return facts_of(t).name; }

/// Bytes per element; 0 for `record` and `tuple`, which have no flat storage.
constexpr std::size_t size_of(dtype t) { return facts_of(t).size; }

constexpr bool is_floating(dtype t) { return facts_of(t).kind == number_kind::floating; }
constexpr bool is_unsigned(dtype t) { return facts_of(t).kind == number_kind::unsigned_integer; }
/// Of either sign; truth values are no integers.
constexpr bool is_integer(dtype t) {
  return facts_of(t).kind == number_kind::signed_integer || is_unsigned(t);
}
constexpr bool is_complex(dtype t) { return facts_of(t).kind == number_kind::complex; }
/// The complex type of a floating-point type, and the type of a complex number's parts.
/// Preconditions: f32 or f64; is_complex(t).
constexpr dtype complex_of(dtype t) { return t == dtype::f64 ? dtype::c128 : dtype::c64; }
constexpr dtype real_of(dtype t) { return t == dtype::c128 ? dtype::f64 : dtype::f32; }

/// Types of 16 bits, which memory holds and registers do not: their values are computed in f32, and
/// each result is rounded.
constexpr bool is_storage_only(dtype t) { return is_floating(t) && size_of(t) < sizeof(float); }

/// Whether derivatives flow through values of this type.
constexpr bool is_differentiable(dtype t) {
  return is_floating(t) || is_complex(t) || t == dtype::record;
}

/// The least and the first too large number of an integer type; both are exact as doubles.
/// Precondition: is_integer(t).
constexpr double least_integer(dtype t) {
  return is_unsigned(t) ? 0 : -double(std::uint64_t{1} << (8 * size_of(t) - 1));
}
constexpr double beyond_integers(dtype t) {
  return 2 * double(std::uint64_t{1} << (8 * size_of(t) - (is_unsigned(t) ? 1 : 2)));
}

namespace detail {
template <class T>
struct dtype_of_type;
template <dtype T>
struct type_of_dtype;
#define CELLA_TYPE(enumerator, name, cpp_type, ...)   \
  template <>                                         \
  struct dtype_of_type<cpp_type> {                    \
    static constexpr dtype value = dtype::enumerator; \
  };                                                  \
  template <>                                         \
  struct type_of_dtype<dtype::enumerator> {           \
    using type = cpp_type;                            \
  };
CELLA_ELEMENT_TYPES(CELLA_TYPE)
#undef CELLA_TYPE
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
#define CELLA_TYPE(enumerator, name, type, ...) \
  case dtype::enumerator:                       \
    return f.template operator()<type>();
    CELLA_ELEMENT_TYPES(CELLA_TYPE)
#undef CELLA_TYPE
    default:
      return f.template operator()<float>();
  }
}
#undef CELLA_ELEMENT_TYPES

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
