// Complex numbers and their parts.
//
// The gradient of a real loss L by a complex z = x + i y is dL/dx + i dL/dy, as in PyTorch: twice
// the derivative by the conjugate of z (Wirtinger), so that z - rate * gradient descends. Rules
// hand on dy such that Re(conj(dy) * change of the result) is the change of the loss.
#pragma once

#include <array>
#include <cella/graph/once.hpp>
#include <cella/ops/array.hpp>
#include <concepts>
#include <tuple>

namespace cella {

namespace detail {

/// What operations between complex numbers and their parts have in common: they are linear, over
/// the real numbers.
template <class Op>
struct of_parts : linear<Op>, element_by_element, takes_complex {
  static constexpr int operands = 1;
  static bool fits(const op_application& a) { return is_complex(a.in[0].element); }
  static constexpr compute_class computes = compute_class::other;
  static constexpr attributes batch_options(node_ref, int, unsigned) { return {}; }
  static constexpr tensor_type part(const tensor_type& t) { return {real_of(t.element), t.shape}; }
};

/// y[i] = f(x[i]...) for numbers of types `In`, a block at a time.
template <class... In, class F>
void in_blocks(const tensor_ref& y, F f, std::same_as<tensor_ref> auto... x) {
  constexpr std::int64_t block = 256;
  using result = decltype(f(In{}...));
  std::tuple<std::array<In, std::size_t(block)>...> in;
  std::array<result, std::size_t(block)> out;
  for (std::int64_t i = 0; i < y.type.size(); i += block) {
    const std::int64_t count = std::min(block, y.type.size() - i);
    std::apply([&](auto&... to) { (read_numbers(x, i, count, to.data()), ...); }, in);
    std::apply(
        [&](const auto&... from) {
          for (std::size_t k = 0; k < std::size_t(count); ++k) out[k] = f(from[k]...);
        },
        in);
    write_numbers(y, i, count, out.data());
  }
}
/// y[i] = f(x[i]) for complex numbers x.
template <class F>
void from_complex(const tensor_ref& x, const tensor_ref& y, F f) {
  in_blocks<std::complex<double>>(y, f, x);
}

/// Rules without the checks of the public functions.
template <class Op>
constexpr var apply_part(var x) {
  return cella::emit<Op>({}, std::source_location::current(), x);
}

}  // namespace detail

struct complex_op : detail::of_parts<complex_op> {
  static constexpr std::string_view name = "complex";
  static constexpr std::string_view torch = "torch.complex";
  static constexpr std::string_view formula = "y = a + i b";
  static constexpr unsigned linear_in = 3;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    const dtype t = a.in[0].element;
    return a.same(0, 1) && (t == dtype::f32 || t == dtype::f64);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {complex_of(in[0].element), in[0].shape};
  }
  static constexpr var transpose(node_ref, int i, var dy);
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

struct real_op : detail::of_parts<real_op> {
  static constexpr std::string_view name = "real";
  static constexpr std::string_view numpy = "np.real";
  static constexpr std::string_view torch = "torch.real";
  static constexpr std::string_view formula = "y = the real part of x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return part(in[0]);
  }
  static constexpr var transpose(node_ref, int, var dy) {
    return emit<complex_op>({}, std::source_location::current(), dy, zeros_like(dy));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

struct imag_op : detail::of_parts<imag_op> {
  static constexpr std::string_view name = "imag";
  static constexpr std::string_view numpy = "np.imag";
  static constexpr std::string_view torch = "torch.imag";
  static constexpr std::string_view formula = "y = the imaginary part of x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return part(in[0]);
  }
  static constexpr var transpose(node_ref, int, var dy) {
    return emit<complex_op>({}, std::source_location::current(), zeros_like(dy), dy);
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

struct conj_op : detail::of_parts<conj_op> {
  static constexpr std::string_view name = "conj";
  static constexpr std::string_view numpy = "np.conj";
  static constexpr std::string_view torch = "torch.conj";
  static constexpr std::string_view formula = "y = the conjugate of x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr var transpose(node_ref, int, var dy) { return detail::apply_part<conj_op>(dy); }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

/// The real part; of other numbers they themselves.
constexpr var real(operand x) {
  const var v = x.in(*x.owner());
  return is_complex(v.element()) ? emit<real_op>({}, x.at(), v) : v;
}
/// The imaginary part of complex numbers.
constexpr var imag(operand x) {
  const var v = x.in(*x.owner());
  if (is_complex(v.element())) return emit<imag_op>({}, x.at(), v);
  v.b->fail(text() << x.at() << ": imag: " << v.b->describe(v.id) << " is " << v.type()
                   << ", which has no imaginary part");
  return v;
}
/// The conjugate; of other numbers they themselves.
constexpr var conj(operand x) {
  const var v = x.in(*x.owner());
  return is_complex(v.element()) ? emit<conj_op>({}, x.at(), v) : v;
}
/// re + i im, of two tensors of one shape: c64 of f32, c128 of f64.
constexpr var complex(operand re, operand im) {
  builder& b = owner_of(re, im);
  const var x = re.in(b);
  const var y = im.in(b);
  const bool parts = x.element() == dtype::f32 || x.element() == dtype::f64;
  if (parts && x.type() == y.type()) return emit<complex_op>({}, im.at(), x, y);
  b.fail(text() << im.at()
                << ": complex: both parts must be f32 or f64 and of one shape: " << b.describe(x.id)
                << " is " << x.type() << ", " << b.describe(y.id) << " is " << y.type());
  return x;
}

// ---- rules

constexpr var complex_op::transpose(node_ref, int i, var dy) {
  return i == 0 ? detail::apply_part<real_op>(dy) : detail::apply_part<imag_op>(dy);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void complex_op::compute(const attributes&, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  detail::in_blocks<double, double>(
      out[0], [](double re, double im) { return std::complex(re, im); }, in[0], in[1]);
}
inline void real_op::compute(const attributes&, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  detail::from_complex(in[0], out[0], [](auto z) { return z.real(); });
}
inline void imag_op::compute(const attributes&, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  detail::from_complex(in[0], out[0], [](auto z) { return z.imag(); });
}
inline void conj_op::compute(const attributes&, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  detail::from_complex(in[0], out[0], [](auto z) { return std::conj(z); });
}

#endif

}  // namespace cella
