// A user's operations of the other kinds: linear, bilinear and opaque. docs/adding_an_operation.md
// quotes them.
#include <cella/nn/layers.hpp>
#include <cella/ops/functions.hpp>
#include <cella/runtime/executable.hpp>

#include "support/compiled_cases.hpp"

namespace own_operations_test {

using namespace cella;

/// y[..., i] = x[..., (i - by) mod n]: elements move round along the last axis.
struct rotate_op : linear<rotate_op> {
  static constexpr std::string_view name = "rotate";
  struct options {
    std::int32_t by{};
  };
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// The loops: elements of a row go to other places in it.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return pointwise_but_along(in[0].rank() - 1, in[0].shape, 1);
  }
  /// The transpose of a rotation is the rotation back.
  static constexpr var transpose(node_ref n, int, var dy) {
    return emit<rotate_op>(options{-n.as<options>().by}, std::source_location::current(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const std::int64_t n = in[0].type[in[0].type.rank() - 1];
    for (std::int64_t i = 0; i < in[0].type.size(); ++i) {
      const std::int64_t to = ((i + o.as<options>().by) % n + n) % n;
      write_element(out[0], i / n * n + to, read_element(in[0], i));
    }
  }
};
constexpr var rotate(operand x, int by) {
  const var v = x.in(*x.owner());
  if (v.rank() == 0) {
    v.b->fail(text() << x.at() << ": rotate: " << v.b->describe(v.id) << " is a scalar");
    return v;
  }
  return emit<rotate_op>(rotate_op::options{by}, x.at(), v);
}

/// The cross product of vectors in space: [..., 3], [..., 3] -> [..., 3].
struct cross_op : bilinear<cross_op> {
  static constexpr std::string_view name = "cross";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// dy . (a x b) = a . (b x dy) = b . (dy x a)
  static constexpr var transpose(node_ref n, int i, var dy) {
    const auto at = std::source_location::current();
    return i == 0 ? emit<cross_op>({}, at, n.operand(1), dy)
                  : emit<cross_op>({}, at, dy, n.operand(0));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    for (std::int64_t first = 0; first < out[0].type.size(); first += 3) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const std::int64_t j = first + (i + 1) % 3, k = first + (i + 2) % 3;
        write_element(out[0], first + i,
                      read_element(in[0], j) * read_element(in[1], k) -
                          read_element(in[0], k) * read_element(in[1], j));
      }
    }
  }
};
constexpr var cross(operand left, operand right) {
  builder& b = *(left.owner() ? left.owner() : right.owner());
  const var x = left.in(b);
  const var y = right.in(b);
  if (x.type() != y.type() || x.rank() == 0 || x.extent(-1) != 3) {
    b.fail(text() << right.at()
                  << ": cross: needs two tensors [...,3] of one type: " << b.describe(x.id)
                  << " is " << x.type() << ", " << b.describe(y.id) << " is " << y.type());
    return x;
  }
  return emit<cross_op>({}, right.at(), x, y);
}

/// x / |x| along the last axis: directions of vectors that are not zero.
struct direction_op : opaque<direction_op> {
  static constexpr std::string_view name = "direction";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// dx = (dy - y (y . dy)) / |x|
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var x = n.operand(0);
    const var y = n.output();
    const int last = x.rank() - 1;
    dx[0] = (dy[0] - y * sum(y * dy[0], {last}, true)) * rsqrt(sum(square(x), {last}, true));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    const std::int64_t n = in[0].type[in[0].type.rank() - 1];
    for (std::int64_t first = 0; first < in[0].type.size(); first += n) {
      double norm = 0;
      for (std::int64_t i = first; i < first + n; ++i)
        norm += read_element(in[0], i) * read_element(in[0], i);
      for (std::int64_t i = first; i < first + n; ++i)
        write_element(out[0], i, read_element(in[0], i) / std::sqrt(norm));
    }
  }
};
constexpr var direction(operand x) { return emit<direction_op>({}, x.at(), x.in(*x.owner())); }

struct geometry {
  constexpr var operator()(var x) const { return direction(cross(x, rotate(x * x, 1)) + 2); }
};

using namespace cella::test;

constexpr case_input vectors{.extents = {4, 3}, .low = 0.5, .high = 2};
constexpr gradient_case cases[] = {
    {"rotate", [](var v) { return rotate(v, 2) * v; }, {vectors}},
    {"rotate back", [](var v) { return rotate(v * v, -1); }, {vectors}},
    {"cross", [](var v, var w) { return cross(v, w); }, {vectors, vectors}},
    {"cross with itself changed", [](var v) { return cross(v, v * v); }, {vectors}},
    {"direction", [](var v) { return direction(v); }, {vectors}},
};

}  // namespace own_operations_test

using namespace own_operations_test;

TEST_CASE("own operations of all kinds have values") {
  CHECK(eval([](var v) { return rotate(v, 1); }, f64({2, 3}, {1, 2, 3, 4, 5, 6})).values ==
        reals{3, 1, 2, 6, 4, 5});
  CHECK(eval([](var v, var w) { return cross(v, w); }, f64({3}, {1, 0, 0}), f64({3}, {0, 1, 0}))
            .values == reals{0, 0, 1});
  CHECK(eval([](var v) { return direction(v); }, f64({2}, {3, -4})).values == reals{0.6, -0.8});
}
TEST_CASE("own operations of all kinds have derivatives of both orders in every mode") {
  check_gradients<cases>();
}
TEST_CASE("own operations of all kinds run in graph mode") {
  using P = inference_program<geometry, cella::tensor<dtype::f32, 5, 3>>;
  geometry cell;
  parameter_store store(cell, 0);
  executable<P> run(store);
  std::vector<float> x(15);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<float>(2, i) + 0.5f;
  run(x);
  const reals expected =
      eval([](var v) { return geometry{}(v); }, f64({5, 3}, reals(x.begin(), x.end()))).values;
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(double(run.result<0>()[i]) == doctest::Approx(expected[i]).epsilon(1e-5));
}
TEST_CASE("a wrong call of an own operation is a sentence with the caller's line") {
  CHECK(fault([](const vars& x) { return cross(x[0], x[1]); },
              {{dtype::f64, {2, 3}}, {dtype::f64, {3}}}) ==
        "cross: needs two tensors [...,3] of one type: x0 is f64[2,3], x1 is f64[3]");
}
