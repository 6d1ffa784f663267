#include <cella/ops/signal.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input matrix{.extents = {3, 4}};
constexpr case_input line{.extents = {12}};
constexpr var size(var z) { return square(real(z)) + square(imag(z)) * 0.5; }

constexpr gradient_case cases[] = {
    {"fft", [](var x, var y) { return size(fft(complex(x, y), 0)); }, {matrix, matrix}},
    {"ifft2", [](var x, var y) { return size(ifft2(complex(x, y))); }, {matrix, matrix}},
    {"fftn", [](var x) { return size(fftn(x)); }, {matrix}},
    {"rfft", [](var x) { return size(rfft(x, 0)); }, {{.extents = {5, 2}}}},
    {"rfft, even", [](var x) { return size(rfft(x)); }, {{.extents = {2, 6}}}},
    {"rfft of pairs and of single numbers",
     [](var x) { return size(rfft(x, 0)) + size(rfft(slice(x, 0, 0, 1), 0)); },
     {{.extents = {2, 3}}}},
    {"irfft", [](var x, var y) { return square(irfft(complex(x, y), 7)); }, {matrix, matrix}},
    {"irfft, even",
     [](var x, var y) { return square(irfft(complex(x, y), 4, 0)); },
     {matrix, matrix}},
    {"rfft2", [](var x) { return size(rfft2(x)); }, {matrix}},
    {"frames", [](var x) { return square(frames(x, 4, 3)); }, {{.extents = {2, 12}}}},
    {"stft", [](var x, var w) { return size(stft(x, w, 2)); }, {line, {.extents = {4}}}},
    {"istft",
     [](var x) {
       return square(istft(stft(x, hann_window(x, {4, true, dtype::f64}), 1, false),
                           hann_window(x, {4, true, dtype::f64}), 1));
     },
     {line}},
    {"mel_filter_bank",
     [](var x) { return matmul(mel_filter_bank(x, 3, 22, 100, 0, 0, dtype::f64), x); },
     {line}},
};

constexpr window_form five{5, false, dtype::f64}, four{4, true, dtype::f64};

/// The sum that defines the transform, in long double.
reals by_definition(const reals& x, int n, int sign) {
  reals y;
  for (int part = 0; part < 2; ++part) {
    for (int k = 0; k < n; ++k) {
      long double sum = 0;
      for (int j = 0; j < n; ++j) {
        const long double turn =
            sign * 2 * std::numbers::pi_v<long double> * (std::int64_t(j) * k % n) / n;
        const long double re = x[std::size_t(j)], im = x[std::size_t(n + j)];
        sum += part ? re * std::sin(turn) + im * std::cos(turn)
                    : re * std::cos(turn) - im * std::sin(turn);
      }
      y.push_back(double(sum));
    }
  }
  return y;
}

}  // namespace

TEST_CASE("Fourier transforms: values, traces and derivatives of both orders agree") {
  for (const gradient_case& c : cases) check_gradient(c);
}

TEST_CASE("transforms of any length are the sums that define them") {
  for (int n : {1, 2, 3, 4, 5, 7, 8, 12, 30, 31, 32, 37, 49, 60, 74, 97, 128, 211, 360, 1009}) {
    CAPTURE(n);
    eager_session s;
    const valued_tensor x = case_input{.extents = {2, n}}.sample(std::uint64_t(n));
    const auto parts = unstack(s(x), 0);
    const var z = complex(parts[0], parts[1]);
    const auto values = [&](var y) { return s.value(stack({real(y), imag(y)}, 0)).values; };
    const auto defined = [&](int sign, double factor) {
      return s.value(s(f64({2, n}, by_definition(x.values, n, sign))) * factor).values;
    };
    const double scale = std::sqrt(n);
    check_close(values(fft(z) / scale), defined(-1, 1 / scale), 4e-15);
    check_close(values(ifft(z) * scale), defined(1, 1 / scale), 4e-15);
    check_close(values(ifft(fft(z))), x.values, 4e-15);
    reals of_real = x.values;
    std::fill(of_real.begin() + n, of_real.end(), 0);
    const var halves = slice(s(f64({2, n}, by_definition(of_real, n, -1))), 1, 0, n / 2 + 1);
    check_close(values(rfft(parts[0]) / scale), s.value(halves / scale).values, 4e-15);
    check_close(s.value(irfft(rfft(parts[0]), n)).values, s.value(parts[0]).values, 4e-15);
  }
}

TEST_CASE("windows have the values of their formulas, periodic and symmetric") {
  const auto of = [](auto f) { return eval([f](var x) { return f(x); }, f64({1}, {0})).values; };
  check_close(of([](var x) { return hann_window(x, five); }), reals{0, 0.5, 1, 0.5, 0}, 1e-15);
  check_close(of([](var x) { return hann_window(x, four); }), reals{0, 0.5, 1, 0.5}, 1e-15);
  check_close(of([](var x) { return hamming_window(x, five); }), reals{0.08, 0.54, 1, 0.54, 0.08},
              1e-15);
  check_close(of([](var x) { return blackman_window(x, five); }), reals{0, 0.34, 1, 0.34, 0},
              1e-15);
  // By mpmath, with 25 digits.
  check_close(of([](var x) { return kaiser_window(x, five, 14); }),
              reals{7.726866835273003e-06, 0.16493218754795202, 1, 0.16493218754795202,
                    7.726866835273003e-06},
              1e-15);
  CHECK(of([](var x) { return hann_window(x, {1, false, dtype::f64}); }) == reals{1});
}

TEST_CASE("istft undoes stft") {
  eager_session s;
  const var x = s(case_input{.extents = {2, 40}}.sample(3));
  const var w = hamming_window(x, {8, true, dtype::f64});
  const var y = istft(stft(x, w, 4, false), w, 4);
  check_close(s.value(y).values, s.value(x).values, 1e-14);
}

TEST_CASE("the faults of transforms name the tensor and what fits") {
  const auto x = f64({6}, {1, 2, 3, 4, 5, 6});
  const auto fails = [&](auto f, const char* why) {
    CHECK_THROWS_WITH_AS(eval([f](var v) { return f(v); }, x), doctest::Contains(why), model_error);
  };
  fails([](var v) { return real(fft(cast(v, dtype::i32))); },
        "convert it to f32 or f64 with cast()");
  fails([](var v) { return real(rfft(complex(v, v))); }, "fft takes complex ones");
  fails([](var v) { return irfft(v, 5); }, "5 numbers do not have 6 in their transform, but 3");
  fails([](var v) { return frames(v, 7, 1); }, "has no parts of 7 elements, 1 apart");
  fails([](var v) { return real(stft(v, hann_window(v, {4}), 1)); }, "of one type");
}
