// Absolute value of complex numbers.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/elementwise.hpp>

namespace cella {

namespace detail {
/// direction * dy / r, and zero where r is.
constexpr var along_direction(var direction, var dy, var r) {
  const var share = select(r > 0, dy / r, zeros_like(dy));
  return direction * cast(share, direction.element());
}

/// What absolute value and angle have in common.
template <class Op>
struct polar_part : opaque<Op>, takes_complex {
  static constexpr int operands = 1;
  static bool fits(const op_application& a) { return is_complex(a.in[0].element); }
  static constexpr attributes batch_options(node_ref, int, unsigned) { return {}; }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {real_of(in[0].element), in[0].shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return pointwise_space(in[0].shape, in.size());
  }
};
}  // namespace detail

/// |z|. The gradient is dy z / |z|, and 0 at 0.
struct magnitude_op : detail::polar_part<magnitude_op> {
  static constexpr std::string_view name = "magnitude";
  static constexpr std::string_view numpy = "np.abs";
  static constexpr std::string_view torch = "torch.abs";
  static constexpr std::string_view formula = "y = sqrt(re^2 + im^2) of a complex x";
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = detail::along_direction(n.operand(0), dy[0], n.output());
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void magnitude_op::compute(const attributes&, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  detail::from_complex(in[0], out[0], [](auto z) { return std::abs(z); });
}

#endif

}  // namespace cella
