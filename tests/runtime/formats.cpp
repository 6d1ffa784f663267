// Values that a program packs into lanes or blocks, and that somebody else reads in another shape
// or along another axis.
#include <cella/ops/convolution.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/trigonometry.hpp>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// [N] -> [N], whose products of pairs have the samples along both axes.
struct pairs_of_samples {
  constexpr var operator()(var x) const { return matmul(outer(x, tanh(x)), sin(x)); }
};
/// [N, 4, 9] -> [N, 3, 5]: a signal is an image of one row, which gets a border.
struct signals {
  constexpr var operator()(var x) const {
    return conv1d(x, reshape(mean(x, {0}), {3, 4, 3}), 2, 1, 1);
  }
};
/// [2, 8, 6, 6] -> [2, 8, 6]
struct rows_of_images {
  constexpr var operator()(var x) const {
    const window with_border{.before = {1, 1}, .after = {1, 1}};
    return tanh(sum(tanh(conv2d(x, reshape(x, {8, 8, 3, 3}), with_border)), {3}));
  }
};

}  // namespace

TEST_CASE("samples lie along two axes of what is computed with the batch in the lanes") {
  run_compiled<pairs_of_samples, 8>(some_numbers(8));
}
TEST_CASE("signals are packed into lanes as images with a border") {
  run_compiled<signals, 8, 4, 9>(some_numbers(8 * 4 * 9));
}
TEST_CASE("rows of images in blocks are summed up") {
  run_compiled<rows_of_images, 2, 8, 6, 6>(some_numbers(2 * 8 * 6 * 6));
}
