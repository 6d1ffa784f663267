#include "rows.hpp"

#include <cella/nn/activations.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/bitwise.hpp>
#include <cella/ops/diagonal.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/image.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/pooling_nd.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/put_rows.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/ops/regions.hpp>
#include <cella/ops/resampling.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/sparse.hpp>
#include <cella/ops/special.hpp>
#include <cella/ops/statistics.hpp>

namespace cella::benchmark {

namespace {

using v = const list<var>&;

class table {
 public:
  explicit table(bool large)
      : vector(large ? shape{1000000} : shape{1000}),
        matrix(large ? shape{1000, 1000} : shape{25, 40}),
        image(large ? shape{4, 10, 160, 160} : shape{1, 10, 10, 10}),
        side(large ? 256 : 32) {}

  void elementwise();
  void comparisons();
  void reductions();
  void cumulative();
  void movement();
  void sorting();
  void indexing();
  void normalization();
  void pooling();
  void linear_algebra();
  void fourier();
  void random_numbers();
  void sparse();
  std::vector<operation_row> rows;

 private:
  static operand_form reals(const shape& s, double low = -2, double high = 2) {
    return {{dtype::f32, s}, low, high};
  }
  static operand_form indices(const shape& s, int below) {
    return {{dtype::i32, s}, 0, double(below)};
  }

  void add(std::string name, std::vector<operand_form> in, std::function<var(v)> call) {
    rows.push_back({std::move(name), family_, std::move(in), std::move(call)});
  }
  /// Of one vector of numbers.
  template <class F>
  void unary(std::string name, F f, double low = -2, double high = 2) {
    add(std::move(name), {reals(vector, low, high)}, [f](v x) { return f(x[0]); });
  }
  /// Of two.
  template <class F>
  void binary(std::string name, F f, double low = -2, double high = 2) {
    add(std::move(name), {reals(vector, low, high), reals(vector, low, high)},
        [f](v x) { return f(x[0], x[1]); });
  }
  template <class F>
  void of_matrix(std::string name, F f, double low = -2, double high = 2) {
    add(std::move(name), {reals(matrix, low, high)}, [f](v x) { return f(x[0]); });
  }
  template <class F>
  void of_image(std::string name, F f) {
    add(std::move(name), {reals(image)}, [f](v x) { return f(x[0]); });
  }

  shape vector, matrix, image;
  int side;  ///< of square matrices
  std::string family_;
};

void table::elementwise() {
  family_ = "elementwise";
  unary("neg", [](var x) { return -x; });
  unary("abs", [](var x) { return abs(x); });
  unary("sign", [](var x) { return sign(x); });
  unary("square", [](var x) { return square(x); });
  unary(
      "sqrt", [](var x) { return sqrt(x); }, 0, 2);
  unary(
      "rsqrt", [](var x) { return rsqrt(x); }, 0.1, 2);
  unary("exp", [](var x) { return exp(x); });
  unary("exp2", [](var x) { return exp2(x); });
  unary("expm1", [](var x) { return expm1(x); });
  unary(
      "log", [](var x) { return log(x); }, 0.1, 9);
  unary(
      "log1p", [](var x) { return log1p(x); }, -0.9, 9);
  unary(
      "log2", [](var x) { return log2(x); }, 0.1, 9);
  unary(
      "log10", [](var x) { return log10(x); }, 0.1, 9);
  unary(
      "sin", [](var x) { return sin(x); }, -9, 9);
  unary(
      "cos", [](var x) { return cos(x); }, -9, 9);
  unary("tan", [](var x) { return tan(x); });
  unary(
      "asin", [](var x) { return asin(x); }, -1, 1);
  unary(
      "acos", [](var x) { return acos(x); }, -1, 1);
  unary("atan", [](var x) { return atan(x); });
  unary("sinh", [](var x) { return sinh(x); });
  unary("cosh", [](var x) { return cosh(x); });
  unary("tanh", [](var x) { return tanh(x); });
  unary("asinh", [](var x) { return asinh(x); });
  unary(
      "acosh", [](var x) { return acosh(x); }, 1.1, 9);
  unary(
      "atanh", [](var x) { return atanh(x); }, -0.9, 0.9);
  unary("erf", [](var x) { return erf(x); });
  unary("erfc", [](var x) { return erfc(x); });
  unary(
      "erfinv", [](var x) { return erfinv(x); }, -0.9, 0.9);
  unary(
      "lgamma", [](var x) { return lgamma(x); }, 0.1, 9);
  unary(
      "digamma", [](var x) { return digamma(x); }, 0.1, 9);
  unary("i0e", [](var x) { return i0e(x); });
  unary("i1e", [](var x) { return i1e(x); });
  unary(
      "floor", [](var x) { return floor(x); }, -9, 9);
  unary(
      "ceil", [](var x) { return ceil(x); }, -9, 9);
  unary(
      "round", [](var x) { return round(x); }, -9, 9);
  unary(
      "trunc", [](var x) { return trunc(x); }, -9, 9);
  unary("sigmoid", [](var x) { return sigmoid(x); });
  unary("relu", [](var x) { return relu(x); });
  unary("softplus", [](var x) { return softplus(x); });
  unary("gelu", [](var x) { return gelu(x); });
  unary("gelu_tanh", [](var x) { return gelu_tanh(x); });
  unary("silu", [](var x) { return silu(x); });
  unary("mish", [](var x) { return mish(x); });
  unary("elu", [](var x) { return elu(x); });
  unary("selu", [](var x) { return selu(x); });
  unary("leaky_relu", [](var x) { return leaky_relu(x); });
  unary(
      "hard_sigmoid", [](var x) { return hard_sigmoid(x); }, -4, 4);
  unary(
      "hard_swish", [](var x) { return hard_swish(x); }, -4, 4);
  unary("clamp", [](var x) { return clamp(x, -1, 1); });
  unary("nan_to_num", [](var x) { return nan_to_num(x, 0, 9); });
  unary(
      "cast to i32", [](var x) { return cast(x, dtype::i32); }, -9, 9);
  unary("cast to bf16", [](var x) { return cast(x, dtype::bf16); });
  binary("add", [](var x, var y) { return x + y; });
  binary("sub", [](var x, var y) { return x - y; });
  binary("mul", [](var x, var y) { return x * y; });
  binary(
      "div", [](var x, var y) { return x / y; }, 0.1, 9);
  binary(
      "pow", [](var x, var y) { return pow(x, y); }, 0.1, 3);
  binary("atan2", [](var x, var y) { return atan2(x, y); });
  binary("hypot", [](var x, var y) { return hypot(x, y); });
  binary("logaddexp", [](var x, var y) { return logaddexp(x, y); });
  binary("maximum", [](var x, var y) { return maximum(x, y); });
  binary("minimum", [](var x, var y) { return minimum(x, y); });
  binary(
      "mod", [](var x, var y) { return mod(x, y); }, 0.1, 9);
  binary(
      "fmod", [](var x, var y) { return fmod(x, y); }, 0.1, 9);
  binary(
      "floor_div", [](var x, var y) { return floor_div(x, y); }, 0.1, 9);
}

void table::comparisons() {
  family_ = "comparison, logical, bitwise";
  binary("equal", [](var x, var y) { return equal(x, y); });
  binary("less", [](var x, var y) { return less(x, y); });
  binary("greater_equal", [](var x, var y) { return greater_equal(x, y); });
  unary("is_nan", [](var x) { return is_nan(x); });
  unary("is_finite", [](var x) { return is_finite(x); });
  const operand_form truths{{dtype::boolean, vector}, 0, 2};
  add("logical_and", {truths, truths}, [](v x) { return logical_and(x[0], x[1]); });
  add("logical_or", {truths, truths}, [](v x) { return logical_or(x[0], x[1]); });
  add("logical_not", {truths}, [](v x) { return logical_not(x[0]); });
  add("where", {truths, reals(vector), reals(vector)},
      [](v x) { return select(x[0], x[1], x[2]); });
  const operand_form words = indices(vector, 1000);
  add("add of i32", {words, words}, [](v x) { return x[0] + x[1]; });
  add("mul of i32", {words, words}, [](v x) { return x[0] * x[1]; });
  add("bitwise_and", {words, words}, [](v x) { return bitwise_and(x[0], x[1]); });
  add("bitwise_or", {words, words}, [](v x) { return bitwise_or(x[0], x[1]); });
  add("bitwise_xor", {words, words}, [](v x) { return bitwise_xor(x[0], x[1]); });
  add("bitwise_not", {words}, [](v x) { return bitwise_not(x[0]); });
  add("left_shift", {words, indices(vector, 8)}, [](v x) { return left_shift(x[0], x[1]); });
  add("right_shift", {words, indices(vector, 8)}, [](v x) { return right_shift(x[0], x[1]); });
}

void table::reductions() {
  family_ = "reduction";
  of_matrix("sum", [](var x) { return sum(x); });
  of_matrix("sum, axis 0", [](var x) { return sum(x, {0}); });
  of_matrix("sum, axis 1", [](var x) { return sum(x, {1}); });
  of_matrix("mean, axis 1", [](var x) { return mean(x, {1}); });
  of_matrix(
      "prod", [](var x) { return prod(x); }, 0.99, 1.01);
  of_matrix(
      "prod, axis 0", [](var x) { return prod(x, {0}); }, 0.9, 1.1);
  of_matrix(
      "prod, axis 1", [](var x) { return prod(x, {1}); }, 0.9, 1.1);
  of_matrix("max", [](var x) { return max(x); });
  of_matrix("max, axis 0", [](var x) { return max(x, {0}); });
  of_matrix("max, axis 1", [](var x) { return max(x, {1}); });
  of_matrix("min, axis 1", [](var x) { return min(x, {1}); });
  of_matrix("argmax, axis 0", [](var x) { return argmax(x, 0); });
  of_matrix("argmax, axis 1", [](var x) { return argmax(x, 1); });
  of_matrix("argmin, axis 1", [](var x) { return argmin(x, 1); });
  const operand_form truths{{dtype::boolean, matrix}, 0, 2};
  add("any, axis 1", {truths}, [](v x) { return any(x[0], {1}); });
  add("all, axis 0", {truths}, [](v x) { return all(x[0], {0}); });
  of_matrix("count_nonzero", [](var x) { return count_nonzero(x); });
  of_matrix("logsumexp, axis 1", [](var x) { return logsumexp(x, {1}); });
  of_matrix("variance, axis 0", [](var x) { return variance(x, {0}); });
  of_matrix("variance, axis 1", [](var x) { return variance(x, {1}); });
  of_matrix("standard_deviation", [](var x) { return standard_deviation(x); });
  of_matrix("l2_norm, axis 1", [](var x) { return l2_norm(x, {1}); });
  of_matrix("vector_norm of order 1", [](var x) { return vector_norm(x, 1, {1}); });
  of_matrix("median, axis 1", [](var x) { return median(x, 1); });
  of_matrix("quantile, axis 1", [](var x) { return quantile(x, 0.3, 1); });
  unary("histogram", [](var x) { return histogram(x, 50, -2, 2); });
  add("bincount", {indices(vector, 100)}, [](v x) { return bincount(x[0], 100); });
}

void table::cumulative() {
  family_ = "cumulative";
  unary("cumsum", [](var x) { return cumsum(x, 0); });
  of_matrix("cumsum, axis 0", [](var x) { return cumsum(x, 0); });
  of_matrix("cumsum, axis 1", [](var x) { return cumsum(x, 1); });
  of_matrix("cumsum, reversed", [](var x) { return cumsum(x, 1, true); });
  unary(
      "cumprod", [](var x) { return cumprod(x, 0); }, 0.99, 1.01);
  of_matrix(
      "cumprod, axis 0", [](var x) { return cumprod(x, 0); }, 0.9, 1.1);
  of_matrix(
      "cumprod, axis 1", [](var x) { return cumprod(x, 1); }, 0.9, 1.1);
  of_matrix("cummax, axis 0", [](var x) { return cummax(x, 0); });
  of_matrix("cummax, axis 1", [](var x) { return cummax(x, 1); });
  of_matrix("cummin, axis 1", [](var x) { return cummin(x, 1); });
  of_matrix("diff", [](var x) { return diff(x, 1); });
}

void table::movement() {
  family_ = "movement";
  of_matrix("transpose", [](var x) { return transpose(x); });
  of_image("transpose to channels last", [](var x) { return transpose(x, {0, 2, 3, 1}); });
  add("concat, axis 0", {reals(matrix), reals(matrix)}, [](v x) {
    return concat({x[0], x[1]}, 0);
  });
  add("concat, axis 1", {reals(matrix), reals(matrix)}, [](v x) {
    return concat({x[0], x[1]}, 1);
  });
  add("stack", {reals(vector), reals(vector)}, [](v x) { return stack({x[0], x[1]}, 1); });
  of_matrix("tile", [](var x) { return tile(x, {2, 2}); });
  of_matrix("repeat", [](var x) { return repeat(x, 2, 1); });
  of_matrix("slice", [](var x) { return slice(x, 1, 1, x.extent(1) - 1); });
  of_matrix("slice of every other", [](var x) { return slice(x, 1, 0, x.extent(1), 2); });
  of_matrix("reverse", [](var x) { return reverse(x, 1); });
  of_matrix("roll", [](var x) { return roll(x, 3, 1); });
  of_matrix("rot90", [](var x) { return rot90(x); });
  of_matrix("pad", [](var x) { return pad(x, {2, 2}, {2, 2}); });
  of_image("pad_reflect", [](var x) { return pad_reflect(x, {0, 0, 2, 2}, {0, 0, 2, 2}); });
  of_image("pad_replicate", [](var x) { return pad_replicate(x, {0, 0, 2, 2}, {0, 0, 2, 2}); });
  of_image("pad_wrap", [](var x) { return pad_wrap(x, {0, 0, 2, 2}, {0, 0, 2, 2}); });
  of_matrix("tril", [](var x) { return tril(x); });
  of_matrix("triu", [](var x) { return triu(x); });
  const int edge = std::max(matrix[0], 32);
  add("diagonal", {reals({edge, edge})}, [](v x) { return diagonal(x[0]); });
  of_image("space_to_depth", [](var x) { return space_to_depth(x, 2); });
  of_image("im2col", [](var x) { return im2col(x, 3, 1, 1); });
  of_image("resize_nearest",
           [](var x) { return resize_nearest(x, 2 * x.extent(2), 2 * x.extent(3)); });
  of_image("resize_bilinear",
           [](var x) { return resize_bilinear(x, 2 * x.extent(2), 2 * x.extent(3)); });
  const shape row{matrix[1]}, column{matrix[0], 1};
  add("broadcast_to", {reals(row)}, [target = matrix](v x) { return broadcast_to(x[0], target); });
  add("outer sum", {reals(column), reals(row)}, [](v x) { return x[0] + x[1]; });
}

void table::sorting() {
  family_ = "sort, top-k";
  unary("sort", [](var x) { return sort(x, 0); });
  unary("argsort", [](var x) { return argsort(x, 0); });
  of_matrix("sort, axis 0", [](var x) { return sort(x, 0); });
  of_matrix("sort, axis 1", [](var x) { return sort(x, 1); });
  of_matrix("sort, descending", [](var x) { return sort(x, 1, true); });
  of_matrix("argsort, axis 1", [](var x) { return argsort(x, 1); });
  unary("top_k of a vector", [](var x) { return top_k(x, 10, 0).values; });
  of_matrix("top_k, axis 1", [](var x) { return top_k(x, 10, 1).values; });
  of_matrix("top_k, indices", [](var x) { return top_k(x, 10, 1).indices; });
  add("sort of i32", {indices(vector, 1 << 20)}, [](v x) { return sort(x[0], 0); });
  add("searchsorted", {reals({100}, 0, 1), reals(vector)},
      [](v x) { return searchsorted(cumsum(x[0], 0) * 0.02, x[1]); });
  unary("unique", [](var x) { return unique(round(x * 10), 50).values; });
}

void table::indexing() {
  family_ = "gather, scatter";
  const int height = matrix[0], columns = matrix[1];
  const operand_form all = reals(matrix), picked = indices({height}, height);
  const operand_form places = indices(matrix, height), inside = indices(matrix, columns);
  add("gather, axis 0", {all, picked}, [](v x) { return gather(x[0], x[1], 0); });
  add("gather, axis 1", {all, indices({columns}, columns)},
      [](v x) { return gather(x[0], x[1], 1); });
  add("gather of a vector", {reals(vector), indices(vector, vector[0])},
      [](v x) { return gather(x[0], x[1], 0); });
  add("gather_elements, axis 0", {all, places}, [](v x) { return gather_elements(x[0], x[1], 0); });
  add("gather_elements, axis 1", {all, inside}, [](v x) { return gather_elements(x[0], x[1], 1); });
  add("scatter", {all, picked}, [height](v x) { return scatter(x[0], x[1], height); });
  add("scatter of a vector", {reals(vector), indices(vector, vector[0])},
      [n = vector[0]](v x) { return scatter(x[0], x[1], n); });
  add("scatter_elements, axis 0", {all, all, places},
      [](v x) { return scatter_elements(x[0], x[2], x[1], 0, scatter_mode::add); });
  add("scatter_elements, axis 1", {all, all, inside},
      [](v x) { return scatter_elements(x[0], x[2], x[1], 1, scatter_mode::add); });
  add("segment_max", {all, picked}, [height](v x) { return segment_max(x[0], x[1], height); });
  add("segment_mean", {all, picked}, [height](v x) { return segment_mean(x[0], x[1], height); });
  add("put_rows", {all, reals({10, columns}), indices({10}, height)},
      [](v x) { return put_rows(x[0], x[2], x[1]); });
  add("gather_nd", {all, indices({height, 2}, std::min(height, columns))},
      [](v x) { return gather_nd(x[0], x[1]); });
  add("one_hot", {indices({height}, columns)},
      [columns](v x) { return one_hot(x[0], columns, dtype::f32); });
}

void table::normalization() {
  family_ = "normalization";
  const operand_form row = reals({matrix[1]}), channels = reals({image[1]});
  of_matrix("softmax, axis 1", [](var x) { return softmax(x, 1); });
  of_matrix("softmax, axis 0", [](var x) { return softmax(x, 0); });
  of_matrix("log_softmax, axis 1", [](var x) { return log_softmax(x, 1); });
  add("cross_entropy", {reals(matrix), indices({matrix[0]}, matrix[1])},
      [](v x) { return softmax_cross_entropy(x[0], x[1]); });
  add("layer_norm", {reals(matrix), row, row}, [](v x) { return layer_norm(x[0], x[1], x[2]); });
  add("rms_norm", {reals(matrix), row}, [](v x) { return rms_norm(x[0], x[1]); });
  add("batch_norm", {reals(image), channels, channels},
      [](v x) { return batch_norm(x[0], x[1], x[2]).value; });
  add("batch_norm, inference",
      {reals(image), channels, channels, channels, reals({image[1]}, 1, 2)},
      [](v x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); });
  add("group_norm", {reals(image), channels, channels},
      [](v x) { return group_norm(x[0], x[1], x[2], 2); });
  of_image("instance_norm", [](var x) { return instance_norm(x); });
  of_image("local_response_norm", [](var x) { return local_response_norm(x, 5); });
  of_matrix("l2_normalize", [](var x) { return l2_normalize(x, {1}); });
}

void table::pooling() {
  family_ = "pooling";
  of_image("max_pool 2", [](var x) { return max_pool(x, 2); });
  of_image("max_pool 3, stride 2", [](var x) { return max_pool(x, 3, 2, 1); });
  of_image("average_pool 2", [](var x) { return average_pool(x, 2); });
  of_image("average_pool 3, stride 1", [](var x) { return average_pool(x, 3, 1, 1); });
  of_image("lp_pool", [](var x) { return lp_pool(x, 2, pool_form{}); });
  of_image("global_average_pool", [](var x) { return global_average_pool(x); });
  of_image("adaptive_average_pool", [](var x) { return adaptive_average_pool(x, 3, 3); });
  of_image("adaptive_max_pool", [](var x) { return adaptive_max_pool(x, 3, 3); });
  const shape signal{image[0], image[1], image[2] * image[3]};
  add("max_pool1d", {reals(signal)}, [](v x) { return max_pool1d(x[0], 2); });
  add("average_pool1d", {reals(signal)}, [](v x) { return average_pool1d(x[0], 2); });
  const shape volume{image[0], 1, image[1], image[2], image[3]};
  add("max_pool3d", {reals(volume)}, [](v x) { return max_pool3d(x[0], 2); });
  add("average_pool3d", {reals(volume)}, [](v x) { return average_pool3d(x[0], 2); });
}

void table::linear_algebra() {
  family_ = "linear algebra";
  // Whose eigenvalues lie about 1.
  const operand_form square = reals({side, side}, 0, 1.0 / side);
  const auto regular = [](var x) { return x + detail::eye_like(x); };
  const auto of_square = [&](std::string name, auto f) {
    add(std::move(name), {square}, [f, regular](v x) { return f(regular(x[0])); });
  };
  of_square("cholesky", [](var x) { return cholesky(x); });
  of_square("inv", [](var x) { return inv(x); });
  of_square("det", [](var x) { return det(x); });
  // All factors are read, without the signs that are free.
  of_square("qr", [](var x) {
    const qr_result d = qr(x);
    return d.q * d.r;
  });
  of_square("eigh", [](var x) {
    const eigh_result d = eigh(x);
    return abs(d.eigenvectors) * expand_dims(d.eigenvalues, 0);
  });
  of_square("eigvalsh", [](var x) { return eigvalsh(x); });
  of_square("svd", [](var x) {
    const svd_result d = svd(x);
    return abs(d.u) * expand_dims(d.s, 0) + abs(d.vh);
  });
  of_square("svd, values", [](var x) { return svd(x).s; });
  add("solve", {square, reals({side, 16})}, [regular](v x) { return solve(regular(x[0]), x[1]); });
  add("solve_triangular", {square, reals({side, side})},
      [regular](v x) { return solve_triangular(regular(x[0]), x[1]); });
}

void table::fourier() {
  family_ = "Fourier transform";
  const int count = vector[0] > 1000 ? 256 : 1;
  const auto lines = [&](std::string name, int length) {
    add(std::move(name), {reals({count, length})},
        [length](v x) { return irfft(rfft(x[0]), length); });
  };
  lines("irfft of rfft, 4096", 4096 / (vector[0] > 1000 ? 1 : 4));
  lines("irfft of rfft, 3000", 3000 / (vector[0] > 1000 ? 1 : 3));
  add("irfft of rfft, axis 0",
      {reals({vector[0] > 1000 ? 1024 : 32, vector[0] > 1000 ? 1024 : 32})},
      [](v x) { return irfft(rfft(x[0], 0), x[0].extent(0), 0); });
}

void table::random_numbers() {
  family_ = "random numbers";
  unary("random_uniform", [](var x) { return random_uniform(x); });
  unary("random_normal", [](var x) { return random_normal(x); });
  unary("random_truncated_normal", [](var x) { return random_truncated_normal(x); });
  unary("random_exponential", [](var x) { return random_exponential(x); });
  unary(
      "random_bernoulli", [](var x) { return random_bernoulli(x); }, 0, 1);
  of_matrix("random_categorical", [](var x) { return random_categorical(x); });
  unary(
      "random_gamma", [](var x) { return random_gamma(x); }, 0.5, 3);
  binary(
      "random_beta", [](var x, var y) { return random_beta(x, y); }, 0.5, 3);
  unary(
      "random_poisson", [](var x) { return random_poisson(x); }, 0, 20);
  add("random_permutation", {reals(vector)},
      [n = vector[0]](v x) { return random_permutation(x[0], n); });
}

void table::sparse() {
  family_ = "sparse product";
  // Ten entries in each row.
  const int count = vector[0] / 10, height = count / 10;
  std::vector<std::int64_t> splits;
  for (int k = 0; k <= count; k += 10) splits.push_back(k);
  for (int columns : {1, 64}) {
    add("csr matrix times " + std::to_string(columns) + (columns == 1 ? " column" : " columns"),
        {reals({count}), indices({count}, height), reals({height, columns})},
        [height, splits](v x) {
          const var starts = constant(x[0], splits, {std::int32_t(splits.size())});
          return matmul(csr(x[0], x[1], starts, {height, height}), x[2]);
        });
  }
}

}  // namespace

std::vector<operation_row> operation_rows(bool large) {
  table t(large);
  t.elementwise();
  t.comparisons();
  t.reductions();
  t.cumulative();
  t.movement();
  t.sorting();
  t.indexing();
  t.normalization();
  t.pooling();
  t.linear_algebra();
  t.fourier();
  t.random_numbers();
  t.sparse();
  return std::move(t.rows);
}

}  // namespace cella::benchmark
