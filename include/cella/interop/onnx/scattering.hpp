// Operators that put elements by index.
#pragma once

#include <cella/interop/onnx/indexing.hpp>
#include <cella/ops/segments.hpp>

namespace cella::interop {

inline scatter_mode combination_in(const onnx_node& n) {
  const std::string how = n.one_of("reduction", {"none", "add", "mul", "max", "min"});
  return how == "add"   ? scatter_mode::add
         : how == "mul" ? scatter_mode::multiply
         : how == "max" ? scatter_mode::maximum
         : how == "min" ? scatter_mode::minimum
                        : scatter_mode::update;
}
inline list<var> scatter_elements_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  const var i = from_the_front(cast(n.in(1), dtype::i64), x.extent(axis));
  return {scatter_elements(x, i, n.in(2), axis, combination_in(n))};
}
inline list<var> scatter_nd_rule(onnx_node& n) {
  const var x = n.in(0), i = cast(n.in(1, 1), dtype::i64);
  if (i.extent(-1) < 1 || i.extent(-1) > x.rank())
    n.refuse("has index tuples that are longer than the operand's rank");
  return {scatter_nd(x, tuples_from_the_front(i, x.shape()), n.in(2), combination_in(n))};
}

inline constexpr named_onnx_rule scattering_rules[] = {
    {"Scatter", scatter_elements_rule},
    {"ScatterElements", scatter_elements_rule},
    {"ScatterND", scatter_nd_rule},
};

}  // namespace cella::interop
