// Small graphs for tests of passes: as formulas, as random graphs, and run by the interpreter.
#pragma once

#include <doctest/doctest.h>

#include <cella/graph/check.hpp>
#include <cella/graph/random.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/gradient.hpp>
#include <string>
#include <vector>

namespace cella::test {

/// The graph of f(x) or f(x, y) with inputs of type `t`.
template <class F>
constexpr graph graph_of(F f, tensor_type t = {dtype::f32, {2, 3}}) {
  builder b;
  const var x{&b, b.input(t, input_role::argument, "x")};
  var result;
  if constexpr (requires { f(x, x); }) {
    const var y{&b, b.input(t, input_role::argument, "y")};
    result = f(x, y);
  } else {
    result = f(x);
  }
  const std::array out{result.id};
  b.end(out);
  b.g.outputs.push_back({});
  return std::move(b.g);
}

/// `3`, `-1/2`
constexpr void write_fraction(text& t, double v) {
  std::int64_t denominator = 1;
  while (denominator < 1024 && double(std::int64_t(v)) != v) v *= 2, denominator *= 2;
  t << std::int64_t(v);
  if (denominator > 1) t << "/" << denominator;
}

/// A node as a formula over inputs and constants: `mul(x, 1/2)`. Options are not shown.
constexpr void write_formula(text& t, const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  if (n.op == &input_info_of) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      if (g.input(int(i)) == id) t << g.view(g.inputs[i].name);
    }
    return;
  }
  if (is<constant_op>(n)) return write_fraction(t, n.attributes.as<constant_op::options>().value);
  t << n.op->name << "(";
  bool first = true;
  for (node_id o : g.operands(id)) {
    if (!first) t << ", ";
    first = false;
    write_formula(t, g, o);
  }
  t << ")";
}
/// The first output as a formula.
constexpr text formula(const graph& g) {
  text t;
  write_formula(t, g, g.regions[0].outputs[0]);
  return t;
}

/// How many nodes the main region lists.
constexpr int node_count(const graph& g) { return int(g.regions[0].nodes.size()); }

/// Runs a graph on inputs whose elements are multiples of 1/8 in [-2, 2), drawn from the seed, so
/// that sums and products of a few of them are exact. Returns the elements of each output.
inline std::vector<std::vector<double>> run(const graph& g, std::uint64_t seed) {
  std::vector<aligned_buffer> memory;
  value_store values;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const tensor_type t = g.type(g.input(int(i)));
    generator random(seed, i);
    memory.emplace_back(std::size_t(t.bytes()));
    const tensor_ref x{memory.back().data(), t};
    for (std::int64_t k = 0; k < t.size(); ++k)
      write_element(x, k, (double(random.below(32)) - 16) / (is_floating(t.element) ? 8 : 1));
    values.bind(g.input(int(i)), x);
  }
  interpret(g, values);
  std::vector<std::vector<double>> out;
  for (node_id n : g.regions[0].outputs) {
    const tensor_ref y = values.value(n);
    auto& list = out.emplace_back();
    for (std::int64_t k = 0; k < y.type.size(); ++k) list.push_back(read_element(y, k));
  }
  return out;
}

/// The same numbers, with equal NaN and either zero.
inline bool same_values(const std::vector<std::vector<double>>& a,
                        const std::vector<std::vector<double>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].size() != b[k].size()) return false;
    for (std::size_t i = 0; i < a[k].size(); ++i) {
      if (a[k][i] != b[k][i] && !(a[k][i] != a[k][i] && b[k][i] != b[k][i])) return false;
    }
  }
  return true;
}

/// A random program on images: arithmetic, choice, movement, reductions, pooling; with its
/// gradient by the first input for every other seed. All its arithmetic is exact in f64.
inline graph random_graph(std::uint64_t seed, int steps = 14) {
  generator random(seed, 99);
  auto pick = [&](int n) { return int(random.below(std::uint32_t(n))); };
  builder b;
  b.precision = dtype::f64;
  const tensor_type image{dtype::f64, {2, 2, 4, 4}};
  const var x{&b, b.input(image, input_role::argument, "x")};
  const var y{&b, b.input(image, input_role::argument, "y")};
  const var bias{&b, b.input({dtype::f64, {2, 1, 1}}, input_role::parameter, "bias")};
  std::vector<var> pool{x, y};
  constexpr std::array constants{0.0, 1.0, -1.0, 2.0, 0.5, -4.0};
  int products = 3;
  // Everything comes back to the shape of an image, so that any step may follow any other.
  auto step = [&]() -> var {
    const var u = pool[std::size_t(pick(int(pool.size())))];
    const var v = pool[std::size_t(pick(int(pool.size())))];
    const double c = constants[std::size_t(pick(int(constants.size())))];
    switch (pick(24)) {
      case 0:
        return u + v;
      case 1:
        return u - v;
      case 2:
        return products-- > 0 ? u * v : u + v;
      case 3:
        return u * c;
      case 4:
        return c * u;
      case 5:
        return u + c;
      case 6:
        return c - u;
      case 7:
        return u / (c == 0 ? 8 : c);
      case 8:
        return -u;
      case 9:
        return -(u - v);
      case 10:
        return u + -v;
      case 11:
        return -u + v;
      case 12:
        return relu(u);
      case 13:
        return maximum(u, v);
      case 14:
        return select(u > v, u, full_like(u, c));
      case 15:
        return select(full_like(u, c) > 0, u, v);
      case 16:
        return reshape(reshape(u, {8, 8}), {2, 2, 4, 4});
      case 17:
        return transpose(transpose(u, {0, 1, 3, 2}), pick(2)
                                                         ? std::initializer_list<int>{0, 1, 3, 2}
                                                         : std::initializer_list<int>{1, 0, 3, 2});
      case 18:
        return reverse(reverse(u, 2), pick(2) ? 2 : 3);
      case 19:
        return broadcast_to(sum(u, {2, 3}, true) * 0.0625, u.shape());
      case 20:
        return broadcast_to(reshape(sum(broadcast_to(u, {4, 2, 2, 4, 4}), {0, 2}), {2, 1, 4, 4}),
                            u.shape()) *
               0.125;
      case 21:
        return reshape(
            broadcast_to(reshape(max_pool(relu(u + bias), 2), {2, 2, 4, 1}), {2, 2, 4, 4}),
            {2, 2, 4, 4});
      case 22:
        return pow(u, 2) * 0.125;
      default:
        return stop_gradient(u) - cast(cast(v, dtype::f64), dtype::f64);
    }
  };
  for (int i = 0; i < steps; ++i) pool.push_back(step());
  var result = pool.back();
  ids out{result.id};
  if (seed % 2) {
    const std::array wrt{x, bias};
    for (const var& d : gradients(sum(result * y), wrt)) out.push_back(d.id);
  }
  b.end(out);
  for (std::size_t k = 0; k < out.size(); ++k) b.g.outputs.push_back({});
  return std::move(b.g);
}

}  // namespace cella::test
