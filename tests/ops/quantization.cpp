// Quantized numbers by ONNX's examples and by hand, products of bytes against sums in 64 bits, on
// reference computations and on kernels.
#include <cella/ops/integer_products.hpp>
#include <cella/ops/quantization.hpp>
#include <random>

#include "support/gradient_check.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

valued_tensor of(dtype element, const shape& s, reals values) {
  return {{element, s}, std::move(values)};
}

/// The results of f in eager mode and planned, which must agree: integers, and what is rounded, to
/// the last bit.
reals both(const vars_function& f, const std::vector<valued_tensor>& x, double tolerance = 0) {
  const reals eager = run_eagerly(f, x)[0].values;
  std::vector<tensor_type> types;
  for (const valued_tensor& t : x) types.push_back(t.type);
  const traced_function g(f, types);
  REQUIRE_FALSE(g.b.failed());
  CHECK(max_relative_error(run_planned(g.b.g, x, 2)[0].values, eager) <= tolerance);
  return eager;
}

valued_tensor random_bytes(dtype element, const shape& s, std::mt19937& random) {
  const int low = element == dtype::i8 ? -128 : 0;
  valued_tensor t = of(element, s, {});
  for (std::int64_t i = 0; i < s.size(); ++i) {
    const int kind = int(random() % 4);  // the ends are frequent
    t.values.push_back(kind == 0 ? low : kind == 1 ? low + 255 : low + int(random() % 256));
  }
  return t;
}

}  // namespace

TEST_CASE("quantized numbers are those of ONNX's examples") {
  const valued_tensor x = f64({6}, {0, 2, 3, 1000, -254, -1000});
  CHECK(both([](const vars& v) { return vars{quantize(v[0], 2, 128, dtype::u8)}; }, {x}) ==
        reals{128, 129, 130, 255, 1, 0});
  const valued_tensor q = of(dtype::u8, {4}, {0, 3, 128, 255});
  CHECK(both([](const vars& v) { return vars{dequantize(v[0], 2, 128)}; }, {q}) ==
        reals{-256, -250, 0, 254});
  // One scale and zero for each channel: example "axis" of both operators.
  const valued_tensor image = f64({1, 3, 3, 2}, {-162, 10, -100, 232, -20, -50, -76, 0, 0, 252, 32,
                                                 -44, 245, -485, -960, -270, -375, -470});
  const valued_tensor scale = f64({3}, {2, 4, 5}), zero = of(dtype::u8, {3}, {84, 24, 196});
  const reals integers{3, 89, 34, 200, 74, 59, 5, 24, 24, 87, 32, 13, 245, 99, 4, 142, 121, 102};
  CHECK(both([](const vars& v) { return vars{quantize(v[0], v[1], v[2], dtype::u8)}; },
             {image, scale, zero}) == integers);
  CHECK(both([](const vars& v) { return vars{dequantize(v[0], v[1], v[2])}; },
             {of(dtype::u8, {1, 3, 3, 2}, integers), scale, zero}) == image.values);
}

TEST_CASE("halves are rounded to the even integer, and what is too large becomes the last one") {
  const valued_tensor x = f64({9}, {0.5, 1.5, -0.5, -1.5, 2.5, 127.4, 127.6, -1e9, not_a_number});
  CHECK(both([](const vars& v) { return vars{quantize(v[0], 1, 0, dtype::i8)}; }, {x}) ==
        reals{0, 2, 0, -2, 2, 127, 127, -128, 0});
  // The zero is added to what is rounded already.
  CHECK(both([](const vars& v) { return vars{quantize(v[0], 1, 1, dtype::u8)}; }, {x}) ==
        reals{1, 3, 1, 0, 3, 128, 129, 0, 0});
  CHECK(both([](const vars& v) { return vars{quantize(v[0], 0.25, -3, dtype::i16, 0)}; },
             {f64({2}, {1e6, 2})}) == reals{32767, 5});
}

TEST_CASE("fake quantization is both, one after the other") {
  std::mt19937 random(3);
  valued_tensor x = f64({4, 50}, {});
  for (int i = 0; i < 200; ++i) x.values.push_back(double(random() % 4001) / 1000 - 2);
  const valued_tensor scale = f64({4}, {0.01, 0.02, 0.1, 0.007});
  const valued_tensor zero = f64({4}, {0, 3, -100, 20});
  const auto fake = [](const vars& v) {
    return vars{fake_quantize(v[0], v[1], v[2], dtype::i8, 0)};
  };
  const auto there_and_back = [](const vars& v) {
    const var z = cast(v[2], dtype::i8);
    return vars{dequantize(quantize(v[0], v[1], z, dtype::i8, 0), v[1], z, 0)};
  };
  check_close(both(fake, {x, scale, zero}), both(there_and_back, {x, scale, zero}), 1e-15);
  // Of four bits, -8 to 7.
  CHECK(both(
            [](const vars& v) {
              return vars{fake_quantize(v[0], 0.5, 0, {-8, 7})};
            },
            {f64({4}, {-9, 0.3, 3.4, 9})}) == reals{-4, 0.5, 3.5, 3.5});
}

TEST_CASE("gradients go straight through the rounding, and stop at the ends of the range") {
  // q = round(x / s) + 1 in [-128, 127]: the last two lie outside.
  const valued_tensor x = f64({5}, {0.26, -0.3, 12.6, 13, -20}), s = scalar(0.1), z = scalar(1);
  const auto slopes = [](const vars& v) {
    const auto f = [](var a, var b, var c) { return sum(fake_quantize(a, b, c, dtype::i8)); };
    const auto d = value_and_grad<3>(f)(v[0], v[1], v[2]);
    return vars{
        concat({d.gradient[0], reshape(d.gradient[1], {1}), reshape(d.gradient[2], {1})}, 0)};
  };
  const reals d = both(slopes, {x, s, z}, 1e-13);
  CHECK(reals(d.begin(), d.begin() + 5) == reals{1, 1, 1, 0, 0});
  // Esser et al.: round(x / s) - x / s within, and the distance of the end from the zero beyond.
  CHECK(d[5] == doctest::Approx((3 - 2.6) + (-3 + 3.0) + (126 - 126.0) + 126 - 129));
  // The zero moves what is cut off, and nothing else.
  CHECK(d[6] == doctest::Approx(-0.2));
}

TEST_CASE("a value may have the derivative of another one") {
  const auto d = eval(
      [](var x) {
        return grad([](var t) { return sum(straight_through(sign(t), square(t))); })(x);
      },
      f64({3}, {-2, 0.5, 3}));
  CHECK(d.values == reals{-4, 1, 6});
  CHECK(
      eval([](var x) { return straight_through(sign(x), square(x)); }, f64({2}, {-2, 3})).values ==
      reals{-1, 1});
}

TEST_CASE("a scheme covers its range and has 0 among its numbers") {
  const auto scheme = [](double low, double high, quantized_range range, bool symmetric) {
    const auto f = [&](const vars& v) {
      const auto s = quantization_of(v[0], v[1], range, symmetric);
      return vars{stack({s.scale, s.zero}, 0)};
    };
    return both(f, {scalar(low), scalar(high)});
  };
  check_close(scheme(-1, 1.55, dtype::u8, false), reals{0.01, 100}, 1e-15);
  check_close(scheme(0.5, 2.55, dtype::u8, false), reals{0.01, 0}, 1e-15);  // 0 is taken in
  check_close(scheme(-1.28, 1.27, dtype::i8, false), reals{0.01, 0}, 1e-15);
  check_close(scheme(-2.54, 1, {-127, 127}, true), reals{0.02, 0}, 1e-15);
  CHECK(scheme(0, 0, dtype::i8, true) == reals{1, 0});
  CHECK(scheme(0, 0, dtype::u8, false) == reals{1, 0});
}

TEST_CASE("products of bytes are exact in every mixture of signs and zeros") {
  std::mt19937 random(7);
  struct product {
    shape a, b, zero_a, zero_b;
  };
  // Larger than a unit of the kernel in both directions, and small ones.
  for (const product& c : {product{{3, 5}, {5, 2}, {}, {}},
                           {{2, 3, 7}, {7, 4}, {3}, {4}},
                           {{2, 3, 7}, {2, 7, 4}, {3}, {}},
                           {{470, 9}, {9, 150}, {}, {150}},
                           {{70, 66}, {66, 33}, {70}, {33}},
                           {{1, 1}, {1, 1}, {1}, {1}}}) {
    for (int signs = 0; signs < 4; ++signs) {
      const dtype left = signs & 1 ? dtype::i8 : dtype::u8,
                  right = signs & 2 ? dtype::i8 : dtype::u8;
      const valued_tensor a = random_bytes(left, c.a, random), b = random_bytes(right, c.b, random);
      const valued_tensor u = random_bytes(left, c.zero_a, random),
                          v = random_bytes(right, c.zero_b, random);
      const int m = c.a[c.a.rank - 2], k = c.a[c.a.rank - 1], n = c.b[c.b.rank - 1];
      reals expected;
      for (std::int64_t row = 0; row < c.a.size() / k; ++row)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int p = 0; p < k; ++p) {
            const std::int64_t at = (c.b.rank > 2 ? row / m * k : 0) + p;
            sum +=
                (a.values[std::size_t(row * k + p)] -
                 u.values[c.zero_a.rank ? std::size_t(row % m) : 0]) *
                (b.values[std::size_t(at * n + j)] - v.values[c.zero_b.rank ? std::size_t(j) : 0]);
          }
          expected.push_back(sum);
        }
      CAPTURE(c.a);
      CAPTURE(signs);
      CHECK(both([](const vars& x) { return vars{matmul_integer(x[0], x[1], x[2], x[3])}; },
                 {a, b, u, v}) == expected);
    }
  }
}

TEST_CASE("convolutions of bytes are those of their differences from the zeros in 64 bits") {
  std::mt19937 random(8);
  struct convolution {
    shape x, w;
    window walk;
    bool zero_each;
  };
  for (const convolution& c :
       {convolution{{2, 3, 7, 6}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}}, true},
        {{1, 5, 8, 9}, {150, 5, 3, 2}, {{2, 2}, {0, 0}, {0, 0}}, true},
        {{3, 4, 5, 5}, {6, 4, 1, 1}, {}, false},
        // Groups, of which one fills more than a unit of filters, and dilation.
        {{1, 4, 6, 6}, {4, 2, 2, 2}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 2}, true},
        {{2, 6, 5, 5}, {300, 3, 1, 1}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 2}, true},
        {{2, 5, 9, 8}, {5, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 5}, true},
        {{2, 6, 11, 9}, {4, 3, 3, 2}, {{2, 2}, {2, 2}, {2, 2}, {3, 3}, 2}, true},
        {{1, 3, 9, 9}, {4, 3, 3, 3}, {{1, 1}, {2, 2}, {2, 2}, {2, 2}}, false},
        // Unequal padding, steps and dilation; in groups, and as TensorFlow pads an even image.
        {{2, 4, 8, 7}, {6, 2, 3, 2}, {{2, 1}, {0, 1}, {1, 0}, {1, 2}, 2}, true},
        {{1, 3, 8, 8}, {4, 3, 3, 3}, {{2, 2}, {0, 0}, {1, 1}}, true},
        {{1, 2, 6, 6}, {3, 2, 2, 2}, {{2, 1}, {1, 0}, {0, 2}, {2, 1}}, false}}) {
    for (int signs = 0; signs < 4; ++signs) {
      const dtype left = signs & 1 ? dtype::i8 : dtype::u8,
                  right = signs & 2 ? dtype::i8 : dtype::u8;
      const valued_tensor x = random_bytes(left, c.x, random), w = random_bytes(right, c.w, random);
      const valued_tensor u = random_bytes(left, {}, random);
      const valued_tensor v = random_bytes(right, c.zero_each ? shape{c.w[0]} : shape{}, random);
      const auto by_differences = [&](const vars& t) {
        var filter_zero = cast(t[3], dtype::i64);
        if (filter_zero.rank()) filter_zero = reshape(filter_zero, {c.w[0], 1, 1, 1});
        return vars{conv2d(cast(t[0], dtype::i64) - cast(t[2], dtype::i64),
                           cast(t[1], dtype::i64) - filter_zero, c.walk)};
      };
      const auto f = [&](const vars& t) {
        return vars{conv2d_integer(t[0], t[1], c.walk, t[2], t[3])};
      };
      CAPTURE(c.w);
      CAPTURE(signs);
      CHECK(both(f, {x, w, u, v}) == run_eagerly(by_differences, {x, w, u, v})[0].values);
    }
  }
}

TEST_CASE("the faults of quantized numbers name what is wrong, and say what is right") {
  using types = std::vector<tensor_type>;
  CHECK(fault([](const vars& x) { quantize(x[0], 1, 0, dtype::f32); }, types{{dtype::f32, {2}}}) ==
        "quantize: f32 is no type of integers; i8 and u8 are usual");
  CHECK(fault([](const vars& x) { quantize(x[0], x[1], 0, dtype::i8, 0); },
              types{{dtype::f32, {2, 3}}, {dtype::f32, {3}}})
            .find("is neither one number nor one for each slice along axis 0") !=
        std::string::npos);
  CHECK(fault([](const vars& x) { dequantize(x[0], 1); }, types{{dtype::f32, {2}}})
            .find("it needs integers") != std::string::npos);
  CHECK(fault([](const vars& x) { matmul_integer(x[0], x[1]); },
              types{{dtype::u8, {2, 3}}, {dtype::i32, {3, 2}}})
            .find("both operands must be i8 or u8") != std::string::npos);
  CHECK(fault([](const vars& x) { matmul_integer(x[0], x[1]); },
              types{{dtype::u8, {2, 3}}, {dtype::i8, {4, 2}}})
            .find("matrices [...,M,K] and [K,N]") != std::string::npos);
  CHECK(fault([](const vars& x) { matmul_integer(x[0], x[1], x[2]); },
              types{{dtype::u8, {2, 3}}, {dtype::i8, {3, 2}}, {dtype::u8, {3}}})
            .find("one for each row") != std::string::npos);
  CHECK(fault([](const vars& x) { conv2d_integer(x[0], x[1]); },
              types{{dtype::u8, {1, 3, 4, 4}}, {dtype::i8, {2, 2, 1, 1}}})
            .find("channel counts differ") != std::string::npos);
}
