// Slices whose elements lie one after the other: every kernel reads them where they lie, at any
// offset, and they keep their values however memory is used again.
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>

#include "control_case.hpp"
#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr var row(var x, int i) { return slice(x, 0, i, i + 1); }

/// [3, 35] -> [5, 5]
struct both_factors {
  constexpr var operator()(var x) const {
    return matmul(reshape(row(x, 1), {5, 7}), reshape(row(x, 2), {7, 5}));
  }
};
/// The same of values that are computed first, while others come and go.
struct factors_of_computed {
  constexpr var operator()(var x) const {
    const var y = exp(x);
    const var z = matmul(y, y, false, true);
    const var w = matmul(z, sin(x));
    const var product = matmul(reshape(row(y, 1), {5, 7}), reshape(row(y, 2), {7, 5}));
    return product + sum(w) + sum(softmax(w));
  }
};
/// A piece of a piece under another shape.
struct piece_of_piece {
  constexpr var operator()(var x) const {
    const var cube = reshape(row(exp(x), 1), {5, 7});
    const var inner = slice(cube, 0, 1, 4);
    return matmul(inner, inner, false, true);
  }
};
struct sums {
  constexpr var operator()(var x) const {
    const var part = reshape(row(x, 1), {5, 7});
    return concat({reshape(sum(part, {0}), {7}), reshape(sum(part, {1}), {5})}, 0);
  }
};
struct softmax_of_part {
  constexpr var operator()(var x) const { return softmax(reshape(row(x, 2), {5, 7})); }
};
struct transposed_part {
  constexpr var operator()(var x) const { return transpose(reshape(row(x, 2), {5, 7})); }
};
/// What is read once for all rows, and once for each.
struct broadcast_part {
  constexpr var operator()(var x) const {
    return exp(x) * row(x, 1) + slice(slice(x, 0, 2, 3), 1, 4, 5);
  }
};
/// Rows of a table that is a part, at places that are a part.
struct gathered {
  constexpr var operator()(var x) const {
    const var places = cast(abs(row(x, 0)) * 4, dtype::i32);
    return gather(reshape(row(x, 1), {5, 7}), slice(reshape(places, {35}), 0, 3, 6));
  }
};
/// [2, 75] -> an image's convolution with nine numbers of the other.
struct convolved {
  constexpr var operator()(var x) const {
    const var image = reshape(row(x, 1), {1, 3, 5, 5});
    const var filter = reshape(slice(row(x, 0), 1, 13, 40), {1, 3, 3, 3});
    return conv2d(image, filter);
  }
};
/// Kernels compute the pieces of a concatenation in their places.
struct pieces {
  constexpr var operator()(var x) const {
    const var a = reshape(row(x, 1), {5, 7}), b = reshape(row(x, 2), {5, 7});
    const var product = matmul(a, b, false, true);
    return concat({reshape(product, {25}), sum(x, {0}), reshape(transpose(softmax(a)), {35}),
                   reshape(exp(product) * 2, {25})},
                  0);
  }
};
/// One piece comes twice, and one is a result by itself: those are copied.
struct repeated_piece {
  constexpr std::array<var, 2> operator()(var x) const {
    const var a = sum(x, {0}), b = sum(exp(x), {0});
    return {concat({a, b, a}, 0), concat({b * 2, a}, 0)};
  }
};
/// Inside a loop: parts of the state and of what stays the same.
struct in_a_loop {
  constexpr var operator()(var x) const {
    const auto body = [&](var, var s) {
      const var a = reshape(row(s, 1), {5, 7}), b = reshape(row(x, 2), {5, 7});
      return s * 0.5 + mean(matmul(a, b, false, true));
    };
    return for_i(3, body, x);
  }
};
/// A part is a result, too.
struct returned {
  constexpr var operator()(var x) const { return row(exp(x), 1); }
};

/// Yields a part of the state's old value by a product, and replaces the state.
struct replaced {
  state<3, 4> kept{initializer::constant(2)};
  constexpr std::array<var, 2> operator()(var x) const {
    const var old = operand(kept).in(*x.b);
    const var part = reshape(slice(old, 0, 1, 2), {2, 2});
    assign(x, kept, old * 2 + sum(x));
    return {matmul(part, x), row(old, 2)};
  }
};
/// One vector holds two layers; a step down its gradient replaces it.
struct layers_in_one {
  parameter<21> weights{};
  constexpr var operator()(var x) const {
    const var w = operand(weights).in(*x.b);
    const auto loss = [&](var all) {
      const var first = reshape(slice(all, 0, 1, 13), {3, 4});
      const var second = reshape(slice(all, 0, 13, 21), {4, 2});
      return sum(square(matmul(tanh(matmul(x, first)), second))) + sum(row(all, 0));
    };
    const var g = grad(loss)(w);
    assign(x, weights, w - g * 0.1);
    return loss(w);
  }
};

template <class F>
struct sum_of {
  constexpr var operator()(var x) const { return sum(square(F{}(x))); }
};

}  // namespace

TEST_CASE_TEMPLATE("a kernel reads a part of rows where it lies", Cell, both_factors,
                   factors_of_computed, piece_of_piece, sums, softmax_of_part, transposed_part,
                   broadcast_part, gathered, in_a_loop, returned, pieces, repeated_piece) {
  run_compiled<Cell, 3, 35>(some_numbers(105));
}
TEST_CASE("nothing is copied for it") {
  CHECK(steps_of_kind<both_factors, 3, 35>(step_kind::generic) == 0);
  CHECK(steps_of_kind<factors_of_computed, 3, 35>(step_kind::generic) == 0);
  CHECK(steps_of_kind<piece_of_piece, 3, 35>(step_kind::generic) == 0);
  CHECK(steps_of_kind<transposed_part, 3, 35>(step_kind::generic) == 0);
  CHECK(steps_of_kind<pieces, 3, 35>(step_kind::generic) == 0);
}
TEST_CASE("so does a convolution, of the image and of the filter") {
  run_compiled<convolved, 2, 75>(some_numbers(150));
}
TEST_CASE("their gradients") {
  run_compiled<gradient_of<sum_of<both_factors>>, 3, 35>(some_numbers(105));
  run_compiled<gradient_of<sum_of<piece_of_piece>>, 3, 35>(some_numbers(105));
  run_compiled<gradient_of<sum_of<convolved>>, 2, 75>(some_numbers(150));
}
TEST_CASE("a part of a state is its old value, whenever the state is replaced") {
  check_cell<replaced, f64<2, 2>>({{1, 2, 3, 4}}, 3, 1e-12);
}
TEST_CASE("parameters in one vector are trained in place") {
  check_cell<layers_in_one, f64<5, 3>>({some_numbers(15)}, 4, 1e-12);
}
