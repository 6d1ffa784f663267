// Special functions of whole vectors against numbers of 160 binary digits; without MPFR there is
// nothing to compare with.
#include <doctest/doctest.h>

#include <cella/backend/cpu/simd/special_functions.hpp>

#include "support/function_errors.hpp"

#ifdef CELLA_TESTS_HAVE_MPFR

using namespace cella;
using namespace cella::test;

namespace {

/// The largest error of f over the whole range of T.
template <class T, class F>
worst_error<T> error_of(F f, exact_number (*exact_function)(exact_number)) {
  constexpr auto width = std::size_t(cpu::lanes<T>);
  const std::vector<T> x = numbers_of_whole_range<T>(2000);
  const cpu::flush_denormals guard;
  worst_error<T> worst;
  for (std::size_t first = 0; first + width <= x.size(); first += width) {
    T y[width];
    cpu::store_unaligned(y, f(cpu::load_unaligned(&x[first])));
    for (std::size_t i = 0; i < width; ++i) {
      const T at = x[first + i];
      worst.take(error_in_units(
                     y[i], cella::test::error_search::exact_as_programs_see<T>(exact_function, at)),
                 at);
    }
  }
  return worst;
}
template <class T, class F>
void check_error(const char* name, F f, exact_number (*exact_function)(exact_number), double most) {
  const worst_error<T> worst = error_of<T>(f, exact_function);
  CAPTURE(name);
  CAPTURE(worst.at);
  CHECK(worst.units <= most);
}

/// e^-|x| I_n(x) by its power series, whose terms have one sign, and far out by the asymptotic one.
template <int N>
exact_number exact_bessel(exact_number x) {
  const exact_number size = abs(x), sign = x < 0 && N % 2 ? -1 : 1;
  if (exact_number(1e30L) < size) return sign / sqrt(exact_number(2) * pi() * size);
  if (exact_number(600) < size) {
    exact_number term = 1, sum = 1;
    for (int k = 1; k < 60; ++k) {
      term = term * exact_number((2.0L * k - 1) * (2.0L * k - 1) - 4.0L * N * N) /
             (exact_number(8.0L * k) * size);
      sum = sum + term;
    }
    return sign * sum / sqrt(exact_number(2) * pi() * size);
  }
  if (!(size < exact_number(HUGE_VALL))) return x;  // NaN
  exact_number term = exp(-size);
  for (int k = 1; k <= N; ++k) term = term * x / exact_number(2.0L * k);
  exact_number sum = term;
  const exact_number quarter = size * size / exact_number(4);
  for (int k = 1; k < 3000; ++k) {
    term = term * quarter / exact_number((long double)(k) * (k + N));
    sum = sum + term;
    if (abs(term) < abs(sum) * exact_number(1e-40L)) break;
  }
  return sum;
}
/// Newton's method from what double precision has.
exact_number exact_inverse_error(exact_number x) {
  const auto wide = static_cast<long double>(x);
  const double guess = erfinv_op::of({}, static_cast<double>(wide));
  if (!std::isfinite(guess) || guess == 0) return static_cast<long double>(guess);
  exact_number y = static_cast<long double>(guess);
  for (int step = 0; step < 3; ++step)
    y = y - (erf(y) - x) * sqrt(pi()) / exact_number(2) * exp(y * y);
  return y;
}
/// It has poles at 0, -1, -2, ..., with no sign.
exact_number exact_digamma(exact_number x) {
  return x < 0 || 0 < x ? digamma(x) : std::numeric_limits<long double>::quiet_NaN();
}
exact_number exact_log_gamma(exact_number x) { return lgamma(x); }

}  // namespace

TEST_CASE("special functions of vectors are right to the last digits over their whole range") {
  check_error<float>(
      "lgamma", [](auto x) { return cpu::log_gamma(x); }, exact_log_gamma, 2);
  check_error<float>(
      "digamma", [](auto x) { return cpu::digamma(x); }, exact_digamma, 2);
  check_error<float>(
      "i0e", [](auto x) { return cpu::bessel_ie<0>(x); }, exact_bessel<0>, 2);
  check_error<float>(
      "i1e", [](auto x) { return cpu::bessel_ie<1>(x); }, exact_bessel<1>, 2);
  check_error<float>(
      "erfinv", [](auto x) { return cpu::inverse_error_function(x); }, exact_inverse_error, 2);
  check_error<double>(
      "i0e", [](auto x) { return cpu::bessel_ie<0>(x); }, exact_bessel<0>, 4);
  check_error<double>(
      "i1e", [](auto x) { return cpu::bessel_ie<1>(x); }, exact_bessel<1>, 4);
  check_error<double>(
      "erfinv", [](auto x) { return cpu::inverse_error_function(x); }, exact_inverse_error, 4);
}

#endif
