// Angles of complex numbers, and complex numbers from them.
#pragma once

#include <cella/ops/magnitude.hpp>
#include <cella/ops/trigonometry.hpp>

namespace cella {

/// The angle of z in (-pi, pi]. The gradient is dy i z / |z|^2, and 0 at 0.
struct angle_op : detail::polar_part<angle_op> {
  static constexpr std::string_view name = "angle";
  static constexpr std::string_view numpy = "np.angle";
  static constexpr std::string_view torch = "torch.angle";
  static constexpr std::string_view formula = "y = the angle of the point (re, im) of a complex x";
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var z = n.operand(0);
    const var x = real(z), y = imag(z);
    dx[0] = detail::along_direction(complex(-y, x), dy[0], square(x) + square(y));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    detail::from_complex(in[0], out[0], [](auto z) { return std::arg(z); });
  }
};

/// The angle of complex numbers in (-pi, pi].
constexpr var angle(operand x) {
  const var v = x.in(*x.owner());
  if (is_complex(v.element())) return emit<angle_op>({}, x.at(), v);
  v.b->fail(text() << x.at() << ": angle: " << v.b->describe(v.id) << " is " << v.type()
                   << "; only complex numbers have an angle");
  return v;
}
/// r e^(i angle), of two tensors of f32 or f64.
constexpr var polar(operand r, operand angle) {
  builder& b = owner_of(r, angle);
  const var x = r.in(b);
  const var y = angle.in(b);
  return complex({x * cos(y), angle.at()}, {x * sin(y), angle.at()});
}

}  // namespace cella
