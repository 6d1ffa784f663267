// Branches and recursion as compiled programs, held against closed forms and the interpreter.
#include <cella/transform/recursion.hpp>
#include <cmath>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct branch {
  constexpr var operator()(var x) const {
    return cond(
        sum(x) > 0, [x] { return sum(exp(x)); }, [x] { return sum(x * x * 3); });
  }
};
/// The same as it is written in C++.
struct native_branch {
  constexpr var operator()(var x) const {
    if (sum(x) > 0) return sum(exp(x));
    return sum(x * x * 3);
  }
};
/// A branch in the body of a loop: x is doubled while it is small, then one is added.
struct branch_in_loop {
  constexpr var operator()(var x) const {
    const auto body = [](var, var y) {
      if (sum(y) < 10) return y * 2;
      return y + 1;
    };
    return sum(for_i(6, body, x));
  }
};
/// f(v) = f(v^2) / 2 until sum(v) > 10, then sum(v^2).
struct recursion {
  static constexpr auto body = [](auto self, var v) {
    return cond(
        sum(v) > 10, [v] { return sum(v * v); }, [self, v] { return self(v * v) * 0.5; });
  };
  constexpr var operator()(var x) const { return recursive(body, tensor_type{x.element(), {}}, x); }
};

const std::vector<double> up{0.5, 1, -0.25};
const std::vector<double> down{-0.5, -1, 0.25};

}  // namespace

TEST_CASE("a branch is taken by the value of its condition") {
  double sums[2]{};
  for (double v : up) sums[0] += std::exp(v);
  for (double v : down) sums[1] += 3 * v * v;
  check_close(run_compiled<value_of<branch>, 3>(up), {sums[0]});
  check_close(run_compiled<value_of<branch>, 3>(down), {sums[1]});
  check_close(run_compiled<value_of<native_branch>, 3>(up), {sums[0]});
  check_close(run_compiled<value_of<native_branch>, 3>(down), {sums[1]});
}
TEST_CASE("the gradient of a branch is that of the side that was taken") {
  const auto exponentials = each(up, [](double v) { return std::exp(v); });
  const auto lines = each(down, [](double v) { return 6 * v; });
  check_close(run_compiled<gradient_of<branch>, 3>(up), exponentials);
  check_close(run_compiled<gradient_of<branch>, 3>(down), lines);
  check_close(run_compiled<gradient_of<native_branch>, 3>(up), exponentials);
  check_close(run_compiled<gradient_of<native_branch>, 3>(down), lines);
}
TEST_CASE("the second derivative of a branch") {
  check_close(run_compiled<second_of<branch>, 3>(down),
              each(down, [](double v) { return 6 * std::cos(6 * v); }));
}
TEST_CASE("each step of a loop decides anew") {
  // 2.25 is doubled three times to 18, then grows by three ones per step and element.
  const std::vector<double> x{0.5, 1, 0.75};
  check_close(run_compiled<value_of<branch_in_loop>, 3>(x), {27});
  check_close(run_compiled<gradient_of<branch_in_loop>, 3>(x), {8, 8, 8});
}
TEST_CASE("a function calls itself until a tensor value ends it") {
  // 1.5, 2, 0.7 sum to 4.2; their squares to 6.74; those squared to 21.3: two calls.
  const std::vector<double> x{1.5, 2, 0.7};
  double wanted = 0;
  for (double v : x) wanted += std::pow(v, 8) / 4;
  check_close(run_compiled<value_of<recursion>, 3>(x), {wanted});
  check_close(run_compiled<gradient_of<recursion>, 3>(x),
              each(x, [](double v) { return 2 * std::pow(v, 7); }));
}
