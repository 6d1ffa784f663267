// det: the determinant of a matrix by expansion by minors, and its gradient.
#include <bit>
#include <cella/ops/indexing.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// Expansion along the first row, for all minors of the last rows at once: set S (as bits) of
/// columns has the minor sum over c of +- a[c] minor(S without c). The tables are [n][sets].
struct expansion {
  explicit expansion(int n) {
    const unsigned sets = 1u << n;
    for (unsigned c = 0; c < unsigned(n); ++c) {
      for (unsigned s = 0; s < sets; ++s) {
        const bool odd = std::popcount(s & ((1u << c) - 1)) % 2 != 0;
        without.push_back(int(s & ~(1u << c)));
        signs.push_back(!(s >> c & 1) ? 0 : odd ? -1 : 1);
      }
    }
    none.assign(sets, 0);
    none[0] = 1;
  }
  std::vector<int> without;  ///< S without c
  numbers signs;             ///< 0 if c is not in S
  numbers none;              ///< the minors of no rows
};

/// The determinant of the matrix [1,n*n].
template <int N>
constexpr var determinant(var a, var without, var signs, var none) {
  constexpr int sets = 1 << N;
  const auto add_row = [&](var minors, var row) {
    const var smaller = reshape(gather(minors, without), {N, sets});
    return std::tuple{sum(expand_dims(row, 1) * (signs * smaller), {0})};
  };
  const auto [minors] = scan(add_row, none, reshape(a, {N, N}), {.reverse = true});
  return sum(slice(minors, 0, sets - 1, sets));
}

template <int N>
struct value_cell {
  constexpr var operator()(var a, var without, var signs, var none) const {
    return determinant<N>(a, without, signs, none);
  }
};
template <int N>
struct gradient_cell {
  constexpr var operator()(var a, var without, var signs, var none) const {
    return grad(&determinant<N>)(a, without, signs, none);
  }
};

template <template <int> class Cell, int N>
class evaluate {
 public:
  explicit evaluate(const numbers& a) : a_(a) {}
  void operator()() {
    run_(a_, tables_.without, tables_.signs, tables_.none);
    const auto y = run_.result();
    result_.assign(y.begin(), y.end());
  }
  json result() const { return result_.size() == 1 ? json(result_[0]) : json(result_); }

 private:
  static constexpr int sets = 1 << N;
  const numbers& a_;
  expansion tables_{N};
  numbers result_;
  compiled<Cell<N>, reals<1, N * N>, tensor<dtype::i32, N * sets>, reals<N, sets>, reals<sets>>
      run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const numbers a = e.input.at("A");
    e.with_sizes<det_sizes>(std::array{int(e.input.at("ell"))}, [&]<int Ell>() {
      e.function<evaluate<value_cell, Ell>>("primal", a);
      e.function<evaluate<gradient_cell, Ell>>("gradient", a);
    });
  });
}
