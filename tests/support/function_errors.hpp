// How far functions of one argument are from what is exact, over the whole range of a type, as
// programs compute them: vectors in compiled ones, scalars in eager mode and in registers.
#pragma once

#include <algorithm>
#include <bit>
#include <cella/backend/cpu/registers/straight_line.hpp>
#include <cella/backend/cpu/simd/math.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <support/exact_functions.hpp>
#include <vector>

namespace cella::test {

/// The largest error, in units in the last place of the exact result, and where; infinite where a
/// special value is missed.
template <class T>
struct worst_error {
  double units = 0;
  T at{};
  void take(double found, T x) {
    if (!(found <= units)) units = found, at = x;
  }
};

/// Largest errors of one function of T.
template <class T>
struct function_errors {
  worst_error<T> vector, scalar;
};

/// What no error may exceed.
inline constexpr double most_units = 2;

/// Whose last place errors are counted in.
enum class units { of_result, of_operand, of_one };

/// That of the result, but for gelu, whose hot loop has no time to make its gate right in all
/// digits where it is nearly 0, and its slope, which crosses 0: they count in units of what they
/// multiply.
template <class Op>
inline constexpr units units_of_errors =
    operation_list<gelu_op, gelu_tanh_op>::contains(info_of<Op>)               ? units::of_operand
    : operation_list<gelu_slope_op, gelu_tanh_slope_op>::contains(info_of<Op>) ? units::of_one
                                                                               : units::of_result;

/// The error of y, where e is exact, in units of the larger of |e| and `scale`. What is too small
/// for a normal number may be anything as small.
template <class T>
double error_in_units(T y, long double e, long double scale = 0) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  using limits = std::numeric_limits<T>;
  // Outside of the type that is computed with: the processor may take denormal numbers for 0 there.
  const auto found = static_cast<long double>(y);
  const long double least = limits::min();
  if (std::isnan(e)) return std::isnan(y) ? 0 : wrong;
  if (std::isnan(y)) return wrong;
  // What rounds to infinity.
  if (std::abs(e) >= std::ldexp(1.0L - std::ldexp(0.5L, -limits::digits), limits::max_exponent))
    return found == std::copysign(HUGE_VALL, e) ? 0 : wrong;
  if (e == 0 && (scale == 0 || std::isinf(scale)))
    return found == 0 && std::signbit(found) == std::signbit(e) ? 0 : wrong;
  if (std::abs(e) < least && std::abs(found) <= least) return 0;
  if (std::abs(e) < least && scale == 0) return wrong;
  int exponent = 0;
  std::frexp(std::max(std::abs(e), scale), &exponent);
  return static_cast<double>(std::ldexp(std::abs(found - e), limits::digits - exponent));
}

/// Zeros, infinities, NaN and the ends of the ranges of denormal and of normal numbers; multiples
/// of 1/16 and their neighbours, where functions change their form; `count` numbers in which every
/// exponent occurs alike; and as many where most calls are.
template <class T>
std::vector<T> numbers_of_whole_range(std::size_t count) {
  using limits = std::numeric_limits<T>;
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const bits one = 1;
  std::vector<T> x;
  const auto both = [&](T v) { x.insert(x.end(), {v, -v}); };
  for (const T v : {T(0), limits::infinity(), limits::quiet_NaN(), limits::denorm_min(),
                    std::bit_cast<T>(std::bit_cast<bits>(limits::min()) - one), limits::min(),
                    limits::max(), limits::epsilon()})
    both(v);
  for (int i = 1; i <= 16 * 32; ++i) {
    const bits middle = std::bit_cast<bits>(T(i) / 16);
    for (const bits b : {middle - one, middle, middle + one}) both(std::bit_cast<T>(b));
  }
  const bits stride = std::numeric_limits<bits>::max() / bits(count) | 1;
  bits at = 12345;
  for (std::size_t i = 0; i < count; ++i, at += stride) x.push_back(std::bit_cast<T>(at));
  const T ends[] = {T(0.3), T(1), T(1.7), T(8), T(40), T(100), T(750)};
  for (const T end : ends) {
    const std::size_t part = count / std::size(ends);
    for (std::size_t i = 0; i < part; ++i)
      x.push_back(end * (T(2) * (T(i) + T(0.37)) / T(part) - T(1)));
  }
  while (x.size() % cpu::lanes<T>) x.push_back(T(1));
  return x;
}

namespace error_search {
/// The line that a compiled program has for an operation on a vector.
template <class T>
struct operands_before {
  cpu::vec<T> x;
  template <int>
  cpu::vec<T> at() const {
    return x;
  }
};
template <class T>
[[gnu::noinline]] long double exact_as_programs_see(exact_number (*f)(exact_number), T x) {
  // To programs denormal numbers are zero.
  auto wide = static_cast<long double>(x);
  if (std::abs(wide) < static_cast<long double>(std::numeric_limits<T>::min()))
    wide = std::copysign(0.0L, wide);
  return static_cast<long double>(f(wide));
}
}  // namespace error_search

/// The errors of Op at the numbers x, in the state that programs compute in.
template <class Op, class T>
function_errors<T> errors_of_function(std::span<const T> x) {
  constexpr auto lanes = std::size_t(cpu::lanes<T>);
  function_errors<T> worst;
  const cpu::flush_denormals guard;
  for (std::size_t first = 0; first + lanes <= x.size(); first += lanes) {
    T y[lanes];
    cpu::store_unaligned(y,
                         cpu::operation<Op, 0>::evaluate(
                             0, error_search::operands_before<T>{cpu::load_unaligned(&x[first])}));
    for (std::size_t i = 0; i < lanes; ++i) {
      const T at = x[first + i];
      const long double e =
          error_search::exact_as_programs_see<T>([](exact_number v) { return exact(Op{}, v); }, at);
      const long double scale = units_of_errors<Op> == units::of_operand
                                    ? std::abs(static_cast<long double>(at))
                                : units_of_errors<Op> == units::of_one ? 1
                                                                       : 0;
      worst.vector.take(error_in_units(y[i], e, scale), at);
      worst.scalar.take(error_in_units(Op::apply(at), e, scale), at);
      // Eager mode computes single precision in double.
      const T eager = from_number<T>(Op::apply(to_number<double>(at)));
      worst.scalar.take(error_in_units(eager, e, scale), at);
    }
  }
  return worst;
}

}  // namespace cella::test
