// Fourier transforms along one axis or several, of complex and of real numbers.
#pragma once

#include <cella/ops/batching.hpp>
#include <cella/ops/complex.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/fourier_kernels.hpp>

namespace cella {

namespace detail {
/// What n sums are multiplied with.
constexpr double share_of(bool divides, std::int64_t n) {
  return divides && n > 0 ? 1 / double(n) : 1;
}
/// Calls f(first element of x, first of y, distance of elements) for each line along an axis.
template <class F>
void each_line(int axis, const shape& x, const shape& y, F f) {
  const std::int64_t inner = x.size(axis + 1, x.rank), lines = x.size(0, axis) * inner;
  for (std::int64_t l = 0; l < lines; ++l)
    f(l / inner * inner * x[axis] + l % inner, l / inner * inner * y[axis] + l % inner, inner);
}
}  // namespace detail

/// y[k] = sum of x[j] exp(-2 pi i j k / n) along an axis; `inverse` has the other sign. Each is the
/// other's transpose. Either may divide by n.
struct fft_op : linear<fft_op>, detail::moves_axis<fft_op>, takes_complex, keeps_zero {
  static constexpr std::string_view name = "fft";
  static constexpr std::string_view numpy = "np.fft.fft";
  static constexpr std::string_view torch = "torch.fft.fft";
  static constexpr std::string_view formula = "y_k = sum of x_j e^(-2 pi i j k / n) along an axis";
  static constexpr compute_class computes = compute_class::other;
  static constexpr int operations_per_point = 30;
  struct options {
    std::int32_t axis{};
    std::int32_t inverse{};
    std::int32_t divides{};
    constexpr double scale(std::int64_t n) const { return detail::share_of(divides, n); }
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return moves_axis::fits(a) && is_complex(a.in[0].element);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_but_along(o.as<options>().axis, in[0].shape, 1);
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    auto o = n.as<options>();
    o.inverse = !o.inverse;
    return emit<fft_op>(o, std::source_location::current(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const shape& s = in[0].type.shape;
    const std::int64_t n = s[a.axis];
    detail::transform_of_line<detail::fourier_transform> t(n, a.inverse ? 1 : -1);
    const double scale = a.scale(n);
    detail::each_line(a.axis, s, s, [&](auto from, auto to, auto step) {
      for (std::int64_t k = 0; k < n; ++k)
        t.line[std::size_t(k)] = read_number<std::complex<double>>(in[0], from + k * step);
      t.of(t.line.data(), t.result.data(), t.work.data());
      for (std::int64_t k = 0; k < n; ++k)
        write_number(out[0], to + k * step, t.result[std::size_t(k)] * scale);
    });
  }
};

namespace detail {
/// What the transforms of real numbers along an axis and back have in common. Each is the other's
/// transpose: the numbers in the middle of a transform stand for their conjugates, too, and count
/// once or twice; a transpose counts them as often.
template <class Op>
struct of_real_lines : linear<Op>, moves_axis<Op>, takes_complex, keeps_zero {
  static constexpr compute_class computes = compute_class::other;
  static constexpr int operations_per_point = 15;
  static constexpr int operands = 1;
  /// Each point reads the whole line.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const int axis = o.as<typename Op::options>().axis, rank = in[0].rank();
    iteration_space s(1);
    s.add(in[0].shape);
    s.factors[std::size_t(axis)] = {Op::numbers(o, in[0].shape), true};
    for (int t = 0; t < 2; ++t) {
      s.along_all(t, 0, axis);
      s.along_all(t, axis + 1, rank - axis - 1, axis + 1);
    }
    return s;
  }
};
}  // namespace detail

struct irfft_op;

/// The first n/2 + 1 numbers of the transform of n >= 1 real ones along an axis. The others are
/// their conjugates.
struct rfft_op : detail::of_real_lines<rfft_op> {
  static constexpr std::string_view name = "rfft";
  static constexpr std::string_view numpy = "np.fft.rfft";
  static constexpr std::string_view torch = "torch.fft.rfft";
  static constexpr std::string_view formula =
      "y_k = sum of x_j e^(-2 pi i j k / n) along an axis, k <= n / 2";
  struct options {
    std::int32_t axis{};
    std::int32_t twice{};    ///< the middle
    std::int32_t divides{};  ///< by n
    constexpr double scale(std::int64_t n) const { return detail::share_of(divides, n); }
  };
  static constexpr std::int64_t numbers(const attributes& o, const shape& x) {
    return x[o.as<options>().axis];
  }
  static bool fits(const op_application& a) {
    const dtype t = a.in[0].element;
    return moves_axis::fits(a) && (t == dtype::f32 || t == dtype::f64) &&
           a.of(0)[a.as<options>().axis] >= 1;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    tensor_type t{complex_of(in[0].element), in[0].shape};
    t.shape[o.as<options>().axis] = in[0][o.as<options>().axis] / 2 + 1;
    return t;
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// n real numbers along an axis from the first n/2 + 1 of a transform of which the others are the
/// conjugates. Imaginary parts of the first, and of number n/2 of an even n, count nothing.
struct irfft_op : detail::of_real_lines<irfft_op> {
  static constexpr std::string_view name = "irfft";
  static constexpr std::string_view numpy = "np.fft.irfft";
  static constexpr std::string_view torch = "torch.fft.irfft";
  static constexpr std::string_view formula =
      "y_j = sum of x_k e^(2 pi i j k / n) along an axis, k < n";
  struct options {
    std::int32_t axis{};
    std::int32_t count{};    ///< n
    std::int32_t twice{};    ///< the middle
    std::int32_t divides{};  ///< by n
    constexpr double scale(std::int64_t n) const { return detail::share_of(divides, n); }
  };
  static constexpr std::int64_t numbers(const attributes& o, const shape&) {
    return o.as<options>().count;
  }
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return moves_axis::fits(a) && is_complex(a.in[0].element) && o.count >= 1 &&
           a.of(0)[o.axis] == o.count / 2 + 1;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    tensor_type t{real_of(in[0].element), in[0].shape};
    t.shape[o.as<options>().axis] = o.as<options>().count;
    return t;
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    const auto o = n.as<options>();
    return emit<rfft_op>(rfft_op::options{o.axis, o.twice, o.divides},
                         std::source_location::current(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

constexpr var rfft_op::transpose(node_ref n, int, var dy) {
  const auto o = n.as<options>();
  return emit<irfft_op>(irfft_op::options{o.axis, n.operand(0).extent(o.axis), o.twice, o.divides},
                        std::source_location::current(), dy);
}

// ---- public functions

namespace detail {
constexpr var as_complex(var x) { return is_complex(x.element()) ? x : complex(x, zeros_like(x)); }
/// A fault unless x holds complex numbers, or f32 or f64.
constexpr int fourier_axis(std::string_view op, var x, int axis, std::source_location at) {
  const bool fits =
      is_complex(x.element()) || x.element() == dtype::f32 || x.element() == dtype::f64;
  if (fits) return find_axis(op, x, axis, at);
  x.b->fail(text() << at << ": " << op << ": " << x.b->describe(x.id) << " is " << x.type()
                   << "; convert it to f32 or f64 with cast()");
  return -1;
}
constexpr var fourier(std::string_view op, operand x, int axis, bool inverse) {
  const var v = x.in(*x.owner());
  const int a = fourier_axis(op, v, axis, x.at());
  if (a < 0) return v;
  return emit<fft_op>(fft_op::options{a, inverse, inverse}, x.at(), as_complex(v));
}
}  // namespace detail

/// The discrete Fourier transform along an axis: y[k] = sum of x[j] exp(-2 pi i j k / n). Real
/// numbers become complex ones.
constexpr var fft(operand x, int axis = -1) { return detail::fourier("fft", x, axis, false); }
/// Its inverse: x[j] = sum of y[k] exp(2 pi i j k / n) / n.
constexpr var ifft(operand x, int axis = -1) { return detail::fourier("ifft", x, axis, true); }

/// The transform along several axes (none: all).
constexpr var fftn(operand x, const axis_list& axes = {}) {
  var y = x.in(*x.owner());
  if (axes.size() == 0)
    for (int d = 0; d < y.rank(); ++d) y = fft({y, x.at()}, d);
  for (int a : axes) y = fft({y, x.at()}, a);
  return y;
}
/// Its inverse.
constexpr var ifftn(operand x, const axis_list& axes = {}) {
  var y = x.in(*x.owner());
  if (axes.size() == 0)
    for (int d = 0; d < y.rank(); ++d) y = ifft({y, x.at()}, d);
  for (int a : axes) y = ifft({y, x.at()}, a);
  return y;
}
/// The transform along the last two axes.
constexpr var fft2(operand x) { return fftn(x, {-2, -1}); }
/// Its inverse.
constexpr var ifft2(operand x) { return ifftn(x, {-2, -1}); }

/// The transform of real numbers along an axis: of n numbers the first n/2 + 1, of which the others
/// are the conjugates.
constexpr var rfft(operand x, int axis = -1) {
  const var v = x.in(*x.owner());
  const int a = detail::fourier_axis("rfft", v, axis, x.at());
  if (a < 0) return v;
  if (is_complex(v.element()) || v.extent(a) < 1) {
    v.b->fail(text() << x.at() << ": rfft: needs real numbers along the axis: "
                     << v.b->describe(v.id) << " is " << v.type() << "; fft takes complex ones");
    return v;
  }
  return emit<rfft_op>(rfft_op::options{a}, x.at(), v);
}
/// Its inverse: n real numbers (or 2 (m - 1), if n is 0) from the first m = n/2 + 1 of their
/// transform.
constexpr var irfft(operand x, int n = 0, int axis = -1) {
  const var v = x.in(*x.owner());
  const int a = detail::fourier_axis("irfft", v, axis, x.at());
  if (a < 0) return v;
  const int m = v.extent(a), count = n ? n : 2 * (m - 1);
  if (count < 1 || count / 2 + 1 != m) {
    v.b->fail(text() << x.at() << ": irfft: " << count << " numbers do not have " << m
                     << " in their transform, but " << count / 2 + 1 << ": " << v.b->describe(v.id)
                     << " is " << v.type());
    return v;
  }
  return emit<irfft_op>(irfft_op::options{a, count, 1, 1}, x.at(), detail::as_complex(v));
}
/// Of real numbers along several axes: `rfft` along the last one named, `fft` along the others.
constexpr var rfftn(operand x, const axis_list& axes) {
  var y = rfft(x, axes.size() ? axes[axes.size() - 1] : -1);
  for (int i = 0; i + 1 < axes.size(); ++i) y = fft({y, x.at()}, axes[i]);
  return y;
}
/// Of real numbers along the last two axes.
constexpr var rfft2(operand x) { return rfftn(x, {-2, -1}); }

// ------------------------------------------------------------------------------------------------

inline void rfft_op::compute(const attributes& o, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const std::int64_t n = numbers(o, in[0].type.shape);
  detail::transform_of_line<detail::real_fourier_transform> t(n, -1);
  const double scale = a.scale(n);
  detail::each_line(
      a.axis, in[0].type.shape, out[0].type.shape, [&](auto from, auto to, auto step) {
        const auto x = [&](std::int64_t j) { return read_number<double>(in[0], from + j * step); };
        for (std::int64_t j = 0; j < t.of.count(); ++j)
          t.line[std::size_t(j)] = t.of.in_pairs() ? std::complex(x(2 * j), x(2 * j + 1)) : x(j);
        t.of.to_spectrum(t.line.data(), t.result.data(), t.work.data(), a.twice ? 2 : 1);
        for (std::int64_t k = 0; k < n / 2 + 1; ++k)
          write_number(out[0], to + k * step, t.result[std::size_t(k)] * scale);
      });
}

inline void irfft_op::compute(const attributes& o, span<const tensor_ref> in,
                              span<const tensor_ref> out) {
  const auto a = o.as<options>();
  detail::transform_of_line<detail::real_fourier_transform> t(a.count, 1);
  const double scale = a.scale(a.count);
  detail::each_line(
      a.axis, in[0].type.shape, out[0].type.shape, [&](auto from, auto to, auto step) {
        for (std::int64_t k = 0; k < a.count / 2 + 1; ++k)
          t.line[std::size_t(k)] = read_number<std::complex<double>>(in[0], from + k * step);
        t.of.from_spectrum(t.line.data(), t.result.data(), t.work.data(), a.twice ? 2 : 1);
        for (std::int64_t j = 0; j < a.count; ++j) {
          const std::complex<double> z = t.result[std::size_t(t.of.in_pairs() ? j / 2 : j)];
          const double y = t.of.in_pairs() && j % 2 ? z.imag() : z.real();
          write_number(out[0], to + j * step, y * scale);
        }
      });
}

}  // namespace cella
