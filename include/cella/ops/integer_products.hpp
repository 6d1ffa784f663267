// Products and convolutions of bytes, each without its zero, with sums of 32 bits: what quantized
// nets compute.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/convolution.hpp>

namespace cella {

namespace detail {
constexpr bool is_byte(dtype t) { return t == dtype::i8 || t == dtype::u8; }
/// A zero for all slices along an axis of this extent, or one for each.
constexpr bool fits_zero(const tensor_type& zero, dtype element, int extent) {
  return zero.element == element && (zero.rank() == 0 || (zero.rank() == 1 && zero[0] == extent));
}
/// Base of both: what they take, and what they need no derivative for.
template <class Op>
struct product_of_bytes : opaque<Op>, zero_derivative {
  static constexpr int operands = 4;
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {};
  }
};
/// Element i of a list of zeros, or the only one.
inline std::int64_t zero_at(const tensor_ref& zeros, std::int64_t i) {
  return read_number<std::int64_t>(zeros, zeros.type.rank() ? i : 0);
}
}  // namespace detail

/// a [...,M,K], b [K,N] or [...,K,N], zeros of a [] or [M], of b [] or [N] -> [...,M,N] of i32,
/// modulo 2^32.
struct matmul_integer_op : detail::product_of_bytes<matmul_integer_op> {
  static constexpr std::string_view name = "matmul_integer";
  static constexpr std::string_view torch = "torch._int_mm";
  static constexpr std::string_view formula = "y = sum over k of (a[i,k] - u[i]) (b[k,j] - v[j])";
  static constexpr compute_class computes = compute_class::contraction;
  static constexpr onnx_operator onnx{"MatMulInteger", 10};
  static bool fits(const op_application& a) {
    const int r = a.rank(), s = a.rank(1);
    if (r < 2 || (s != 2 && s != r) || !detail::is_byte(a.in[0].element) ||
        !detail::is_byte(a.in[1].element))
      return false;
    return (s == 2 || begins_with(a.of(1), a.of(0), r - 2)) && a.of(0)[r - 1] == a.of(1)[s - 2] &&
           detail::fits_zero(a.in[2], a.in[0].element, a.of(0)[r - 2]) &&
           detail::fits_zero(a.in[3], a.in[1].element, a.of(1)[s - 1]);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    tensor_type t{dtype::i32, in[0].shape};
    t.shape[t.rank() - 1] = in[1][in[1].rank() - 1];
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    iteration_space s(4);
    const int batches = in[0].rank() - 2, own = in[1].rank() - 2;
    for (int d = 0; d < batches; ++d) {
      const int f = s.add(in[0][d]);
      s.along(0, d, f);
      if (own) s.along(1, d, f);
      s.along(s.result(), d, f);
    }
    const int i = s.add(in[0][batches]), j = s.add(in[1][own + 1]), k = s.add(in[1][own]);
    s.along(0, batches, i);
    s.along(0, batches + 1, k);
    s.along(1, own, k);
    s.along(1, own + 1, j);
    if (in[2].rank()) s.along(2, 0, i);
    if (in[3].rank()) s.along(3, 0, j);
    s.along(s.result(), batches, i);
    s.along(s.result(), batches + 1, j);
    s.over = combination::sum;
    return s;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// image [N,C,H,W], filter [O,C/groups,KH,KW], zero of the image [], of the filters [] or [O] ->
/// [N,O,OH,OW] of i32, modulo 2^32. Outside of the image lies its zero.
struct convolution_integer_op : detail::product_of_bytes<convolution_integer_op> {
  static constexpr std::string_view name = "conv2d_integer";
  static constexpr std::string_view formula =
      "y = conv2d of x - u and w - v, one v for each filter";
  static constexpr compute_class computes = compute_class::window;
  static constexpr onnx_operator onnx{"ConvInteger", 10};
  using options = convolution_options;
  static bool fits(const op_application& a) {
    if (!detail::is_byte(a.in[0].element) || !detail::is_byte(a.in[1].element)) return false;
    op_application same = a;
    same.in[1].element = a.in[0].element;
    return detail::fits_convolution(same, a.as<options>().window, {0, 1, 2}) &&
           detail::fits_zero(a.in[2], a.in[0].element, 0) && a.rank(2) == 0 &&
           detail::fits_zero(a.in[3], a.in[1].element, a.of(1)[0]);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {dtype::i32, convolution_op::infer(in, o).shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const window w = o.as<options>().window;
    iteration_space s = detail::convolution_space(in[1], infer(in, o), w, {0, 1, 4});
    s.operands = 4;
    if (in[3].rank()) {
      const int group = w.groups > 1 ? 1 : iteration_space::none;
      s.along(3, 0, group, in[1][0] / w.groups);
      s.along(3, 0, w.groups > 1 ? 2 : 1);
    }
    return s;
  }
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    convolution_op::write_onnx(in, o, to);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    return convolution_op::read_onnx(in, from);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
/// The zero of bytes: a number, or a var of their type.
constexpr var zero_of_bytes(operand zero, var x) {
  if (zero.is_number()) return constant(*x.b, zero.number(), {x.element(), {}});
  const var z = zero.in(*x.b);
  return z.rank() == 1 && z.extent(0) == 1 ? reshape(z, shape{}) : z;
}
constexpr bool refuse_bytes(std::string_view op, std::string_view why, var x, var y,
                            std::source_location at) {
  builder& b = *x.b;
  b.fail(text() << at << ": " << op << ": " << why << ": " << b.describe(x.id) << " is " << x.type()
                << ", " << b.describe(y.id) << " is " << y.type());
  return false;
}
constexpr bool are_bytes(std::string_view op, var x, var y, std::source_location at) {
  if (is_byte(x.element()) && is_byte(y.element())) return true;
  return refuse_bytes(op, "both operands must be i8 or u8", x, y, at);
}
}  // namespace detail

/// Product of matrices of bytes, i8 or u8, in any mixture: of a [...,M,K] without its zero and b
/// [K,N] or [...,K,N] without its own, exact in i32 (modulo 2^32). A zero is one number, or there
/// is one for each row of a and each column of b.  ONNX: MatMulInteger
constexpr var matmul_integer(operand left, operand right, operand left_zero = 0,
                             operand right_zero = 0) {
  builder& b = owner_of(left, right);
  const var x = left.in(b), y = right.in(b);
  constexpr std::string_view op = "matmul_integer";
  if (!detail::are_bytes(op, x, y, left.at())) return x;
  const int r = x.rank(), s = y.rank();
  const bool fits = r >= 2 && (s == 2 || (s == r && begins_with(y.shape(), x.shape(), r - 2))) &&
                    x.extent(-1) == y.extent(-2);
  if (!fits) {
    detail::refuse_bytes(op, "matrices [...,M,K] and [K,N] or [...,K,N] are needed", x, y,
                         right.at());
    return x;
  }
  const var u = detail::zero_of_bytes(left_zero, x), v = detail::zero_of_bytes(right_zero, y);
  if (!detail::fits_zero(u.type(), x.element(), x.extent(-2))) {
    detail::refuse_bytes(op, "the zero is neither one number nor one for each row, of one type", x,
                         u, left_zero.at());
    return x;
  }
  if (!detail::fits_zero(v.type(), y.element(), y.extent(-1))) {
    detail::refuse_bytes(op, "the zero is neither one number nor one for each column, of one type",
                         y, v, right_zero.at());
    return x;
  }
  return emit<matmul_integer_op>({}, left.at(), x, y, u, v);
}

/// Convolution of images of bytes [N,C,H,W] without their zero with filters [O,C/groups,KH,KW]
/// without theirs, exact in i32 (modulo 2^32). The filters' zero is one number, or there is one for
/// each.  ONNX: ConvInteger
constexpr var conv2d_integer(operand image, operand filter, const window& walk = {},
                             operand image_zero = 0, operand filter_zero = 0) {
  builder& b = owner_of(image, filter);
  const var x = image.in(b), w = filter.in(b);
  constexpr std::string_view op = "conv2d_integer";
  if (!detail::are_bytes(op, x, w, image.at())) return x;
  if (!detail::walks(op, x, w, walk, image.at(), false) ||
      !detail::convolves(op, x, w, walk, image.at()))
    return x;
  const var u = detail::zero_of_bytes(image_zero, x), v = detail::zero_of_bytes(filter_zero, w);
  if (u.rank() != 0 || u.element() != x.element()) {
    detail::refuse_bytes(op, "the zero of the image must be one number of its type", x, u,
                         image_zero.at());
    return x;
  }
  if (!detail::fits_zero(v.type(), w.element(), w.extent(0))) {
    detail::refuse_bytes(op, "the zero is neither one number nor one for each filter, of one type",
                         w, v, filter_zero.at());
    return x;
  }
  return emit<convolution_integer_op>(convolution_options{walk, {}}, image.at(), x, w, u, v);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void matmul_integer_op::compute(const attributes&, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const shape x = in[0].type.shape, w = in[1].type.shape;
  const std::int64_t m = x[x.rank - 2], k = x[x.rank - 1], n = w[w.rank - 1];
  const std::int64_t own = w.rank > 2 ? k * n : 0;
  for (std::int64_t at = 0; at < out[0].type.size(); ++at) {
    const std::int64_t batch = at / (m * n), i = at / n % m, j = at % n;
    const std::int64_t u = detail::zero_at(in[2], i), v = detail::zero_at(in[3], j);
    std::int64_t sum = 0;
    for (std::int64_t p = 0; p < k; ++p)
      sum += (read_number<std::int64_t>(in[0], (batch * m + i) * k + p) - u) *
             (read_number<std::int64_t>(in[1], batch * own + p * n + j) - v);
    write_number(out[0], at, sum);
  }
}
inline void convolution_integer_op::compute(const attributes& o, span<const tensor_ref> in,
                                            span<const tensor_ref> out) {
  const shape w = in[1].type.shape;
  list<std::int64_t> sums(std::size_t(out[0].type.size()), 0);
  const std::int64_t u = detail::zero_at(in[2], 0), taps = w.size() / std::max(w[0], 1);
  detail::for_each_product(
      in[0].type.shape, w, out[0].type.shape, o.as<options>().window,
      [&](std::int64_t at_x, std::int64_t at_w, std::int64_t at_y) {
        sums[std::size_t(at_y)] +=
            (read_number<std::int64_t>(in[0], at_x) - u) *
            (read_number<std::int64_t>(in[1], at_w) - detail::zero_at(in[3], at_w / taps));
      });
  for (std::size_t i = 0; i < sums.size(); ++i) write_number(out[0], std::int64_t(i), sums[i]);
}

#endif

}  // namespace cella
