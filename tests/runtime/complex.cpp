// Complex numbers: operations against std::complex, and gradients of real losses against
// differences by real and by imaginary parts.
#include <cella/backend/host/finite.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/polar.hpp>
#include <cella/ops/print.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/vmap.hpp>
#include <cmath>
#include <complex>

#include "element_types.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using c128 = std::complex<double>;

/// Numbers in all quadrants, between 0.6 and 1.5 in size.
template <class T>
std::vector<std::complex<T>> samples(std::size_t n, double turn) {
  std::vector<std::complex<T>> all;
  for (std::size_t k = 0; k < n; ++k) {
    const c128 z = std::polar(0.6 + 0.9 * double(k * 7 % 11) / 11, turn + 2.4 * double(k));
    all.push_back(static_cast<std::complex<T>>(z));
  }
  return all;
}

// ---- values

struct elementwise_cell {
  constexpr auto operator()(var x, var y) const {
    return std::array{x + y,
                      x - y,
                      x * y,
                      x / y,
                      -x,
                      conj(x),
                      square(x),
                      exp(x),
                      log(x),
                      sqrt(x),
                      sin(x),
                      cos(x),
                      tan(x),
                      sinh(x),
                      cosh(x),
                      tanh(x),
                      2 * x - 1,
                      select(equal(x, y), x, conj(y)),
                      polar(abs(x), angle(x)),
                      complex(imag(x), real(y)),
                      cast(real(x), x.element())};
  }
};
struct parts_cell {
  constexpr auto operator()(var x, var y) const {
    const dtype part = real(x).element();
    return std::array{
        real(x), imag(x), abs(x), angle(x), cast(equal(x, y), part), cast(not_equal(x, y), part)};
  }
};

template <class T>
void check_values(double epsilon) {
  using number = std::complex<T>;
  using argument = tensor<dtype_of<number>, 9>;
  auto x = samples<T>(9, 0.3), y = samples<T>(9, 1.1);
  y[4] = x[4];
  const auto expected = [](c128 a, c128 b) {
    return std::vector<c128>{a + b,
                             a - b,
                             a * b,
                             a / b,
                             -a,
                             std::conj(a),
                             a * a,
                             std::exp(a),
                             std::log(a),
                             std::sqrt(a),
                             std::sin(a),
                             std::cos(a),
                             std::tan(a),
                             std::sinh(a),
                             std::cosh(a),
                             std::tanh(a),
                             2.0 * a - 1.0,
                             a == b ? a : std::conj(b),
                             a,
                             {a.imag(), b.real()},
                             a.real()};
  };
  for (const typed_results& r :
       run_all_ways<argument, argument>(elementwise_cell{}, {bytes_of(x), bytes_of(y)})) {
    for (std::size_t i = 0; i < 9; ++i) {
      const auto all = expected(x[i], y[i]);
      REQUIRE(r.bytes.size() == all.size());
      for (std::size_t k = 0; k < all.size(); ++k) {
        INFO("result ", k, ", element ", i, ", ", r.way);
        const c128 found = r.as<number>(k)[i];
        CHECK(std::abs(found - all[k]) <= epsilon * std::max(1.0, std::abs(all[k])));
      }
    }
  }
  for (const typed_results& r :
       run_all_ways<argument, argument>(parts_cell{}, {bytes_of(x), bytes_of(y)})) {
    for (std::size_t i = 0; i < 9; ++i) {
      const c128 z = x[i];
      const double all[] = {
          z.real(), z.imag(), std::abs(z), std::arg(z), double(x[i] == y[i]), double(x[i] != y[i])};
      for (std::size_t k = 0; k < 6; ++k) {
        INFO("part ", k, ", element ", i, ", ", r.way);
        CHECK(double(r.as<T>(k)[i]) == doctest::Approx(all[k]).epsilon(epsilon));
      }
    }
  }
}

struct several_at_once {
  constexpr auto operator()(var x, var y) const {
    const var rows = reshape(x, {3, 4});
    const var at = iota(*x.b, {dtype::i32, {2}}, 0) * 2;
    return std::array{sum(rows, {1}),
                      mean(rows, {0}),
                      cumsum(rows, 1),
                      matmul(rows, reshape(y, {4, 3})),
                      transpose(rows),
                      gather(rows, at),
                      concat({slice(x, 0, 5, 12), y}, 0),
                      broadcast_to(slice(x, 0, 2, 3), {3}),
                      for_i(
                          3, [y](var, var h) { return h * y + 1; }, x)};
  }
};

template <class T>
void check_several(double epsilon) {
  using number = std::complex<T>;
  using argument = tensor<dtype_of<number>, 12>;
  const auto x = samples<T>(12, 0.2), y = samples<T>(12, 0.9);
  std::vector<std::vector<c128>> expected(9);
  for (std::size_t i = 0; i < 3; ++i) {
    c128 sum = 0;
    for (std::size_t j = 0; j < 4; ++j) expected[2].push_back(sum += x[4 * i + j]);
    expected[0].push_back(sum);
    for (std::size_t j = 0; j < 3; ++j) {
      c128 product = 0;
      for (std::size_t k = 0; k < 4; ++k) product += c128(x[4 * i + k]) * c128(y[3 * k + j]);
      expected[3].push_back(product);
    }
    expected[7].push_back(x[2]);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    expected[1].push_back((c128(x[j]) + c128(x[4 + j]) + c128(x[8 + j])) / 3.0);
    for (std::size_t i = 0; i < 3; ++i) expected[4].push_back(x[4 * i + j]);
  }
  for (std::size_t i : {0u, 2u})
    for (std::size_t j = 0; j < 4; ++j) expected[5].push_back(x[4 * i + j]);
  expected[6].assign(x.begin() + 5, x.end());
  expected[6].insert(expected[6].end(), y.begin(), y.end());
  for (std::size_t i = 0; i < 12; ++i) {
    c128 h = x[i];
    for (int step = 0; step < 3; ++step) h = h * c128(y[i]) + 1.0;
    expected[8].push_back(h);
  }
  for (const typed_results& r :
       run_all_ways<argument, argument>(several_at_once{}, {bytes_of(x), bytes_of(y)})) {
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto found = r.as<number>(k);
      REQUIRE(found.size() == expected[k].size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO("result ", k, ", element ", i, ", ", r.way);
        CHECK(std::abs(c128(found[i]) - expected[k][i]) <= epsilon * 4);
      }
    }
  }
}

// ---- derivatives

constexpr var table(var x) { return reshape(x, {2, 3}); }

/// Real losses of two complex vectors of six.
constexpr var (*losses[])(var, var) = {
    [](var z, var w) { return sum(abs(z * w + conj(z) / w)); },
    [](var z, var w) { return sum(real(exp(z) * w) - imag(square(z) - w)); },
    [](var z, var w) { return sum(square(abs(matmul(table(z), transpose(table(w)))))); },
    [](var z, var w) { return sum(angle(z * 2) * real(w) + angle(w)); },
    [](var z, var w) { return abs(sum(log(z) * sqrt(w))); },
    [](var z, var w) { return sum(imag(sin(z) * cos(w) + tan(z))); },
    [](var z, var w) { return real(sum(sinh(z) - cosh(w) * tanh(z))); },
    [](var z, var w) {
      const var moved = concat({slice(z, 0, 2, 5), w, slice(z, 0, 0, 1)}, 0);
      const var at = iota(*z.b, {dtype::i32, {4}}, 0) * 2;
      return sum(square(abs(cumsum(gather(moved, at), 0) * broadcast_to(slice(w, 0, 1, 2), {4}))));
    },
    [](var z, var w) {
      const var r = abs(z), turn = real(w) + imag(w);
      return sum(imag(polar(r, turn) * complex(turn, r)) + abs(cast(r, z.element()) * w));
    },
    [](var z, var w) {
      return sum(abs(select(real(z) > 0, z * w, z - w))) + abs(mean(z)) + l2_norm(w);
    },
    [](var z, var w) {
      const var h = for_i(
          3, [w](var, var t) { return t * w + 1; }, z);
      const auto small = [](var t) { return max(abs(t)) < 40; };
      return sum(abs(while_loop(
          small, [z](var t) { return t * z * 2; }, h)));
    },
};
constexpr std::size_t loss_count = std::size(losses);

/// Each loss with its gradients.
template <std::size_t First, std::size_t Last>
struct gradients_cell {
  constexpr auto operator()(var z, var w) const {
    std::array<var, 3 * (Last - First)> all{};
    for (std::size_t k = First; k < Last; ++k) {
      const auto g = value_and_grad<2>(losses[k])(z, w);
      all[3 * (k - First)] = g.value;
      for (std::size_t i = 0; i < 2; ++i) all[3 * (k - First) + 1 + i] = g.gradient[i];
    }
    return all;
  }
};

using six = tensor<dtype::c128, 6>;

/// The gradient of `loss` by argument `of`, by differences.
template <class Loss>
std::vector<c128> differences(Loss loss, std::array<std::vector<c128>, 2> x, std::size_t of) {
  const auto at = [&](std::size_t i, c128 step) {
    auto moved = x;
    moved[of][i] += step;
    return run_in_eager_mode<six, six>(loss, {bytes_of(moved[0]), bytes_of(moved[1])})
        .template as<double>(0)[0];
  };
  const double h = 1e-5;
  std::vector<c128> g;
  for (std::size_t i = 0; i < 6; ++i) {
    const c128 x_step = h, y_step(0, h);
    g.emplace_back((at(i, x_step) - at(i, -x_step)) / (2 * h),
                   (at(i, y_step) - at(i, -y_step)) / (2 * h));
  }
  return g;
}

template <std::size_t First, std::size_t Last>
void check_gradients() {
  const std::array x{samples<double>(6, 0.4), samples<double>(6, 1.3)};
  const auto all =
      run_all_ways<six, six>(gradients_cell<First, Last>{}, {bytes_of(x[0]), bytes_of(x[1])});
  for (std::size_t k = First; k < Last; ++k) {
    for (std::size_t of = 0; of < 2; ++of) {
      const auto expected = differences(losses[k], x, of);
      for (const typed_results& r : all) {
        const auto found = r.as<c128>(3 * (k - First) + 1 + of);
        for (std::size_t i = 0; i < 6; ++i) {
          INFO("loss ", k, " by argument ", of, ", element ", i, ", ", r.way);
          CHECK(std::abs(found[i] - expected[i]) <= 1e-8 * std::max(1.0, std::abs(expected[i])));
        }
      }
    }
  }
}

/// The gradient of a gradient's size, and the derivative along a direction.
constexpr var of_second_order(var z, var w) {
  const var g = grad([w](var t) { return sum(square(abs(t * t * w)) + real(exp(t))); })(z);
  return sum(square(abs(g)));
}
struct second_order_cell {
  constexpr auto operator()(var z, var w) const {
    return std::array{
        grad(of_second_order)(z, w),
        jvp([z](var t) { return sum(abs(t * z)) + sum(angle(t)) + sum(imag(tan(t))); }, w, conj(z))
            .second};
  }
};
constexpr var along(var z, var w) { return sum(abs(w * z)) + sum(angle(w)) + sum(imag(tan(w))); }

template <class Cell, class... Arguments>
std::string fault_of(Cell cell, const std::array<tensor_type, 1>& types) {
  try {
    trace(cell, types);
  } catch (const model_error& e) {
    const std::string s = e.what();
    return s.substr(s.find(": ") + 2);
  }
  return "no fault";
}

}  // namespace

TEST_SUITE("runtime/complex") {
  TEST_CASE("elementwise operations are those of std::complex") {
    check_values<double>(1e-14);
    check_values<float>(1e-6);
  }
  TEST_CASE("so are sums, products, loops and what moves elements") {
    check_several<double>(1e-14);
    check_several<float>(1e-6);
  }
  TEST_CASE("a real loss has the gradient dL/dx + i dL/dy, along which it descends") {
    check_gradients<0, 5>();
    check_gradients<5, loss_count - 1>();
    check_gradients<loss_count - 1, loss_count>();  // control flow
  }
  TEST_CASE("gradients have gradients, and forward mode agrees") {
    const std::array x{samples<double>(6, 0.4), samples<double>(6, 1.3)};
    const auto expected = differences(of_second_order, x, 0);
    const auto slope = differences(along, x, 1);
    double change = 0;
    for (std::size_t i = 0; i < 6; ++i)
      change += std::real(std::conj(slope[i]) * std::conj(x[0][i]));
    for (const typed_results& r :
         run_all_ways<six, six>(second_order_cell{}, {bytes_of(x[0]), bytes_of(x[1])})) {
      INFO(r.way);
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(std::abs(r.as<c128>(0)[i] - expected[i]) <= 1e-7 * std::abs(expected[i]));
      CHECK(r.as<double>(1)[0] == doctest::Approx(change).epsilon(1e-7));
    }
  }
  TEST_CASE("absolute value and angle have gradient 0 at 0") {
    const std::vector<c128> zeros(6);
    const auto g = run_in_eager_mode<six>(
        [](var z) {
          return std::array{grad([](var t) { return sum(abs(t)); })(z),
                            grad([](var t) { return sum(angle(t)); })(z)};
        },
        {bytes_of(zeros)});
    CHECK(g.as<c128>(0) == zeros);
    CHECK(g.as<c128>(1) == zeros);
  }
  TEST_CASE("what complex numbers do not have is a fault that names operation and type") {
    const std::array<tensor_type, 1> one{tensor_type{dtype::c64, {2}}};
    const std::string rest =
        ": x is c64[2]; complex numbers have no such operation: take abs(), "
        "real() or imag() of it";
    CHECK(fault_of([](var x) { return x < x; }, one) == "less" + rest);
    CHECK(fault_of([](var x) { return maximum(x, 0); }, one) == "maximum" + rest);
    CHECK(fault_of([](var x) { return max(x); }, one) == "max" + rest);
    CHECK(fault_of([](var x) { return argmax(x, 0); }, one) == "argmax" + rest);
    CHECK(fault_of([](var x) { return floor(x); }, one) == "floor" + rest);
    CHECK(fault_of([](var x) { return prod(x); }, one) == "prod" + rest);
    CHECK(fault_of([](var x) { return cast(x, dtype::f32); }, one) ==
          "cast: x is c64[2], which f32 cannot hold; take real(), imag() or abs() of it");
    CHECK(fault_of([](var x) { return complex(x, x); }, one) ==
          "complex: both parts must be f32 or f64 and of one shape: x is c64[2], x is c64[2]");
    CHECK(fault_of([](var x) { return grad([](var t) { return sum(t); })(x); }, one) ==
          "grad: the function returns c64[]; a gradient needs one floating-point number (sum or "
          "mean it, or use vjp)");
    const std::string apart = " is c64; take real() and imag() apart, or use jvp() or vjp()";
    CHECK(fault_of([](var x) { return jacobian([](var t) { return abs(t); })(x); }, one) ==
          "jacobian: the argument" + apart);
    CHECK(fault_of(
              [](var x) { return jacobian_reverse([](var t) { return complex(t, t); })(real(x)); },
              one) == "jacobian: the result" + apart);
    const std::array<tensor_type, 1> real_one{tensor_type{dtype::f32, {2}}};
    CHECK(fault_of([](var x) { return imag(x); }, real_one) ==
          "imag: x is f32[2], which has no imaginary part");
    CHECK(fault_of([](var x) { return angle(x); }, real_one) ==
          "angle: x is f32[2]; only complex numbers have an angle");
    CHECK(fault_of([](var x) { return real(conj(x)); }, real_one) == "no fault");
  }
  TEST_CASE("parts of samples are the samples of parts") {
    const auto f = [](var t) { return real(t) * abs(t) - imag(conj(t)) / angle(t); };
    const auto both = [f](var z) {
      return std::array{vmap(f)(z), f(z),
                        real(vmap([](var t) { return complex(abs(t), imag(t)); })(z))};
    };
    const auto r =
        run_in_eager_mode<tensor<dtype::c128, 3, 4>>(both, {bytes_of(samples<double>(12, 0.7))});
    CHECK(r.as<double>(0) == r.as<double>(1));
    CHECK(r.as<double>(2)[5] == std::abs(samples<double>(12, 0.7)[5]));
  }
  TEST_CASE("what is read in eager mode is a part") {
    const std::vector<c128> z{{1, -2}};
    using one = tensor<dtype::c128, 1>;
    run_in_eager_mode<one>(
        [](var x) {
          CHECK(imag(x).item() == -2);
          return x;
        },
        {bytes_of(z)});
    CHECK_THROWS_WITH_AS(
        run_in_eager_mode<one>(
            [](var x) {
              x.item();
              return x;
            },
            {bytes_of(z)}),
        doctest::Contains("x is c128[1], and what is read is one real number; read "
                          "real() or imag() of it"),
        model_error);
  }
  TEST_CASE("a part that is not finite is found") {
    std::vector<c128> z{{1, 0}, {1e308, 1e308}, {0, HUGE_VAL}, {0, NAN}};
    const tensor_ref all{reinterpret_cast<std::byte*>(z.data()), {dtype::c128, {4}}};
    CHECK(find_not_finite(all).infinity == 2);
    CHECK(find_not_finite(all).nan == 3);
    CHECK_FALSE(all_finite(all));
    CHECK(all_finite({all.data, {dtype::c128, {2}}}));
  }
  TEST_CASE("complex numbers are printed with both parts") {
    std::vector<c128> z{{1, -2}, {0.5, 0}};
    CHECK(to_string(tensor_ref{reinterpret_cast<std::byte*>(z.data()), {dtype::c128, {2}}}) ==
          "c128[2] {1-2i, 0.5+0i}");
  }
}
