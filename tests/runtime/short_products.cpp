// Products of few summands, which the loops that read them sum up.
#include <cella/ops/activation.hpp>
#include <cella/ops/slicing.hpp>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Two matrices in one vector.
template <int Rows, int Depth, int Columns>
struct factors {
  constexpr var left(var x) const { return reshape(slice(x, 0, 0, Rows * Depth), {Rows, Depth}); }
  constexpr var right(var x) const {
    return reshape(slice(x, 0, Rows * Depth, (Rows + Columns) * Depth), {Depth, Columns});
  }
};
template <int Rows, int Depth, int Columns>
struct fused : factors<Rows, Depth, Columns> {
  constexpr var operator()(var x) const {
    return tanh(matmul(this->left(x), this->right(x)) + 0.5) * 2;
  }
};
/// The vector that loops run along belongs to the left factor.
template <int Rows, int Depth, int Columns>
struct exchanged : factors<Rows, Depth, Columns> {
  constexpr var operator()(var x) const {
    const var a = transpose(this->left(x));  // [Depth,Rows]
    return exp(transpose(matmul(transpose(this->right(x)), a)));
  }
};
/// Two products and what was there before, in one sweep.
struct chained {
  constexpr var operator()(var x) const {
    const var a = reshape(slice(x, 0, 0, 60), {5, 3, 4});
    const var b = reshape(slice(x, 0, 60, 240), {5, 4, 9});
    const var c = reshape(slice(x, 0, 100, 160), {5, 4, 3});
    const var d = reshape(slice(x, 0, 0, 135), {5, 3, 9});
    return d + matmul(a, b) * 2 - matmul(c, b, true, false);
  }
};
/// A longer one, one whose factor the nearest cache does not keep, and one that a sum reads have
/// kernels of their own.
struct longer : factors<3, 9, 16> {
  constexpr var operator()(var x) const { return exp(matmul(left(x), right(x))); }
};
struct wide : factors<3, 4, 600> {
  constexpr var operator()(var x) const { return exp(matmul(left(x), right(x))); }
};
struct summed : factors<3, 4, 16> {
  constexpr var operator()(var x) const { return sum(matmul(left(x), right(x)), {0}); }
};

/// Against sums in a plain loop.
template <int Rows, int Depth, int Columns>
void check() {
  constexpr int size = (Rows + Columns) * Depth;
  const auto x = some_numbers(size);
  using cell = fused<Rows, Depth, Columns>;
  CHECK(steps_of_kind<cell, size>(step_kind::product) == 0);
  const auto y = run_compiled<cell, size>(x);
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Columns; ++j) {
      double total = 0.5;
      for (int k = 0; k < Depth; ++k)
        total += x[std::size_t(i * Depth + k)] * x[std::size_t(Rows * Depth + k * Columns + j)];
      CHECK(y[std::size_t(i * Columns + j)] == doctest::Approx(2 * std::tanh(total)));
    }
  }
}

}  // namespace

TEST_CASE("a product of few summands is summed up by the loops that read it") {
  check<5, 2, 8>();
  check<1, 3, 9>();
  check<3, 4, 17>();
  check<7, 5, 23>();
  check<4, 8, 31>();
}
TEST_CASE("either factor may be the one that loops run along") {
  run_compiled<exchanged<9, 3, 8>, 51>(some_numbers(51));
  run_compiled<exchanged<17, 4, 2>, 76>(some_numbers(76));
}
TEST_CASE("products of a batch are added in one sweep") {
  CHECK(steps_of_kind<chained, 240>(step_kind::elementwise) == 1);
  run_compiled<chained, 240>(some_numbers(240));
}
TEST_CASE("others have a kernel of their own") {
  CHECK(steps_of_kind<longer, 171>(step_kind::product) == 1);
  CHECK(steps_of_kind<wide, 2412>(step_kind::product) == 1);
  run_compiled<longer, 171>(some_numbers(171));
  run_compiled<summed, 76>(some_numbers(76));
}
