// One line checks an operation: its values and derivatives in every way that the library can run
// it.
//
//   constexpr gradient_case cases[] = {
//       {"pow", [](var x, var y) { return pow(x, y); }, {{.extents = {2, 3}, .low = 0.5, .high =
//       2},
//                                                        {.extents = {3}}}},
//   };
//   TEST_CASE("...") { check_gradients<cases>(); }  // compiled_cases.hpp
#pragma once

#include <array>
#include <cella/graph/option_hash.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/gradient.hpp>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "support/compare.hpp"
#include "support/traced.hpp"

namespace cella::test {

/// An input of a case: uniform random numbers in [low, high), or integers if the type is integral.
struct case_input {
  shape extents{};
  double low = -1;
  double high = 1;
  dtype element = dtype::f64;

  constexpr tensor_type type() const { return {element, extents}; }
  valued_tensor sample(std::uint64_t seed) const;
};

/// What must agree between a graph traced by the compiler and one traced at run time: the type of
/// the result, and how many nodes there are of each operation, type and options (as a sum of
/// hashes). Their order may differ: C++ leaves open which operand of `f(x) * g(x)` comes first.
struct trace_summary {
  int nodes{};
  tensor_type result{};
  std::uint64_t hash{};
  bool failed{};
  friend constexpr bool operator==(const trace_summary&, const trace_summary&) = default;
};

constexpr trace_summary summarize(const builder& b, var y) {
  std::uint64_t total = 0;
  for (const node& n : b.g.nodes) {
    std::uint64_t h = hash(*n.op, n.attributes);
    auto mix = [&](int v) { h = (h ^ std::uint32_t(v)) * 1099511628211u; };
    mix(int(n.type.element));
    for (int e : n.type.shape) mix(e);
    total += h;
  }
  return {int(b.g.nodes.size()), b.failed() ? tensor_type{} : y.type(), total, b.failed()};
}

/// A function of any number of vars.
using any_function = var (*)(std::span<const var>);

template <class F>
constexpr var call(std::span<const var> x) {
  if constexpr (std::is_invocable_v<F, var>)
    return F{}(x[0]);
  else if constexpr (std::is_invocable_v<F, var, var>)
    return F{}(x[0], x[1]);
  else if constexpr (std::is_invocable_v<F, var, var, var>)
    return F{}(x[0], x[1], x[2]);
  else if constexpr (std::is_invocable_v<F, var, var, var, var>)
    return F{}(x[0], x[1], x[2], x[3]);
  else
    return F{}(x[0], x[1], x[2], x[3], x[4]);
}

/// The functions that the check differentiates. Vars are handed over as x (the case's own), w
/// (weights of the result's type) and v (one direction per x).
namespace probe {

/// A scalar that every element of f(x) moves, each by its own weight.
constexpr var loss(any_function f, std::span<const var> x, var w) { return sum(f(x) * w); }

/// The derivative of the loss by x[k], of a function that also closes over x[k] itself. Were the
/// two confused, this would be the gradient plus 2 x[k] instead of plus x[k].
constexpr var tilted_gradient(any_function f, const vars& x, var w, std::size_t k) {
  const var outer = x[k];
  return grad([&x, f, w, k, outer](var t) {
    vars y = x;
    y[k] = t;
    return loss(f, y, w) + sum(t * outer);
  })(outer);
}

/// The tilted gradients along the directions v: a scalar to differentiate once more.
constexpr var directional(any_function f, const vars& x, var w, std::span<const var> v) {
  var s{};
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!is_floating(x[k].element())) continue;
    const var part = sum(tilted_gradient(f, x, w, k) * v[k]);
    s = s.b ? s + part : part;
  }
  return s;
}

/// The derivative of `directional` by x[k].
constexpr var second(any_function f, const vars& x, var w, std::span<const var> v, std::size_t k) {
  return grad([&x, f, w, v, k](var t) {
    vars y = x;
    y[k] = t;
    return directional(f, y, w, v);
  })(x[k]);
}

}  // namespace probe

/// One checked function. A constant of this type has been traced by the compiler, with its
/// gradient.
class gradient_case {
 public:
  std::string_view name;
  any_function f{};
  std::array<case_input, 5> inputs{};
  std::size_t count{};
  trace_summary value;       ///< of f
  trace_summary derivative;  ///< of f with its gradients

  template <class F>
  consteval gradient_case(std::string_view label, F, std::initializer_list<case_input> in)
      : name(label), f(&call<F>), count(in.size()) {
    std::copy(in.begin(), in.end(), inputs.begin());
    value = trace(false);
    derivative = trace(true);
  }

  /// Traces f, or its gradients with respect to all inputs, where it is called: in the compiler or
  /// at run time.
  constexpr trace_summary trace(bool gradients) const {
    builder b;
    b.precision = dtype::f64;
    vars x;
    for (std::size_t k = 0; k < count; ++k)
      x.push_back({&b, b.input(inputs[k].type(), input_role::argument, "x")});
    var y = f(x);
    if (gradients && is_floating(y.element()) && !b.failed()) {
      const var w{&b, b.input(y.type(), input_role::argument, "w")};
      for (std::size_t k = 0; k < count; ++k) {
        if (is_floating(inputs[k].element)) y = probe::tilted_gradient(f, x, w, k);
      }
    }
    return summarize(b, y);
  }
};

/// Largest allowed errors, relative to max(1, |expected|).
struct tolerances {
  double first = 1e-6;
  double second = 1e-6;
  double step = 1e-5;
};

/// The derivative of a scalar function of tensors by one of them, by central differences.
std::vector<double> differences(const std::function<double(const std::vector<valued_tensor>&)>& f,
                                std::vector<valued_tensor> x, std::size_t k, double step);

/// Checks one case; every failure names it.
void check_gradient(const gradient_case& c, const tolerances& limit = {},
                    std::source_location at = std::source_location::current());

}  // namespace cella::test
