// Programs with constant tensors: where their values lie, and that kernels read them right, in each
// element type, on the CPU and on a device with a memory of its own.
#include <cella/nn.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/transform/control.hpp>
#include <cstdint>
#include <sstream>

#include "control_case.hpp"
#include "support/tiny_backend.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int channels = 3, words = 5, width = 4;
constexpr std::array<double, channels> scale{0.5, -1.25, 2};
/// Small integers, which every element type has.
constexpr auto table = [] {
  std::array<std::array<int, width>, words> t{};
  for (int i = 0; i < words; ++i) {
    for (int j = 0; j < width; ++j) t[std::size_t(i)][std::size_t(j)] = (7 * i + 3 * j) % 11;
  }
  return t;
}();

/// [N,C,H,W] times one number for each channel.
struct scaled {
  constexpr var operator()(var x) const {
    return relu(x * constant(x, scale, {channels, 1, 1}, x.element()));
  }
};
/// The rows of a table of elements E that x names.
template <dtype E>
struct looked_up {
  constexpr var operator()(var x) const { return gather(constant(x, table, E), x); }
};
/// The same, with what a loop computes of them.
template <dtype E>
struct shifted {
  constexpr var operator()(var x) const {
    const var t = gather(constant(x, table, E), x);
    if constexpr (E == dtype::boolean)
      return logical_and(t, constant(x, {true, false, true, true}));
    else
      return t * 2 + constant(x, {1, 2, 3, 4}, E);
  }
};

/// Runs a program on one argument.
template <class P, class Backend, class Cell, class T>
auto results_of(const Cell& cell, const std::vector<T>& x) {
  parameter_store store(cell, 1, P::element_type);
  executable<with_backend<P, Backend>> run(store);
  run(x);
  run(x);
  const auto y = run.template result<0>();
  return std::vector<std::remove_cvref_t<decltype(y[0])>>(y.begin(), y.end());
}

template <dtype E, class Backend>
void check_scale() {
  using P = program<scaled, false, E, tensor<E, 2, channels, 2, 5>>;
  static_assert(P::graph.sizes.constants == 1 && P::plan.step_count == 1);
  std::vector<element<E>> x(2 * channels * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = element<E>(int(i % 7) - 3);
  const auto y = results_of<P, Backend>(scaled{}, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = double(x[i]) * scale[i / 10 % channels];
    CHECK(double(y[i]) == (wanted > 0 ? wanted : 0));
  }
}

template <dtype E, class Backend>
void check_table() {
  const std::vector<std::int32_t> x{4, 0, 0, 3, 2, 1};
  using P = program<looked_up<E>, false, dtype::f32, tensor<dtype::i32, 6>>;
  using Q = program<shifted<E>, false, dtype::f32, tensor<dtype::i32, 6>>;
  const auto rows = results_of<P, Backend>(looked_up<E>{}, x);
  const auto more = results_of<Q, Backend>(shifted<E>{}, x);
  REQUIRE(rows.size() == x.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int t = table[std::size_t(x[i / width])][i % width];
    if constexpr (E == dtype::boolean) {
      CHECK(rows[i] == (t != 0));
      CHECK(more[i] == (t != 0 && i % width != 1));
    } else {
      CHECK(double(rows[i]) == t);
      CHECK(double(more[i]) == 2 * t + int(i % width) + 1);
    }
  }
}
template <class Backend>
void check_elements() {
  check_scale<dtype::f32, Backend>();
  check_scale<dtype::f64, Backend>();
  check_table<dtype::f32, Backend>();
  check_table<dtype::f64, Backend>();
  check_table<dtype::i32, Backend>();
  check_table<dtype::boolean, Backend>();
}

/// A matrix of weights in the graph, as wide as blocks of a product.
constexpr int wide = 24;
constexpr auto weights = [] {
  std::array<std::array<double, wide>, wide> w{};
  for (int i = 0; i < wide; ++i) {
    for (int j = 0; j < wide; ++j)
      w[std::size_t(i)][std::size_t(j)] = double((5 * i + 3 * j) % 13) / 16 - 0.4;
  }
  return w;
}();
struct product {
  constexpr var operator()(var x) const {
    return tanh(matmul(reshape(x, {wide, wide}), constant(x, weights)));
  }
};
/// A loop whose body has weights of its own, too large for registers; both sides of a branch, too.
struct recurrent {
  constexpr var operator()(var x) const {
    return scan(
        [](var s, var u) {
          const var next = tanh(matmul(reshape(s, {1, wide}), constant(s, weights)));
          return cond(
              sum(u) > 0, [&] { return reshape(next, {wide}) + u; },
              [&] { return reshape(matmul(next, constant(s, weights)), {wide}) * u; });
        },
        constant(x, weights[0]), reshape(x, {wide, wide}));
  }
};
/// A matrix that a kernel packs: before the calls, before a loop, and in a branch each time.
constexpr int large = 72, rows = 16;
constexpr auto large_weights = [] {
  std::array<std::array<double, large>, large> w{};
  for (int i = 0; i < large; ++i) {
    for (int j = 0; j < large; ++j)
      w[std::size_t(i)][std::size_t(j)] = double((5 * i + 3 * j) % 13) / 64 - 0.1;
  }
  return w;
}();
struct packed_product {
  constexpr var operator()(var x) const {
    return tanh(matmul(reshape(x, {rows, large}), constant(x, large_weights)));
  }
};
struct packed_in_a_loop {
  constexpr var operator()(var x) const {
    return for_i(
        3, [](var, var h) { return tanh(matmul(h, constant(h, large_weights))); },
        reshape(x, {rows, large}));
  }
};
struct packed_in_a_branch {
  constexpr var operator()(var x) const {
    const var h = reshape(x, {rows, large});
    return cond(
        sum(x) > 0, [&] { return matmul(h, constant(h, large_weights)); }, [&] { return h; });
  }
};
/// A constant that both ways of a native branch read.
struct chosen {
  constexpr var operator()(var x) const {
    const var t = constant(x, scale);
    if (sum(x) > 0) return x * t;
    return x + t;
  }
};
/// The constant itself as a result, and as what a state begins with.
struct given {
  constexpr std::array<var, 2> operator()(var x) const {
    const var t = constant(x, scale);
    return {t, x * 0 + t};
  }
};
/// The gradient of a convolution by constant filters, of which the batch may go into the lanes.
struct filtered {
  constexpr var operator()(var x) const {
    const var image = reshape(x, {8, 1, 6, 6});
    const var filter = constant(x, {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9}, {1, 1, 3, 3});
    return sum(square(relu(conv2d(image, filter))));
  }
};
/// Batch norm by numbers that are known: they go into the filters.
struct folded_filters {
  nn::conv2d<3, 8, 3> conv;
  constexpr var operator()(var x) const {
    return conv(x) * constant(x, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f}, {8, 1, 1});
  }
};

template <class P>
constexpr int constant_steps() {
  int n = 0;
  for (const plan_step& s : P::plan.steps) n += s.constant;
  return n;
}

}  // namespace

TEST_CASE("each element type on the CPU") { check_elements<cpu::backend>(); }
TEST_CASE("each element type in a device's memory") { check_elements<tiny::backend>(); }

TEST_CASE("kernels read constants where they lie") {
  using P = program<scaled, false, dtype::f32, tensor<dtype::f32, 2, channels, 2, 5>>;
  constexpr const plan_step& s = P::plan.steps[0];
  static_assert(s.reads[0].at.space == constant_space || s.reads[1].at.space == constant_space);
  CHECK(reinterpret_cast<std::uintptr_t>(constant_words<P>.data()) % 64 == 0);
  using Q = program<product, false, dtype::f64, tensor<dtype::f64, wide * wide>>;
  static_assert(Q::plan.step_count == 1);
  static_assert(Q::plan.steps[0].in[1] == buffer_ref{constant_space, 0});
}
TEST_CASE("a constant may be a result") {
  using P = program<given, false, dtype::f64, tensor<dtype::f64, 3>>;
  given cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<P> run(store);
  executable<with_backend<P, tiny::backend>> other(store);
  executable<with_bound_results<P>> bound(store);
  const std::vector<double> x{1, 2, 3};
  std::array<std::array<double, 3>, 2> to{};
  bound.bind<0>(to[0]);
  bound.bind<1>(to[1]);
  run(x);
  other(x);
  bound(x);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(run.result<0>()[i] == scale[i]);
    CHECK(run.result<1>()[i] == scale[i]);
    CHECK(other.result<0>()[i] == scale[i]);
    CHECK(to[0][i] == scale[i]);
    CHECK(to[1][i] == scale[i]);
  }
}
TEST_CASE("constants in products, loops, branches and convolutions, and their gradients") {
  run_compiled<product, wide * wide>(some_numbers(wide * wide));
  run_compiled<recurrent, wide * wide>(some_numbers(wide * wide));
  check_close(run_compiled<chosen, 3>({1, 2, 3}), {0.5, -2.5, 6});
  check_close(run_compiled<chosen, 3>({-1, -2, -3}), {-0.5, -3.25, -1});
  run_compiled<filtered, 288>(some_numbers(288));
  run_compiled<gradient_of<filtered>, 288>(some_numbers(288));
}
TEST_CASE("a large matrix of constants is packed when a program or a loop is prepared") {
  using P = program<packed_product, false, dtype::f64, tensor<dtype::f64, rows * large>>;
  static_assert(P::plan.steps[0].in[3].valid());
  run_compiled<packed_product, rows * large>(some_numbers(rows * large));
  run_compiled<packed_in_a_loop, rows * large>(some_numbers(rows * large));
  run_compiled<packed_in_a_branch, rows * large>(some_numbers(rows * large));
}
TEST_CASE("numbers for each channel go into the filters before them") {
  using P = inference_program<folded_filters, tensor<dtype::f32, 2, 3, 9, 9>>;
  static_assert(constant_steps<P>() > 0);
  folded_filters net;
  parameter_store store(net, 3);
  executable<P> run(store);
  std::vector<float> x(2 * 3 * 81);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 29)) / 29 - 0.4f;
  run(x);
  const auto y = run.result<0>();

  const graph g = P::traced();
  value_store values;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const node_id n = g.input(int(i));
    if (g.inputs[i].role == input_role::argument)
      values.bind(n, {reinterpret_cast<std::byte*>(x.data()), g.type(n)});
    else
      values.bind(n, store.value(store.entries()[i]));
  }
  interpret(g, values);
  const tensor_ref wanted = values.value(g.regions[0].outputs[0]);
  for (std::size_t i = 0; i < y.size(); ++i)
    CHECK(double(y[i]) == doctest::Approx(read_element(wanted, std::int64_t(i))).epsilon(1e-5));
}
TEST_CASE("explain names constants and their memory") {
  using P = program<scaled, false, dtype::f32, tensor<dtype::f32, 2, channels, 2, 5>>;
  std::ostringstream out;
  explain<P>(out);
  CHECK(out.str().find("@constants+0") != std::string::npos);
  CHECK(out.str().find("64   in the executable file, 1 tensors") != std::string::npos);
  CHECK(out.str().find("values() {0.5, -1.25, 2}") != std::string::npos);
}
