// Contractions: matrix products of every layout are one operation whose attributes are its
// iteration space.
#pragma once

#include <algorithm>
#include <cella/graph/once.hpp>
#include <cella/ops/complex.hpp>
#include <vector>

namespace cella {

/// y[result] = sum over the factors that the result lacks of a[...] * b[...]. Each dimension of the
/// operands and of the result walks along one factor; every factor of the result occurs in an
/// operand.
struct matmul_op : bilinear<matmul_op>, takes_complex {
  static constexpr std::string_view name = "matmul";
  static constexpr std::string_view numpy = "np.einsum";
  static constexpr std::string_view torch = "torch.einsum";
  static constexpr std::string_view formula = "y = sum over factors that the result lacks of a b";
  static constexpr onnx_operator onnx{"MatMul", 1};
  struct options {
    iteration_space::axes a = iteration_space::no_axes;
    iteration_space::axes b = iteration_space::no_axes;
    iteration_space::axes result = iteration_space::no_axes;
  };
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const auto x = o.as<options>();
    iteration_space s(2);
    auto walk = [&](int tensor, const iteration_space::axes& axes) {
      for (int d = 0; d < max_rank && axes[std::size_t(d)] >= 0; ++d) {
        const auto f = std::size_t(axes[std::size_t(d)]);
        if (f >= s.factors.size()) s.factors.resize(f + 1);
        if (tensor < 2) s.factors[f].extent = in[std::size_t(tensor)][d];
        s.along(tensor, d, int(f));
      }
    };
    walk(0, x.a);
    walk(1, x.b);
    walk(2, x.result);
    s.over = combination::sum;
    return s;
  }
  static constexpr attributes part_options(const attributes& o, const shape&) { return o; }
  static constexpr attributes direction_options(const attributes& o, int, int, unsigned marked) {
    return with_trailing_factor(o.as<options>(), marked & 1, marked & 2, true);
  }
  static constexpr int operands = 2;
  static bool fits(const op_application& a);
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto x = o.as<options>();
    std::array<int, 2 * max_rank> extent{};
    for (std::size_t d = 0; d < std::size_t(in[0].rank()); ++d)
      extent[std::size_t(x.a[d])] = in[0][int(d)];
    for (std::size_t d = 0; d < std::size_t(in[1].rank()); ++d)
      extent[std::size_t(x.b[d])] = in[1][int(d)];
    tensor_type t{in[0].element, {}};
    for (std::int8_t f : x.result) {
      if (f >= 0) t.shape.push_back(extent[std::size_t(f)]);
    }
    return t;
  }
  static constexpr var transpose(node_ref n, int i, var dy) {
    const auto o = n.as<options>();
    return i == 0 ? emit<matmul_op>(options{o.result, o.b, o.a}, std::source_location::current(),
                                    dy, conj(n.operand(1)))
                  : emit<matmul_op>(options{o.a, o.result, o.b}, std::source_location::current(),
                                    conj(n.operand(0)), dy);
  }
  /// The same with one more factor, which the chosen tensors walk first.
  static constexpr options with_leading_factor(options o, bool in_a, bool in_b, bool in_result) {
    return with_factor(o, in_a, in_b, in_result, &prepend);
  }
  /// The same with one more factor, which the chosen tensors walk last.
  static constexpr options with_trailing_factor(options o, bool in_a, bool in_b, bool in_result) {
    return with_factor(o, in_a, in_b, in_result, &iteration_space::append);
  }
  static constexpr attributes batch_options(node_ref n, int, unsigned batched) {
    return with_leading_factor(n.as<options>(), batched & 1, batched & 2, true);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);

 private:
  static constexpr void prepend(iteration_space::axes& axes, std::int8_t f) {
    for (std::size_t i = axes.size() - 1; i > 0; --i) axes[i] = axes[i - 1];
    axes[0] = f;
  }
  /// No template: clang would not yet have instantiated it when a program is made.
  static constexpr options with_factor(options o, bool in_a, bool in_b, bool in_result,
                                       void (*walk)(iteration_space::axes&, std::int8_t)) {
    std::int8_t factor = 0;
    for (const auto* axes : {&o.a, &o.b}) {
      for (std::int8_t f : *axes) factor = f >= factor ? std::int8_t(f + 1) : factor;
    }
    if (in_a) walk(o.a, factor);
    if (in_b) walk(o.b, factor);
    if (in_result) walk(o.result, factor);
    return o;
  }
};

/// Matrix product over the last two axes. Leading axes are batches: they are equal in both
/// operands, or one operand has none. A rank-1 operand is a row (left) or a column (right) and its
/// axis vanishes from the result. `transpose_a`/`transpose_b` swap the last two axes first.
CELLA_ONCE constexpr var matmul(operand left, operand right, bool transpose_a = false,
                                bool transpose_b = false) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  const int rx = x.rank();
  const int ry = y.rank();
  const int batch_x = rx > 2 ? rx - 2 : 0;
  const int batch_y = ry > 2 ? ry - 2 : 0;
  auto refuse = [&](std::string_view why) {
    b.fail(text() << right.at() << ": matmul: " << why << ": " << b.describe(x.id) << " is "
                  << x.shape() << (transpose_a ? " transposed" : "") << ", " << b.describe(y.id)
                  << " is " << y.shape() << (transpose_b ? " transposed" : ""));
    return x;
  };
  if (rx == 0 || ry == 0) return refuse("a scalar has no matrix product");
  if (x.element() != y.element()) {
    b.fail(text() << right.at() << ": matmul: element types differ: " << b.describe(x.id) << " is "
                  << x.type() << ", " << b.describe(y.id) << " is " << y.type()
                  << "; convert one with cast()");
    return x;
  }
  if (batch_x && batch_y) {
    bool same = batch_x == batch_y;
    for (int d = 0; same && d < batch_x; ++d) same = x.extent(d) == y.extent(d);
    if (!same) return refuse("batch dimensions differ");
  }
  // Factors: batches 0..., then i (rows) and j (columns) unless a vector lacks them, k (summed).
  const int batches = batch_x > batch_y ? batch_x : batch_y;
  const auto i = std::int8_t(batches);
  const auto j = std::int8_t(rx > 1 ? i + 1 : i);
  const auto k = std::int8_t(ry > 1 ? j + 1 : j);
  matmul_op::options o;
  std::size_t result = 0;
  for (int d = 0; d < batches; ++d) {
    if (d < batch_x) o.a[std::size_t(d)] = std::int8_t(d);
    if (d < batch_y) o.b[std::size_t(d)] = std::int8_t(d);
    o.result[result++] = std::int8_t(d);
  }
  const auto bx = std::size_t(batch_x);
  const auto by = std::size_t(batch_y);
  if (rx == 1) {
    o.a[0] = k;
  } else {
    o.a[bx] = transpose_a ? k : i;
    o.a[bx + 1] = transpose_a ? i : k;
    o.result[result++] = i;
  }
  if (ry == 1) {
    o.b[0] = k;
  } else {
    o.b[by] = transpose_b ? j : k;
    o.b[by + 1] = transpose_b ? k : j;
    o.result[result++] = j;
  }
  const int inner_x = x.extent(rx > 1 && transpose_a ? -2 : -1);
  const int inner_y = y.extent(ry > 1 && !transpose_b ? -2 : -1);
  if (inner_x != inner_y) return refuse("inner dimensions differ");
  return emit<matmul_op>(o, right.at(), x, y);
}

/// Outer product of two vectors: [m], [n] -> [m,n].
constexpr var outer(operand left, operand right) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  if (x.rank() != 1 || y.rank() != 1) {
    b.fail(text() << right.at() << ": outer: both operands must be vectors: " << b.describe(x.id)
                  << " is " << x.shape() << ", " << b.describe(y.id) << " is " << y.shape());
    return x;
  }
  return matmul(reshape({x, left.at()}, {x.extent(0), 1}),
                {reshape({y, right.at()}, {1, y.extent(0)}), right.at()});
}

/// Sum of products over `axes_x` of x and `axes_y` of y, in pairs; the remaining axes of x come
/// first, then those of y.
constexpr var tensor_dot(operand left, operand right, const axis_list& axes_x,
                         const axis_list& axes_y) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  matmul_op::options o;
  std::int8_t next = 0;
  for (int d = 0; d < x.rank(); ++d) o.a[std::size_t(d)] = next++;
  bool fits = axes_x.size() == axes_y.size();
  unsigned used = 0;
  for (int k = 0; fits && k < axes_x.size(); ++k) {
    const int p = axes_x[k];
    const int q = axes_y[k];
    fits = p >= 0 && p < x.rank() && q >= 0 && q < y.rank() && x.extent(p) == y.extent(q) &&
           !(used >> p & 1) && o.b[std::size_t(q)] < 0;
    if (fits) o.b[std::size_t(q)] = o.a[std::size_t(p)];
    used |= 1u << (p & 31);
  }
  fits &= x.rank() + y.rank() - 2 * axes_x.size() <= max_rank && x.element() == y.element();
  if (!fits) {
    b.fail(text() << right.at() << ": tensor_dot: the axes do not pair up: " << b.describe(x.id)
                  << " is " << x.type() << ", " << b.describe(y.id) << " is " << y.type());
    return x;
  }
  std::size_t result = 0;
  for (int d = 0; d < x.rank(); ++d) {
    bool summed = false;
    for (int p : axes_x) summed |= p == d;
    if (!summed) o.result[result++] = std::int8_t(d);
  }
  for (int d = 0; d < y.rank(); ++d) {
    if (o.b[std::size_t(d)] >= 0) continue;
    o.b[std::size_t(d)] = next;
    o.result[result++] = next++;
  }
  return emit<matmul_op>(o, right.at(), x, y);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline bool matmul_op::fits(const op_application& a) {
  const auto o = a.as<options>();
  std::array<int, 2 * max_rank> extent{};
  extent.fill(-1);
  const int most = int(extent.size());
  for (int k = 0; k < 2; ++k) {
    const auto& axes = k == 0 ? o.a : o.b;
    if (!names_axes(axes, a.rank(k), most)) return false;
    for (int d = 0; d < a.rank(k); ++d) {
      int& e = extent[std::size_t(axes[std::size_t(d)])];
      if (e >= 0 && e != a.of(k)[d]) return false;
      e = a.of(k)[d];
    }
  }
  const auto count =
      std::find(extent.begin(), extent.end(), -1) - extent.begin();  // there are no gaps
  if (std::any_of(extent.begin() + count, extent.end(), [](int e) { return e >= 0; })) return false;
  const auto end =
      std::find(o.result.begin(), o.result.end(), iteration_space::none) - o.result.begin();
  return names_axes(o.result, int(end), int(count)) && a.in[0].element == a.in[1].element;
}
inline void matmul_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  const std::array types{in[0].type, in[1].type};
  const iteration_space s = space(types, o);
  const auto result = o.as<options>().result;
  std::array<std::array<std::int64_t, 2 * max_rank>, 2> step{};  // of each operand by factor
  for (const iteration_space::walk& w : s.walks) {
    if (w.tensor >= s.operands) continue;
    const auto x = std::size_t(w.tensor);
    const auto own = row_major_strides(in[x].type.shape);
    step[x][std::size_t(w.factor)] += own[std::size_t(w.axis)];
  }
  // Two nested loops, since all the factors together may be more than a tensor has axes.
  multi_index summed{};
  shape inner;
  for (int f = 0; f < int(s.factors.size()); ++f) {
    if (s.walks_along(s.result(), f)) continue;
    summed[std::size_t(inner.rank)] = f;
    inner.push_back(int(s.factors[std::size_t(f)].extent));
  }
  const auto sum_products = [&]<class N>() {
    for_each_index(out[0].type.shape, [&](std::int64_t k, const multi_index& i) {
      std::array<std::int64_t, 2> first{};
      for (int d = 0; d < out[0].type.rank(); ++d) {
        for (std::size_t x = 0; x < 2; ++x)
          first[x] += step[x][std::size_t(result[std::size_t(d)])] * i[std::size_t(d)];
      }
      N sum{};
      for_each_index(inner, [&](std::int64_t, const multi_index& j) {
        std::array<std::int64_t, 2> p = first;
        for (int d = 0; d < inner.rank; ++d) {
          for (std::size_t x = 0; x < 2; ++x)
            p[x] += step[x][std::size_t(summed[std::size_t(d)])] * j[std::size_t(d)];
        }
        sum = detail::wrapping_sum(sum, detail::wrapping_product(read_number<N>(in[0], p[0]),
                                                                 read_number<N>(in[1], p[1])));
      });
      write_number(out[0], k, sum);
    });
  };
  with_any_number(out[0].type.element, sum_products);
}

#endif

}  // namespace cella
