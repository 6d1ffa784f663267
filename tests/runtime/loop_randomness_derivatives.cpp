// Derivatives of loops whose steps draw random numbers: the backward pass sees the numbers of the
// forward pass.
#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cmath>

#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Something curved of the masked values, along a loop.
template <bool Checkpoint, bool Recompute = false>
struct scan_loss {
  static constexpr var loss(var x) {
    const auto step = [](var h, var row) {
      const auto cell = [](var a, var r) { return tanh(a * 0.5 + dropout(r * a + r, 0.25)); };
      const var next = Checkpoint ? checkpoint(cell)(h, row) : cell(h, row);
      return std::tuple{next, sum(square(next))};
    };
    return sum(std::get<1>(scan(step, zeros(x, {8}), x, {.recompute = Recompute})));
  }
};
using recomputed_loss = scan_loss<false, true>;
struct while_loss {
  static constexpr var loss(var x) {
    const auto goes_on = [](var i, var) { return i < 5; };
    const auto body = [](var i, var h) {
      return std::tuple{i + 1, tanh(dropout(h * 1.5 + 0.1, 0.25))};
    };
    return sum(square(std::get<1>(while_loop(goes_on, body, std::tuple{number(x, 0), x}))));
  }
};
struct bounded_loss {
  static constexpr var loss(var x) {
    const auto goes_on = [](var i, var h) { return sum(dropout(h, 0.5)) * 1e-9 + i < 4.5; };
    const auto body = [](var i, var h) {
      return std::tuple{i + 1, tanh(dropout(h * 1.5 + 0.1, 0.25))};
    };
    const auto r = while_loop(goes_on, body, std::tuple{number(x, 0), x}, {.max_steps = 9});
    return sum(square(std::get<1>(r)));
  }
};
struct nested_loss {
  static constexpr var loss(var x) {
    const auto outer = [](var, var h) {
      const auto inner = [](var, var v) { return sin(dropout(v * 1.2 + 0.2, 0.25)); };
      return for_i(3, inner, dropout(h, 0.1));
    };
    return sum(square(for_i(3, outer, x)));
  }
};
struct recursion_loss {
  static constexpr var loss(var x) {
    const auto f = [](auto self, var n, var v) -> var {
      const var y = sin(dropout(v * 1.2 + 0.2, 0.25));
      if (!(n > 0.5)) return y;
      const var first = self(n - 1, y);
      return first + self(n - 1, y * 0.5);
    };
    return sum(square(recursive(f, x.type(), number(x, 2), x)));
  }
};
/// The same by name: its sums differ in sign only.
constexpr var tree(var v, var n) {
  const var y = sin(dropout(v * 1.2 + 0.2, 0.25));
  if (!(n > 0.5)) return y;
  const var first = call<tree>(y, n - 1);
  return first - call<tree>(y * 0.5, n - 1);
}
struct named_loss {
  static constexpr var loss(var x) { return sum(square(call<tree>(x, number(x, 2)))); }
};
struct chain_loss {
  static constexpr var loss(var x) {
    const auto block = [](var v) {
      const var skipped = dropout(v, 0.25);
      return tanh(dropout(v * 1.3 + 0.1, 0.25)) + skipped;
    };
    for (int i = 0; i < 3; ++i) x = checkpoint(block)(x);
    return sum(square(x));
  }
};
struct vmap_loss {
  static constexpr var loss(var x) {
    return sum(vmap([](var row) {
      return scan_loss<false>::loss(reshape(row, {2, 8}));
    })(reshape(x, {-1, 16})));
  }
};

template <class F>
struct value_of {
  constexpr var operator()(var x) const { return F::loss(x); }
};
template <class F>
struct gradient_of {
  constexpr var operator()(var x) const { return grad(&F::loss)(x); }
};
template <class F>
struct forward_of {
  constexpr var operator()(var x) const { return jvp(&F::loss, x, x * 0.5).second; }
};
/// Each element is the sum of all, or dropped.
constexpr var dropped_sums(var v) { return dropout(broadcast_to(sum(v), v.shape()), 0.5); }
struct jacobian_of {
  constexpr var operator()(var x) const { return jacobian_forward(&dropped_sums)(x); }
};
struct reverse_jacobian_of {
  constexpr var operator()(var x) const { return jacobian_reverse(&dropped_sums)(x); }
};

/// The seed alone decides the masks, so the difference quotient is of one function.
template <class F, int... Extents>
void check_derivatives() {
  const auto n = std::size_t((Extents * ...));
  generator random(3);
  reals x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(random.uniform(-1.0, 1.0));
  const ways_of_cell<value_of<F>, f64<Extents...>> value;
  const reals gradient = check_cell<gradient_of<F>, f64<Extents...>>({x}, 1, 1e-12).results[0];
  REQUIRE(gradient.size() == n);
  double along = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double step = 1e-5;
    reals up = x, down = x;
    up[i] += step;
    down[i] -= step;
    const double slope =
        (value.traced({up}).results[0][0] - value.traced({down}).results[0][0]) / (2 * step);
    CHECK(gradient[i] == doctest::Approx(slope).epsilon(1e-6));
    along += gradient[i] * x[i] * 0.5;
  }
  const auto forward = check_cell<forward_of<F>, f64<Extents...>>({x}, 1, 1e-12);
  CHECK(forward.results[0][0] == doctest::Approx(along).epsilon(1e-10));
}

}  // namespace

TEST_CASE_TEMPLATE("the derivatives of a scan see the masks of its steps", F, scan_loss<false>,
                   scan_loss<true>, recomputed_loss) {
  check_derivatives<F, 4, 8>();
}
TEST_CASE_TEMPLATE("the derivatives of a while loop see the masks of its steps", F, while_loss,
                   bounded_loss) {
  check_derivatives<F, 8>();
}
TEST_CASE("the derivatives of nested loops see the masks of their steps") {
  check_derivatives<nested_loss, 8>();
}
TEST_CASE("the derivatives of a recursion see the masks of its calls") {
  check_derivatives<recursion_loss, 8>();
}
TEST_CASE("the derivatives of a function by name see the masks of its calls") {
  check_derivatives<named_loss, 8>();
}
TEST_CASE("a checkpoint computes with the same masks again") { check_derivatives<chain_loss, 8>(); }
TEST_CASE("the derivatives of batched loops see the masks of each sample") {
  check_derivatives<vmap_loss, 3, 16>();
}
TEST_CASE("all directions of a jacobian see one mask") {
  const reals j = check_cell<jacobian_of, f64<40>>({reals(40, 1.0)}).results[0];
  int kept = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t k = 1; k < 40; ++k) CHECK(j[i * 40 + k] == j[i * 40]);
    kept += j[i * 40] == 2;
  }
  CHECK(kept > 5);
  CHECK(kept < 35);
  // By either mode the same.
  CHECK(j == check_cell<reverse_jacobian_of, f64<40>>({reals(40, 1.0)}).results[0]);
}
