// Elementwise operations on plain tensors of other types than the program computes in: comparisons
// whose truth values are kept, arithmetic of integers, choices, conversions.
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/comparison.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/numbers.hpp>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// The integers that kernels at run time are compiled for.
constexpr bool is_word(dtype t) { return t == dtype::i32 || t == dtype::i64; }

/// y[i] = f(a[i], b[i], c[i]) for so many elements; operands that the function lacks are null.
using typed_values = void (*)(const std::byte* a, const std::byte* b, const std::byte* c,
                              std::int64_t count, std::byte* y);

/// Units: so many elements.
inline constexpr std::int64_t typed_unit = 4096;
constexpr int typed_units(std::int64_t count) { return int((count + typed_unit - 1) / typed_unit); }

/// An operation, the element type of its last operand and that of its result, and whether it is of
/// the size of its first operand, which is a comparison of floating-point numbers then.
struct typed_form {
  const op_info* op{};
  dtype from{}, to{};
  bool of_size{};
};
/// Whether there is such a function.
constexpr bool has_typed_values(const typed_form& f);
/// It. (A template: a program without such a step need not instantiate them all.)
template <std::same_as<typed_form> Form>
constexpr typed_values typed_values_of(const Form& f);

namespace detail {

using typed_comparisons =
    operation_list<equal_op, not_equal_op, less_op, less_equal_op, greater_op, greater_equal_op>;
using typed_truths = operation_list<logical_and_op, logical_or_op, logical_not_op>;
using typed_arithmetic = operation_list<add_op, sub_op, mul_op, neg_op, maximum_op, minimum_op>;

/// f.template operator()<Op>() for that of them which `op` describes; null if none does.
template <class... Ops, class F>
constexpr typed_values typed_values_for(operation_list<Ops...>, const op_info& op, F f) {
  typed_values found = nullptr;
  ((is<Ops>(op) ? void(found = f.template operator()<Ops>()) : void()), ...);
  return found;
}

/// Types that are compared and converted. Truth values are bytes, 0 and 1.
constexpr bool is_typed(dtype t) {
  return is_word(t) || t == dtype::f32 || t == dtype::f64 || t == dtype::boolean;
}
/// Calls f.template operator()<T>() for one of them.
template <class F>
constexpr typed_values with_typed(dtype t, F f) {
  switch (t) {
    case dtype::f32:
      return f.template operator()<float>();
    case dtype::f64:
      return f.template operator()<double>();
    case dtype::i32:
      return f.template operator()<std::int32_t>();
    case dtype::i64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<std::uint8_t>();
  }
}

template <class T>
const T* typed_at(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}

template <class Op, class T, class Y>
void typed_loop(const std::byte* a, const std::byte* b, const std::byte*, std::int64_t count,
                std::byte* to) {
  const T* const x = typed_at<T>(a);
  Y* const y = reinterpret_cast<Y*>(to);
  if constexpr (requires { Op::apply(T{}); }) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<Y>(Op::apply(x[i]));
  } else {
    const T* const other = typed_at<T>(b);
    for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<Y>(Op::apply(x[i], other[i]));
  }
}
template <class Op, class T>
void typed_comparison_of_size(const std::byte* a, const std::byte* b, const std::byte*,
                              std::int64_t count, std::byte* to) {
  const T *const x = typed_at<T>(a), *const other = typed_at<T>(b);
  auto* const y = reinterpret_cast<std::uint8_t*>(to);
  for (std::int64_t i = 0; i < count; ++i) y[i] = Op::apply(std::abs(x[i]), other[i]);
}
template <class T>
void typed_choice(const std::byte* a, const std::byte* b, const std::byte* c, std::int64_t count,
                  std::byte* to) {
  const auto* const condition = typed_at<std::uint8_t>(a);
  const T *const x = typed_at<T>(b), *const other = typed_at<T>(c);
  T* const y = reinterpret_cast<T*>(to);
  std::int64_t i = 0;
#if defined(__AVX2__) && !defined(__AVX512F__)
  // g++ widens the truth values in more steps.
  if constexpr (sizeof(T) == 4) {
    const auto at = [](const T* p) { return _mm256_loadu_ps(reinterpret_cast<const float*>(p)); };
    for (; i + 8 <= count; i += 8) {
      const __m128i truths = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(condition + i));
      const __m256i none = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(truths), _mm256_setzero_si256());
      _mm256_storeu_ps(reinterpret_cast<float*>(y + i),
                       _mm256_blendv_ps(at(x + i), at(other + i), _mm256_castsi256_ps(none)));
    }
  }
#endif
  for (; i < count; ++i) y[i] = condition[i] ? x[i] : other[i];
}
/// As `from_double`, without branches.
template <class T>
[[gnu::always_inline]] inline std::int32_t nearest_word(T x) {
  constexpr T least = std::numeric_limits<std::int32_t>::min(), beyond = -least;
  // The largest that fits; of singles it is less than the largest integer.
  constexpr T largest = sizeof(T) == 4 ? T(2147483520) : T(2147483647);
  T inside = x == x ? x : T(0);
  inside = inside < least ? least : inside;
  inside = inside > largest ? largest : inside;
  const auto y = static_cast<std::int32_t>(inside);
  return x >= beyond ? std::numeric_limits<std::int32_t>::max() : y;
}
/// Truth values become 0 and 1, and all but 0 are true.
template <class From, class To, bool Truth>
void typed_conversion(const std::byte* a, const std::byte*, const std::byte*, std::int64_t count,
                      std::byte* to) {
  const From* const x = typed_at<From>(a);
  To* const y = reinterpret_cast<To*>(to);
  std::int64_t i = 0;
#if defined(__AVX512F__)
  // The processor's conversion yields the least word for what does not fit, and for NaN.
  if constexpr (!Truth && std::is_same_v<From, float> && std::is_same_v<To, std::int32_t>) {
    const __m512i largest = _mm512_set1_epi32(std::numeric_limits<std::int32_t>::max());
    for (; i + 16 <= count; i += 16) {
      const __m512 v = _mm512_loadu_ps(x + i);
      const __mmask16 is_number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
      const __mmask16 beyond = _mm512_cmp_ps_mask(v, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
      const __m512i words = _mm512_maskz_cvttps_epi32(is_number, v);
      _mm512_storeu_si512(y + i, _mm512_mask_mov_epi32(words, beyond, largest));
    }
  }
#elif defined(__AVX2__)
  if constexpr (!Truth && std::is_same_v<From, float> && std::is_same_v<To, std::int32_t>) {
    const __m256 largest =
        _mm256_castsi256_ps(_mm256_set1_epi32(std::numeric_limits<std::int32_t>::max()));
    for (; i + 8 <= count; i += 8) {
      const __m256 v = _mm256_loadu_ps(x + i);
      const __m256 is_number = _mm256_cmp_ps(v, v, _CMP_ORD_Q);
      const __m256 beyond = _mm256_cmp_ps(v, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ);
      const __m256 words = _mm256_and_ps(_mm256_castsi256_ps(_mm256_cvttps_epi32(v)), is_number);
      _mm256_storeu_ps(reinterpret_cast<float*>(y + i), _mm256_blendv_ps(words, largest, beyond));
    }
  }
#endif
  for (; i < count; ++i) {
    if constexpr (Truth)
      y[i] = x[i] != From(0);
    else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, std::int32_t>)
      y[i] = nearest_word(x[i]);
    else if constexpr (std::is_floating_point_v<From>)
      y[i] = from_double<To>(double{x[i]});
    else
      y[i] = static_cast<To>(x[i]);
  }
}

}  // namespace detail

constexpr bool has_typed_values(const typed_form& f) {
  if (is<select_op>(*f.op)) return size_of(f.to) > 0 && size_of(f.to) <= 8;
  if (is<cast_op>(*f.op))
    return (detail::is_typed(f.from) || f.from == dtype::u8) && detail::is_typed(f.to);
  if (detail::typed_comparisons::contains(*f.op)) return detail::is_typed(f.from);
  if (detail::typed_truths::contains(*f.op)) return f.from == dtype::boolean;
  return is_word(f.to) && detail::typed_arithmetic::contains(*f.op);
}

template <std::same_as<typed_form> Form>
constexpr typed_values typed_values_of(const Form& f) {
  using namespace detail;
  if (is<select_op>(*f.op)) {
    switch (size_of(f.to)) {
      case 1:
        return &typed_choice<std::uint8_t>;
      case 2:
        return &typed_choice<std::uint16_t>;
      case 4:
        return &typed_choice<std::uint32_t>;
      default:
        return &typed_choice<std::uint64_t>;
    }
  }
  if (is<cast_op>(*f.op)) {
    return with_typed(f.from, [&]<class From>() {
      return f.to == dtype::boolean ? &typed_conversion<From, std::uint8_t, true>
                                    : with_typed(f.to, []<class To>() -> typed_values {
                                        return &typed_conversion<From, To, false>;
                                      });
    });
  }
  if (typed_comparisons::contains(*f.op) && f.of_size) {
    return typed_values_for(typed_comparisons{}, *f.op, [&]<class Op>() -> typed_values {
      return f.from == dtype::f32 ? &typed_comparison_of_size<Op, float>
                                  : &typed_comparison_of_size<Op, double>;
    });
  }
  if (typed_comparisons::contains(*f.op)) {
    return with_typed(f.from, [&]<class T>() {
      return typed_values_for(typed_comparisons{}, *f.op, []<class Op>() -> typed_values {
        return &typed_loop<Op, T, std::uint8_t>;
      });
    });
  }
  if (typed_truths::contains(*f.op)) {
    return typed_values_for(typed_truths{}, *f.op, []<class Op>() -> typed_values {
      return &typed_loop<Op, std::uint8_t, std::uint8_t>;
    });
  }
  return typed_values_for(typed_arithmetic{}, *f.op, [&]<class Op>() -> typed_values {
    return f.to == dtype::i32 ? &typed_loop<Op, std::int32_t, std::int32_t>
                              : &typed_loop<Op, std::int64_t, std::int64_t>;
  });
}

}  // namespace cella::cpu
