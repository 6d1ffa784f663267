// A list of gradient cases as compiled programs: the kernels' values and derivatives beside those
// of the operations' own computation, on each back end.
#pragma once

#include <doctest/doctest.h>

#include <cella/train/input.hpp>
#include <vector>

#include "support/gradient_check.hpp"
#include "support/harness.hpp"

namespace cella::test {

/// Cases [First, Last) of a constant list as one program. Its arguments are those of the cases,
/// each followed by the weights of its result if that is differentiable; its results are the value
/// of each case, and the gradient of the weighted value by each input that has one.
template <auto& Cases, std::size_t First, std::size_t Last>
struct compiled_cases {
  static constexpr bool differentiable(const gradient_case& c) {
    return is_floating(c.value.result.element);
  }
  static constexpr std::size_t argument_count = [] {
    std::size_t n = 0;
    for (std::size_t i = First; i < Last; ++i) n += Cases[i].count + differentiable(Cases[i]);
    return n;
  }();
  static constexpr std::size_t result_count = [] {
    std::size_t n = 0;
    for (std::size_t i = First; i < Last; ++i) {
      ++n;
      for (std::size_t k = 0; k < Cases[i].count; ++k)
        n += differentiable(Cases[i]) && is_floating(Cases[i].inputs[k].element);
    }
    return n;
  }();
  static constexpr auto types = [] {
    std::array<tensor_type, argument_count> all{};
    std::size_t n = 0;
    for (std::size_t i = First; i < Last; ++i) {
      for (std::size_t k = 0; k < Cases[i].count; ++k) all[n++] = Cases[i].inputs[k].type();
      if (differentiable(Cases[i])) all[n++] = Cases[i].value.result;
    }
    return all;
  }();

  /// The value of a case and its gradients, as the program and eager mode compute them.
  static constexpr void append(const gradient_case& c, const var* in, vars& out) {
    const vars x(in, in + c.count);
    out.push_back(c.f(x));
    if (!differentiable(c)) return;
    for (std::size_t k = 0; k < c.count; ++k) {
      if (!is_floating(c.inputs[k].element)) continue;
      auto of_one = [&](var t) {
        vars y = x;
        y[k] = t;
        return c.f(y);
      };
      out.push_back(vjp(of_one, x[k], in[c.count]).second);
    }
  }

  struct cell {
    template <class... X>
    constexpr std::array<var, result_count> operator()(X... x) const {
      const std::array<var, argument_count> in{x...};
      vars all;
      std::size_t n = 0;
      for (std::size_t i = First; i < Last; ++i) {
        append(Cases[i], in.data() + n, all);
        n += Cases[i].count + differentiable(Cases[i]);
      }
      std::array<var, result_count> out{};
      std::copy(all.begin(), all.end(), out.begin());
      return out;
    }
  };
  /// Argument I as `tensor<element, extents...>`.
  template <std::size_t I, class Axes>
  struct argument_at;
  template <std::size_t I, std::size_t... Axis>
  struct argument_at<I, std::index_sequence<Axis...>> {
    using type = cella::tensor<types[I].element, types[I].shape.extents[Axis]...>;
  };
  template <std::size_t I>
  using argument =
      typename argument_at<I, std::make_index_sequence<std::size_t(types[I].shape.rank)>>::type;
  template <class Arguments>
  struct program_of;
  template <std::size_t... I>
  struct program_of<std::index_sequence<I...>> {
    using type = cella::program<cell, false, dtype::f64, argument<I>...>;
  };
  using program = typename program_of<std::make_index_sequence<argument_count>>::type;
};

/// Runs a program of cases on one back end, and compares with eager mode. Sums are taken in another
/// order there: errors are relative to the largest element. Inputs are about one.
template <class Backend, auto& Cases, std::size_t First, std::size_t Last>
void check_compiled(double limit = 1e-11) {
  using compiled = compiled_cases<Cases, First, Last>;
  std::vector<valued_tensor> in;
  for (std::size_t i = First; i < Last; ++i) {
    const gradient_case& c = Cases[i];
    for (std::size_t k = 0; k < c.count; ++k) in.push_back(c.inputs[k].sample(1 + k));
    if (compiled::differentiable(c))
      in.push_back(case_input{c.value.result.shape, -1, 1, c.value.result.element}.sample(50));
  }
  std::vector<reals> arguments;
  for (const valued_tensor& t : in) arguments.push_back(t.values);
  const std::vector<reals> results =
      ways<typename compiled::program>().template compiled<Backend>(arguments).results;

  std::size_t argument = 0, result = 0;
  for (std::size_t i = First; i < Last; ++i) {
    const gradient_case& c = Cases[i];
    const std::size_t own = c.count + compiled::differentiable(c);
    const std::vector<valued_tensor> x(in.begin() + std::ptrdiff_t(argument),
                                       in.begin() + std::ptrdiff_t(argument + own));
    argument += own;
    const auto expected = run_eagerly(
        [&](const vars& v) {
          vars out;
          compiled::append(c, v.data(), out);
          return out;
        },
        x);
    for (std::size_t k = 0; k < expected.size(); ++k, ++result) {
      const std::string label = std::string(c.name) + (k ? ", gradient " : ", value ") +
                                std::to_string(k) + " on " + std::string(Backend::name);
      INFO(label);
      REQUIRE(results[result].size() == expected[k].values.size());
      CHECK(relative_difference(results[result], expected[k].values, 1e-3) <= limit);
    }
  }
}

/// Checks every case of a list in all ways: see check_gradient; and as compiled programs.
template <auto& Cases>
void check_gradients(const tolerances& limit = {},
                     std::source_location at = std::source_location::current()) {
  for (const gradient_case& c : Cases) check_gradient(c, limit, at);
  // So many in one program that it has room for their results.
  constexpr std::size_t size = std::size(Cases), each = 24;
  [&]<std::size_t... Part>(std::index_sequence<Part...>) {
    (check_compiled<cpu::backend, Cases, Part * each, std::min(size, (Part + 1) * each)>(), ...);
    (check_compiled<tiny::backend, Cases, Part * each, std::min(size, (Part + 1) * each)>(), ...);
  }
  (std::make_index_sequence<(size + each - 1) / each>{});
}

}  // namespace cella::test
