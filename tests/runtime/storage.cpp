// Programs whose tensors are stored in 16 bits: computed in single precision by the kernels of the
// program, each result rounded once, against the graph's operations one by one in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <cstring>
#include <vector>

using namespace cella;

namespace {

using reals = std::vector<double>;

template <dtype D>
double unit_roundoff() {
  return D == dtype::bf16 ? 0x1p-8 : D == dtype::f16 ? 0x1p-11 : 0x1p-24;
}

/// Memory of any element type, full of random numbers.
struct stored {
  tensor_type type;
  std::vector<std::byte> bytes;
  stored(const tensor_type& t, std::uint64_t seed)
      : type(t), bytes(std::size_t(t.bytes()), std::byte{}) {
    generator random(seed);
    for (std::int64_t i = 0; i < t.size(); ++i)
      write_element(ref(), i,
                    is_floating(t.element) ? random.uniform(-1.0, 1.0) : random.below(12));
  }
  tensor_ref ref() { return {bytes.data(), type}; }
};

/// Runs a cell of f32 as a program and operation by operation; the first results of both.
template <class Cell, class... Arguments>
struct both_ways {
  using program = cella::program<Cell, false, dtype::f32, Arguments...>;
  reals fast, exact;
  dtype element{};

  both_ways() {
    static_assert(program::accepted);
    Cell cell;
    parameter_store store(cell, 5, dtype::f32);
    const std::array types{Arguments::type...};
    std::vector<stored> arguments;
    std::vector<tensor_ref> refs;
    for (std::size_t i = 0; i < types.size(); ++i) arguments.emplace_back(types[i], 11 + i);
    for (stored& a : arguments) refs.push_back(a.ref());
    executable<program> run(store);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      run.call_unchecked(arguments[I].bytes.data()...);
    }
    (std::index_sequence_for<Arguments...>{});
    for (auto v : run.template result<0>()) fast.push_back(static_cast<double>(v));
    runtime_path path({&store, nullptr, refs, {}}, &compute);
    path.run(trace(cell, types, {false, dtype::f32}));
    element = path.result(0).type.element;
    for (std::int64_t i = 0; i < path.result(0).type.size(); ++i)
      exact.push_back(read_element(path.result(0), i));
  }

  /// Up to a relative error, of values of about one.
  void agree(double tolerance) const {
    REQUIRE(fast.size() == exact.size());
    double worst = 0;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      const double error = std::abs(fast[i] - exact[i]) / (1 + std::abs(exact[i]));
      worst = error <= worst ? worst : error;
    }
    CHECK(worst <= tolerance);
  }
  static constexpr int steps(step_kind kind) {
    int n = 0;
    for (const plan_step& s : program::plan.steps) n += s.kind == kind;
    return n;
  }
  static constexpr int all_steps() { return int(program::plan.steps.size()); }
};

template <dtype D, int... E>
using of = tensor<D, E...>;

// ---- products

template <bool TransposeA, bool TransposeB>
struct product {
  constexpr var operator()(var x, var y) const { return matmul(x, y, TransposeA, TransposeB); }
};
/// The activations of a dense layer, stored in 16 bits: one kernel.
template <dtype D>
struct dense_layer {
  parameter<24, 37> weight{initializer::uniform(-0.3, 0.3)};
  parameter<24> bias{initializer::uniform(-0.5, 0.5)};
  constexpr var operator()(var x) const {
    const var y = matmul(x, cast(weight, D), false, true);
    return cast(relu(cast(y, dtype::f32) + operand(bias).in(*x.b)), D);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("products of every transposition round once", Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  const double tolerance = unit_roundoff<D>();
  auto check = [&]<class Case>(const Case& c) {
    static_assert(Case::all_steps() == 1 && Case::steps(step_kind::product) == 1);
    CHECK(c.element == D);
    c.agree(tolerance);
  };
  check(both_ways<product<false, false>, of<D, 31, 17>, of<D, 17, 33>>());
  check(both_ways<product<false, true>, of<D, 31, 17>, of<D, 33, 17>>());
  check(both_ways<product<true, false>, of<D, 17, 31>, of<D, 17, 33>>());
  check(both_ways<product<true, true>, of<D, 17, 31>, of<D, 33, 17>>());
  check(both_ways<product<false, true>, of<D, 3, 5, 16>, of<D, 3, 29, 16>>());
  check(both_ways<product<false, false>, of<D, 3, 5, 16>, of<D, 16, 15>>());
  check(both_ways<product<false, false>, of<D, 61>, of<D, 61, 47>>());
  check(both_ways<product<false, false>, of<D, 47, 61>, of<D, 61>>());
}

TEST_CASE_TEMPLATE("a dense layer reads and writes 16 bits in the product's own step", Element,
                   bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  using layer = both_ways<dense_layer<D>, of<D, 19, 37>>;
  // The weights are rounded first.
  static_assert(layer::all_steps() == 2 && layer::steps(step_kind::product) == 1);
  const layer c;
  CHECK(c.element == D);
  c.agree(2 * unit_roundoff<D>());
}

// ---- loops

namespace {

struct arithmetic {
  constexpr var operator()(var x, var y, var z) const {
    return relu(x * y + z) * 0.7 - tanh(x) / (y * y + 1);
  }
};
struct conversions {
  constexpr var operator()(var x, var y, var z) const {
    return cast(x, dtype::f32) * cast(y, dtype::f32) + cast(z, dtype::f32);
  }
};
/// What is rounded stays rounded when it is widened again.
template <dtype D>
struct there_and_back {
  constexpr var operator()(var x) const { return cast(cast(x * 3, D), dtype::f32) - x * 3; }
};
struct sums {
  constexpr var operator()(var x) const { return sum(x * x, {1}) + max(x, {1}); }
};

}  // namespace

TEST_CASE_TEMPLATE("elementwise operations on 16 bits round each result, in loops", Element,
                   bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  using five = both_ways<arithmetic, of<D, 7, 45>, of<D, 7, 45>, of<D, 45>>;
  static_assert(five::steps(step_kind::generic) == 0);
  five().agree(2 * unit_roundoff<D>());
  using mixed = both_ways<conversions, of<D, 7, 45>, of<dtype::f32, 7, 45>, of<dtype::bf16, 45>>;
  // The row that is repeated is widened by itself.
  static_assert(mixed::all_steps() == 2 && mixed::steps(step_kind::elementwise) == 2);
  mixed().agree(1e-6);
}

TEST_CASE_TEMPLATE("a value that is rounded and widened has lost its last bits", Element, bfloat16,
                   float16) {
  constexpr dtype D = dtype_of<Element>;
  const both_ways<there_and_back<D>, of<dtype::f32, 91>> c;
  static_assert(c.all_steps() == 1);
  CHECK(c.fast == c.exact);
  CHECK(std::ranges::count(c.fast, 0.0) < 20);
}

TEST_CASE_TEMPLATE("sums of 16 bits are taken in single precision", Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  using rows = both_ways<sums, of<D, 7, 301>>;
  static_assert(rows::steps(step_kind::generic) == 0);
  rows().agree(2 * unit_roundoff<D>());
}

// ---- what has no kernel for 16 bits

namespace {

struct image_net {
  parameter<6, 3, 3, 3> filters{initializer::uniform(-0.3, 0.3)};
  constexpr var operator()(var x) const {
    const dtype D = x.element();
    const var y = max_pool(relu(conv2d(x, cast(filters, D))), 2);
    return softmax(flatten(average_pool(y, 2)));
  }
};
struct looked_up {
  constexpr var operator()(var table, var i) const {
    const auto f = [&](var t) { return sum(cast(square(gather(t, i, 0)), dtype::f32)); };
    return grad(f)(table) + table;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("convolutions and what else has no kernel for 16 bits run in single precision",
                   Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  using images = both_ways<image_net, of<D, 3, 3, 14, 14>>;
  static_assert(images::steps(step_kind::convolution) == 1);
  const images c;
  CHECK(c.element == D);
  c.agree(3 * unit_roundoff<D>());
}

TEST_CASE_TEMPLATE("an embedding's rows stay in 16 bits, and their gradients are summed in f32",
                   Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  const both_ways<looked_up, of<D, 19, 21>, of<dtype::i32, 40>> c;
  CHECK(c.element == D);
  c.agree(4 * unit_roundoff<D>());
}

namespace {

/// A state of 16 bits in a loop, small enough for registers were it of f32.
struct in_a_loop {
  constexpr var operator()(var x, var w) const {
    return for_i(
        5, [&](var, var h) { return tanh(matmul(h, w) + x); }, x);
  }
};
struct loop_gradient {
  constexpr var operator()(var x, var w) const {
    const auto f = [&](var v) { return sum(cast(in_a_loop{}(v, w), dtype::f32)); };
    return grad(f)(x);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("loops carry 16 bits", Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  const both_ways<in_a_loop, of<D, 2, 6>, of<D, 6, 6>> c;
  CHECK(c.element == D);
  c.agree(4 * unit_roundoff<D>());
  both_ways<loop_gradient, of<D, 2, 6>, of<D, 6, 6>>().agree(40 * unit_roundoff<D>());
}

// ---- the batch in the lanes

namespace {

/// A convolution with pooling and a product, as mixed precision leaves them.
template <dtype D>
struct small_images {
  parameter<4, 1, 3, 3> filter{initializer::uniform(-0.5, 0.5)};
  parameter<4> bias{initializer::uniform(-0.5, 0.5)};
  parameter<5, 36> weight{initializer::uniform(-0.3, 0.3)};
  constexpr var operator()(var x) const {
    const var y = max_pool(conv2d(cast(x, D), cast(filter, D)), 2);
    const var z = relu(y + reshape(cast(bias, D), {4, 1, 1}));
    return cast(matmul(reshape(z, {x.extent(0), 36}), cast(weight, D), false, true), dtype::f32);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("with the batch in the lanes numbers of 16 bits are held in single precision",
                   Element, bfloat16, float16) {
  constexpr dtype D = dtype_of<Element>;
  using images = both_ways<small_images<D>, of<dtype::f32, 33, 1, 8, 8>>;
  static_assert(images::steps(step_kind::convolution_pool) == 1);
  static_assert(images::steps(step_kind::max_pool_plain) == 0);
  for (const plan_step& s : images::program::plan.steps)
    if (s.kind == step_kind::product) CHECK(s.arrangement == layout::lanes);
  images().agree(2 * unit_roundoff<D>());
}
