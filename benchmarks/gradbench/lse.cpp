// lse: the logarithm of a sum of exponentials, and its gradient.
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/gradient.hpp>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// The largest element of a row, [1,1], by comparing halves (which overlap by one in odd rows).
constexpr var largest(var x) {
  while (x.extent(1) > 1) {
    const int n = x.extent(1);
    const int half = (n + 1) / 2;
    x = maximum(slice(x, 1, 0, half), slice(x, 1, n - half, n));
  }
  return x;
}

/// log(sum(exp(x))). The result does not depend on what is subtracted before and added after.
struct log_sum_exp {
  constexpr var operator()(var x) const {
    const var a = stop_gradient(largest(x));
    return sum(log(sum(exp(x - a))) + a);
  }
};
struct gradient_cell {
  constexpr var operator()(var x) const { return grad(log_sum_exp{})(x); }
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const numbers x = e.input.at("x");
    e.with_sizes<lse_sizes>(std::array{int(x.size())}, [&]<int N>() {
      e.function<vector_function<log_sum_exp, N>>("primal", x);
      e.function<vector_function<gradient_cell, N>>("gradient", x);
    });
  });
}
