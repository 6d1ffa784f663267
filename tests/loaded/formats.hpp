// Plans that are made at run time, held against the interpreter, with their tensors in the format
// that is wanted.
#pragma once

#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/strided.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

#include "support/compare.hpp"
#include "support/planned.hpp"

namespace cella::test {

inline layout format_of(const graph& g, dtype element) {
  using planning = cpu::loaded_planning;
  return planning::choose_formats(planning::prepared(g, element), {.element = element},
                                  planning::machine)
      .program;
}
/// Inputs of these shapes: numbers from -1/4 to 1/4, or whole ones from -2 to 2.
inline std::vector<valued_tensor> made_up(const std::vector<shape>& shapes, dtype element,
                                          bool whole) {
  std::vector<valued_tensor> all;
  std::uint64_t i = 0;
  for (const shape& s : shapes) {
    valued_tensor t{{element, s}, {}};
    for (std::int64_t k = 0; k < s.size(); ++k, ++i) {
      const float u = uniform<float>(7, i);
      t.values.push_back(whole ? double(int(u * 5) - 2) : double(u - 0.5f) / 2);
    }
    all.push_back(std::move(t));
  }
  return all;
}
/// Holds the plan of `f` against the interpreter.
inline void check_plan(const vars_function& f, const std::vector<valued_tensor>& in, dtype element,
                       layout wanted) {
  std::vector<tensor_type> types;
  for (const valued_tensor& t : in) types.push_back(t.type);
  const traced_function traced(f, types);
  const graph g = optimize(traced.b.g);
  CHECK(format_of(g, element) == wanted);
  bindings memory;
  loaded_program run(g, element);
  for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), memory.store(in[i]).data);
  run();
  run();
  const auto expected = traced(in);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    const double limit = element == dtype::f32 ? 1e-4 : 1e-12;
    CHECK(relative_difference(read(run.result(int(k))).values, expected[k].values, 1e-3) < limit);
  }
  if (element != dtype::f64) return;
  const auto shared = run_planned(traced.b.g, in, 3);
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(relative_difference(shared[k].values, expected[k].values, 1e-3) < 1e-12);
}
/// The same in both types, for inputs that are made up.
inline void check_plans(const vars_function& f, const std::vector<shape>& shapes, layout wanted,
                        bool whole = false) {
  for (const dtype element : {dtype::f32, dtype::f64}) {
    CAPTURE(element);
    check_plan(f, made_up(shapes, element, whole), element, wanted);
  }
}
/// `f` and a part of its first input: no batch lies in the lanes beside parts of tensors.
inline vars_function out_of_lanes(const vars_function& f) {
  return [f](const vars& x) {
    vars all = f(x);
    all.push_back(slice(x[0], 1, 0, 1));
    return all;
  };
}
/// `f` and the gradients of the sum of its squares by all inputs.
inline vars_function with_gradients(const vars_function& f) {
  return [f](const vars& x) {
    vars all = f(x);
    const var loss = sum(square(all[0]));
    for (const var& d : gradients(loss, x)) all.push_back(d);
    return all;
  };
}
inline var biased(var x, var bias) { return x + reshape(bias, {bias.extent(0), 1, 1}); }
constexpr window walk(int stride, int padding, int groups = 1) {
  return {{stride, stride}, {padding, padding}, {padding, padding}, {1, 1}, groups};
}

}  // namespace cella::test
