// Indices as rows of zeros with a one.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/batching.hpp>

namespace cella {

/// 1 where the index equals the position along a new last axis, else 0.
struct one_hot_op : opaque<one_hot_op>, zero_derivative, detail::keeps_options {
  static constexpr std::string_view name = "one_hot";
  static constexpr std::string_view torch = "F.one_hot";
  static constexpr std::string_view formula = "y[..., k] = 1 where the index is k, else 0";
  static constexpr compute_class computes = compute_class::indexed;
  static constexpr onnx_operator onnx{"OneHot", 9};
  struct options {
    std::int32_t depth{};
    stored_dtype element{};
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return a.whole(0) && a.rank() < max_rank && o.depth >= 0 && is_flat(dtype(o.element));
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t{dtype(a.element), in[0].shape};
    t.shape.push_back(a.depth);
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    iteration_space s(1);
    s.add(infer(in, o).shape);
    s.along_all(0, 0, in[0].rank());
    s.along_all(s.result(), 0, in[0].rank() + 1);
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {0, 1};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
/// A fault unless the indices are integers.
constexpr bool are_indices(std::string_view op, var i, std::source_location at) {
  if (!is_floating(i.element()) && i.element() != dtype::boolean) return true;
  i.b->fail(text() << at << ": " << op << ": the indices " << i.b->describe(i.id) << " are "
                   << i.type() << "; they must be integers");
  return false;
}
}  // namespace detail

/// Integer indices [...] -> [..., depth] with a 1 at each index; zeros where it lies outside.
CELLA_ONCE constexpr var one_hot(operand indices, int depth, dtype element) {
  builder& b = *indices.owner();
  const var v = indices.in(b);
  if (!detail::are_indices("one_hot", v, indices.at())) return v;
  if (depth < 1 || v.rank() == max_rank) {
    b.fail(text() << indices.at() << ": one_hot: " << b.describe(v.id) << " " << v.shape()
                  << " cannot get a new last axis of " << depth << " positions");
    return v;
  }
  return emit<one_hot_op>(one_hot_op::options{depth, {std::int32_t(element)}}, indices.at(), v);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void one_hot_op::compute(const attributes& o, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  const int depth = o.as<options>().depth;
  for (std::int64_t i = 0; i < in[0].type.size(); ++i) {
    const double hot = read_element(in[0], i);
    for (int d = 0; d < depth; ++d) write_element(out[0], i * depth + d, hot == d ? 1 : 0);
  }
}

#endif

}  // namespace cella
