// llsq: the squared distance of a polynomial from the sign function at evenly spaced points, and
// its gradient by the coefficients.
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// 1, x, x^2 ... as rows: [n] -> [count,n].
constexpr var powers(var x, int count) {
  const auto step = [x](var power, var) { return std::tuple{power * x, power}; };
  return std::get<1>(scan(step, ones_like(x), iota(*x.b, {dtype::f64, {count}}, 0)));
}

/// The values at t [n] of the polynomial with these coefficients [1,m]. Coefficient k stands in
/// block k / 8 at place k % 8, so that 8 powers of t, and the powers of t^8, are enough.
constexpr var polynomial(var coefficients, var t) {
  constexpr int places = 8;
  const int m = coefficients.extent(1);
  const int blocks = (m + places - 1) / places;
  if (m % places) coefficients = pad(coefficients, {0, 0}, {0, blocks * places - m});
  const var low = powers(t, places);
  const var high = powers(square(square(square(t))), blocks);
  const var in_place = tensor_dot(reshape(coefficients, {blocks, places}), high, {0}, {0});
  return sum(low * in_place, {0});
}

template <int N>
struct value_cell {
  constexpr var operator()(var coefficients) const {
    builder& b = *coefficients.b;
    const var t = iota(b, {dtype::f64, {N}}, 0) * (2.0 / (N - 1)) - 1;
    return sum(square(sign(t) - polynomial(coefficients, t))) / 2;
  }
};
template <int N>
struct gradient_cell {
  constexpr var operator()(var x) const { return grad(value_cell<N>{})(x); }
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const numbers x = e.input.at("x");
    e.with_sizes<llsq_sizes>(std::array{int(e.input.at("n")), int(x.size())}, [&]<int N, int M>() {
      e.function<vector_function<value_cell<N>, M>>("primal", x);
      e.function<vector_function<gradient_cell<N>, M>>("gradient", x);
    });
  });
}
