// Loops as compiled programs, held against closed forms and the interpreter.
#include <cella/ops/slicing.hpp>
#include <cmath>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// y_t = y_{t-1} / 2 + x_t; the sum of the squares of all y.
struct decaying_sum {
  static constexpr auto step(var y, var x) {
    const var next = y * 0.5 + x;
    return std::tuple{next, next * next};
  }
  constexpr var operator()(var x) const {
    return sum(std::get<1>(scan(&step, constant(*x.b, 0, {x.element(), {}}), x)));
  }
};
double decaying_sum_of(const std::vector<double>& x) {
  double y = 0;
  double total = 0;
  for (double v : x) {
    y = y / 2 + v;
    total += y * y;
  }
  return total;
}
/// Backwards: a carry for the sum of what follows.
std::vector<double> decaying_gradient(const std::vector<double>& x) {
  std::vector<double> y(x.size());
  std::vector<double> g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (i ? y[i - 1] / 2 : 0) + x[i];
  for (std::size_t i = x.size(); i-- > 0;) g[i] = 2 * y[i] + (i + 1 < x.size() ? g[i + 1] / 2 : 0);
  return g;
}

/// 1, 1, 2, 3, 5 ... times x: both carries change places.
struct fibonacci {
  constexpr var operator()(var x) const {
    const auto step = [](var, auto pair) {
      const auto [a, b] = pair;
      return std::tuple{b, a + b};
    };
    return std::get<0>(for_i(10, step, std::tuple{x, x}));
  }
};

/// Square roots by Newton's method; the trip count depends on the values.
struct root {
  constexpr var operator()(var x) const {
    const auto far = [x](var y) {
      const var d = y * y - x;
      return sum(d * d) > 1e-24;
    };
    const auto nearer = [x](var y) { return (y + x / y) * 0.5; };
    return sum(while_loop(far, nearer, ones_like(x)));
  }
};
/// The same with room for 40 steps, so that nothing grows.
struct bounded_root {
  constexpr var operator()(var x) const {
    const auto far = [x](var y) {
      const var d = y * y - x;
      return sum(d * d) > 1e-24;
    };
    const auto nearer = [x](var y) { return (y + x / y) * 0.5; };
    return sum(while_loop(far, nearer, ones_like(x), {.max_steps = 40}));
  }
};

/// A loop that yields both carries as they were before each turn, one of them twice. The matrices
/// are too large for registers.
template <bool Reverse>
struct recorded_carries {
  constexpr var operator()(var x) const {
    const auto step = [](std::tuple<var, var> carries, var u) {
      const auto [a, b] = carries;
      return std::tuple{std::tuple{tanh(matmul(a, u)), b + a}, std::tuple{a, b, a}};
    };
    const var start = reshape(slice(x, 0, 0, 1), {8, 8});
    const auto [last, all] = scan(step, std::tuple{start, start * 2}, x, {.reverse = Reverse});
    const auto [first_record, second_record, again] = all;
    return concat({first_record, second_record, again, expand_dims(std::get<0>(last), 0),
                   expand_dims(std::get<1>(last), 0)},
                  0);
  }
};
template <int Length, bool Reverse>
std::vector<double> run_recorded_carries() {
  std::vector<double> x(Length * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i * 7 % 23) / 23 - 0.4;
  return run_compiled<recorded_carries<Reverse>, Length, 8, 8>(x);
}

/// A loop inside a loop: x^(1 + 2 + 3) by multiplication.
struct nested {
  constexpr var operator()(var x) const {
    const auto outer = [x](var power, var) {
      const auto inner = [x](var, var p) { return p * x; };
      const var p = for_i(3, inner, power);
      return std::tuple{p, p};
    };
    return sum(std::get<0>(scan(outer, ones_like(x), constant(*x.b, 1, {x.element(), {2}}))));
  }
};

/// One value is the next of both carries, and then the second of them is another shape of it.
struct equal_carries {
  constexpr var operator()(var x) const {
    const auto body = [](var, auto s) {
      const var next = tanh(std::get<0>(s) * std::get<1>(s) + 1);
      return std::tuple{next, next};
    };
    const auto [a, b] = for_i(3, body, std::tuple{x, x * 0.5});
    const auto product = [](var, auto s) {
      const auto [row, column] = s;
      return std::tuple{sin(column),
                        reshape(matmul(reshape(row, {1, 80}), outer(column, column)), {80})};
    };
    const auto [c, d] = for_i(2, product, std::tuple{a, b * 0.1});
    return c * 10 + d;
  }
};

const std::vector<double> some{1.5, 2, 0.7, 3};

}  // namespace

TEST_CASE("a scan runs its body once per slice") {
  check_close(run_compiled<value_of<decaying_sum>, 4>(some), {decaying_sum_of(some)});
}
TEST_CASE("the gradient of a scan runs backwards over what the steps stored") {
  check_close(run_compiled<gradient_of<decaying_sum>, 4>(some), decaying_gradient(some));
}
TEST_CASE("the second derivative of a scan") {
  // The sum is quadratic, x' A x, so the gradient of sum(sin(2 A x)) is 2 A cos(2 A x).
  const auto cosines = each(decaying_gradient(some), [](double g) { return std::cos(g); });
  check_close(run_compiled<second_of<decaying_sum>, 4>(some), decaying_gradient(cosines));
}
TEST_CASE("carries that change places keep their values") {
  check_close(run_compiled<value_of<fibonacci>, 2>({1, 2}), {89, 178});
}
TEST_CASE("carries that take the same value, or a shape of it, are all written") {
  std::vector<double> x(80), expected;
  for (std::size_t i = 0; i < 80; ++i) x[i] = std::sin(double(i));
  std::vector<double> a = x, b = each(x, [](double v) { return v * 0.5; });
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < 80; ++i) a[i] = b[i] = std::tanh(a[i] * b[i] + 1);
  }
  for (double& v : b) v *= 0.1;
  for (int turn = 0; turn < 2; ++turn) {
    double dot = 0;
    for (std::size_t i = 0; i < 80; ++i) dot += a[i] * b[i];
    a = each(b, [](double v) { return std::sin(v); });
    for (double& v : b) v *= dot;
  }
  for (std::size_t i = 0; i < 80; ++i) expected.push_back(a[i] * 10 + b[i]);
  check_close(run_compiled<value_of<equal_carries>, 80>(x), expected);
}
TEST_CASE("a while loop ends when its condition fails") {
  double roots = 0;
  for (double v : some) roots += std::sqrt(v);
  check_close(run_compiled<value_of<root>, 4>(some), {roots});
  check_close(run_compiled<value_of<bounded_root>, 4>(some), {roots});
}
TEST_CASE("the gradient of a while loop goes back over as many steps as were taken") {
  const auto wanted = each(some, [](double v) { return 0.5 / std::sqrt(v); });
  check_close(run_compiled<gradient_of<root>, 4>(some), wanted);
  check_close(run_compiled<gradient_of<bounded_root>, 4>(some), wanted);
}
TEST_CASE("the second derivative of a while loop") {
  // g = x^(-1/2) / 2, so d sin(g) = cos(g) g', g' = -x^(-3/2) / 4.
  check_close(run_compiled<second_of<root>, 4>(some), each(some, [](double v) {
                return std::cos(0.5 / std::sqrt(v)) * -0.25 * std::pow(v, -1.5);
              }));
}
TEST_CASE("loops nest") {
  double powers = 0;
  for (double v : some) powers += std::pow(v, 6);
  check_close(run_compiled<value_of<nested>, 4>(some), {powers});
  check_close(run_compiled<gradient_of<nested>, 4>(some),
              each(some, [](double v) { return 6 * std::pow(v, 5); }));
}

TEST_CASE("carries that are recorded move along their records") {
  const auto five = run_recorded_carries<5, false>();
  CHECK(five.size() == 17 * 64);
  // What the record of the second carry holds: the start, and then the sums of the first.
  for (std::size_t i = 0; i < 64; ++i) CHECK(five[(5 + 1) * 64 + i] == five[5 * 64 + i] * 1.5);
  run_recorded_carries<5, true>();
  run_recorded_carries<1, false>();
  run_recorded_carries<1, true>();
}
