// Conversion of element types.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/onnx_attributes.hpp>
#include <cella/ops/complex.hpp>
#include <cmath>

namespace cella {

/// Converts the element type. Floating point to an integer truncates, and takes the nearest that
/// there is (0 for NaN); an integer to a shorter one keeps its low bits.
struct cast_op : linear<cast_op>, element_by_element, takes_complex {
  static constexpr std::string_view name = "cast";
  static constexpr std::string_view numpy = "ndarray.astype";
  static constexpr std::string_view torch = "Tensor.to";
  static constexpr std::string_view formula = "y = x as another element type";
  static constexpr compute_class computes = compute_class::pointwise;
  static constexpr onnx_operator onnx{"Cast", 6};
  struct options {
    stored_dtype element{};
  };
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {dtype(o.as<options>().element), in[0].shape};
  }
  static constexpr unsigned zero_where = 1;
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes& o) {
    const auto to = dtype(o.as<options>().element);
    if (to == dtype::boolean)
      return {in[0].contains(0) ? 0.0 : 1.0, in[0] == interval{0, 0} ? 0.0 : 1.0};
    if (!is_integer(to)) return in[0];
    return {std::trunc(in[0].low), std::trunc(in[0].high)};
  }
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    to.set("to", dtype(o.as<options>().element));
  }
  static attributes read_onnx(span<const tensor_type>, const onnx_attributes& from) {
    from.only({"to", "saturate"});  // which concerns numbers of 8 bits
    return options{{std::int32_t(from.element("to"))}};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int, unsigned) { return n.as<options>(); }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Converts the element type. Floating point to an integer: cut towards zero, then the nearest that
/// there is (0 for NaN). An integer to another keeps its low bits, as in C++.
constexpr var cast(operand x, dtype to) {
  const var v = x.in(*x.owner());
  if (is_complex(v.element()) && !is_complex(to)) {
    v.b->fail(text() << x.at() << ": cast: " << v.b->describe(v.id) << " is " << v.type()
                     << ", which " << to << " cannot hold; take real(), imag() or abs() of it");
    return v;
  }
  return v.element() == to ? v : emit<cast_op>(cast_op::options{std::int32_t(to)}, x.at(), v);
}

// ---- rules

constexpr var cast_op::transpose(node_ref n, int, var dy) {
  const dtype from = n.operand(0).element();
  if (is_complex(from)) return cast(dy, from);
  return is_floating(from) ? cast(real(dy), from) : zero_partial;
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void cast_op::compute(const attributes&, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  with_any_number(in[0].type.element, [&]<class N>() {
    for (std::int64_t i = 0; i < out[0].type.size(); ++i)
      write_number(out[0], i, read_number<N>(in[0], i));
  });
}

#endif

}  // namespace cella
