// Values combined at places that the data name: by their largest, smallest or product; segments;
// bags of embeddings.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/reduction.hpp>
#include <limits>

namespace cella {

/// What happens to values that meet at one place.
enum class scatter_mode : std::int32_t { update, add, multiply, maximum, minimum };

/// values [N,D...], indices [N] -> [extent,D...]: at each row the largest, smallest or product of
/// the values whose index names it; where there is none 1, or what is less or larger than all. What
/// an index outside names is dropped.
struct scatter_reduce_op : opaque<scatter_reduce_op>, computed_in_single {
  static constexpr std::string_view name = "scatter_reduce";
  static constexpr std::string_view torch = "Tensor.scatter_reduce";
  static constexpr std::string_view formula =
      "the largest, smallest or product of the rows at each index";
  static constexpr compute_class computes = compute_class::indexed;
  static constexpr int operations_per_point = 1;
  struct options {
    std::int32_t extent{};
    std::int32_t mode = std::int32_t(scatter_mode::maximum);
    constexpr scatter_mode how() const { return scatter_mode(mode); }
  };
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return a.rank() >= 1 && a.rank(1) == 1 && a.of(0)[0] == a.of(1)[0] && a.whole(1) &&
           o.extent >= 0 && o.how() >= scatter_mode::multiply && o.how() <= scatter_mode::minimum;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    tensor_type t = in[0];
    t.shape[0] = o.as<options>().extent;
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    auto s = detail::rows_space(in[0].shape, 0, 1, 2, 0);
    s.over = combination::maximum;
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {};
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
/// A fault unless there is an index for each row of the values.
constexpr bool has_row_indices(std::string_view op, var values, var indices,
                               std::source_location at) {
  if (!are_indices(op, indices, at)) return false;
  if (indices.rank() == 1 && values.rank() >= 1 && values.extent(0) == indices.extent(0))
    return true;
  values.b->fail(text() << at << ": " << op << ": the indices " << indices.shape()
                        << " are not one for each row of " << values.b->describe(values.id) << " "
                        << values.shape());
  return false;
}
constexpr var reduce_rows(std::string_view op, operand values, operand indices, int extent,
                          scatter_mode mode) {
  builder& b = owner_of(values, indices);
  const var v = values.in(b);
  const var i = indices.in(b);
  if (!has_row_indices(op, v, i, values.at())) return v;
  if (extent < 1 || is_complex(v.element()) || v.element() == dtype::boolean) {
    b.fail(text() << values.at() << ": " << op << ": " << b.describe(v.id) << " is " << v.type()
                  << ", the result has " << extent << " rows; it needs numbers that have an order, "
                  << "and a row");
    return v;
  }
  return emit<scatter_reduce_op>(scatter_reduce_op::options{extent, std::int32_t(mode)},
                                 values.at(), v, i);
}
/// Numbers of rows as a column beside rows like `v`.
constexpr var beside_rows(var numbers, var v) {
  shape s = numbers.shape();
  while (s.rank < v.rank()) s.push_back(1);
  return reshape(numbers, s);
}
}  // namespace detail

/// The largest of the rows of values [N,D...] with each segment number [N] -> [count,D...]; minus
/// infinity where there is none. Numbers need no order.
constexpr var segment_max(operand values, operand segments, int count) {
  return detail::reduce_rows("segment_max", values, segments, count, scatter_mode::maximum);
}
/// The smallest; infinity where there is none.
constexpr var segment_min(operand values, operand segments, int count) {
  return detail::reduce_rows("segment_min", values, segments, count, scatter_mode::minimum);
}
/// The product; 1 where there is none.
constexpr var segment_prod(operand values, operand segments, int count) {
  return detail::reduce_rows("segment_prod", values, segments, count, scatter_mode::multiply);
}
/// The sum; 0 where there is none.
constexpr var segment_sum(operand values, operand segments, int count) {
  return scatter(values, segments, count);
}
/// The mean; 0 where there is none.
constexpr var segment_mean(operand values, operand segments, int count) {
  const var total = segment_sum(values, segments, count);
  builder& b = *total.b;
  const var i = segments.in(b);
  const var each = scatter(constant(b, 1, {total.element(), i.shape()}), {i, segments.at()}, count);
  return total / detail::beside_rows(maximum(each, 1), total);
}

/// x with `values` put into the rows that the indices [N] name, combined with what is there as
/// `mode` says. Several updates of one row add up.
constexpr var scatter_rows(operand x, operand indices, operand values, scatter_mode mode) {
  builder& b = owner_of(x, values);
  const var v = x.in(b);
  const int extent = v.rank() ? v.extent(0) : 0;
  switch (mode) {
    case scatter_mode::add:
      return scatter_add(x, indices, values);
    case scatter_mode::update: {
      const var i = indices.in(b);
      const var hits = scatter(constant(b, 1, {dtype::i32, i.shape()}), indices, extent);
      return select(detail::beside_rows(hits, v) > 0, scatter(values, indices, extent), v);
    }
    case scatter_mode::multiply:
      return v * operand(segment_prod(values, indices, extent), values.at());
    case scatter_mode::maximum:
      return maximum({v, x.at()}, {segment_max(values, indices, extent), values.at()});
    default:
      return minimum({v, x.at()}, {segment_min(values, indices, extent), values.at()});
  }
}
/// x with each value put where its own index points along `axis`, and at its own place along the
/// others (PyTorch's scatter_reduce, ONNX's ScatterElements). Indices and values have one shape.
constexpr var scatter_elements(operand x, operand indices, operand values, int axis,
                               scatter_mode mode) {
  builder& b = owner_of(x, values);
  const var v = x.in(b);
  const var u = values.in(b);
  const int a = detail::find_axis("scatter_elements", v, axis, x.at());
  if (a < 0 || !detail::are_indices("scatter_elements", indices.in(b), indices.at())) return v;
  const var i = cast(indices, dtype::i64);
  const shape s = v.shape(), t = i.shape();
  bool fits = t == u.shape() && t.rank == s.rank;
  for (int d = 0; fits && d < s.rank; ++d) fits = d == a || t[d] <= s[d];
  if (!fits) {
    b.fail(text() << indices.at() << ": scatter_elements: indices " << t << " and values "
                  << u.shape() << " must have one shape, which fits into " << b.describe(v.id)
                  << " " << s << " beside axis " << axis);
    return v;
  }
  if (mode == scatter_mode::add)
    return v + operand(emit<scatter_elements_op>(scatter_elements_op::options{s, a}, values.at(), u,
                                                 indices.in(b)),
                       x.at());
  var place = constant(b, 0, {dtype::i64, t});
  for (int d = 0; d < s.rank; ++d)
    place = place * s[d] + (d == a ? i : iota(b, {dtype::i64, t}, d));
  // What is outside along the axis would name another row.
  place = select(logical_and(i >= 0, i < s[a]), place, -1);
  const var flat = scatter_rows(reshape(x, {s.size()}), reshape(place, {t.size()}),
                                reshape(values, {t.size()}), mode);
  return reshape(flat, s);
}
/// x with the values or slices put at the places that index tuples [...,K] name in its first K
/// axes.
constexpr var scatter_nd(operand x, operand indices, operand values, scatter_mode mode) {
  builder& b = owner_of(x, values);
  const var v = x.in(b);
  const var i = indices.in(b);
  if (!detail::are_indices("scatter_nd", i, indices.at())) return v;
  const shape s = v.shape();
  const int k = i.rank() ? i.extent(-1) : 0;
  if (k < 1 || k > s.rank) {
    b.fail(text() << indices.at() << ": scatter_nd: the last axis of the indices " << i.shape()
                  << " must name 1 to " << s.rank << " axes of " << b.describe(v.id) << " " << s);
    return v;
  }
  const std::int64_t count = i.shape().size() / k;
  shape rows{s.size(0, k)}, put{count};
  for (int d = k; d < s.rank; ++d) {
    rows.push_back(s[d]);
    put.push_back(s[d]);
  }
  const var places = detail::flat_index(reshape(indices, {count, k}), s);
  return reshape(scatter_rows(reshape(x, rows), places, reshape(values, put), mode), s);
}

/// Sums of the rows of a table [V,D] that bags of indices [B,N] name -> [B,D]; with `weights` [B,N]
/// each row has one. `mean` divides by N.
constexpr var embedding_bag(operand indices, operand table, bool mean = false) {
  const var rows = embedding(indices, table);
  return mean ? cella::mean(rows, {-2}) : sum(rows, {-2});
}
constexpr var embedding_bag(operand indices, operand table, operand weights) {
  const var rows = embedding(indices, table);
  return sum(rows * operand(expand_dims(weights, -1), weights.at()), {-2});
}

// ---- rules

constexpr void scatter_reduce_op::vjp(node_ref n, span<const var> dy, span<const char>,
                                      span<var> dx) {
  const var x = n.operand(0), i = n.operand(1), y = n.output();
  const auto o = n.as<options>();
  if (o.how() != scatter_mode::multiply) {
    // As of the largest along an axis: those that equal it share evenly.
    const var hit = equal(x, gather(y, i));
    const var count = scatter(cast(hit, x.element()), i, o.extent);
    const var share = dy[0] / maximum(count, 1);
    dx[0] = select(hit, gather(share, i), zeros_like(x));
    return;
  }
  // The product of the others: of those that are not 0, unless another one is.
  const var zero = equal(x, zeros_like(x));
  const var safe = select(zero, ones_like(x), x);
  const var others =
      gather(dy[0] * emit<scatter_reduce_op>(o, std::source_location::current(), safe, i), i);
  const var zeros = gather(scatter(cast(zero, x.element()), i, o.extent), i);
  const var except = select(zero, ones_like(x), zeros_like(x));
  dx[0] = select(zeros > except, zeros_like(x), others / safe);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void scatter_reduce_op::compute(const attributes& o, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const auto mode = o.as<options>().how();
  const double infinity = std::numeric_limits<double>::infinity();
  fill(out[0], mode == scatter_mode::multiply  ? 1
               : mode == scatter_mode::maximum ? -infinity
                                               : infinity);
  const std::int64_t count = in[1].type.size(), rows = out[0].type[0];
  const std::int64_t width = out[0].type.shape.size(1, out[0].type.rank());
  with_element(out[0].type.element, [&]<class T>() {
    if constexpr (!is_complex_number<T>) {
      using whole = std::conditional_t<std::is_unsigned_v<T>, std::uint64_t, std::int64_t>;
      using N = std::conditional_t<std::is_integral_v<T>, whole, double>;
      const T* const x = reinterpret_cast<const T*>(in[0].data);
      T* const y = reinterpret_cast<T*>(out[0].data);
      const auto meet = [&](auto* to, auto f) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t r = read_position(in[1], i);
          if (r < 0 || r >= rows) continue;
          for (std::int64_t j = 0; j < width; ++j)
            to[r * width + j] = f(to[r * width + j], x[i * width + j]);
        }
      };
      const auto number = [](T v) { return to_number<N>(v); };
      if (mode == scatter_mode::maximum) {
        meet(y, [=](T b, T v) { return number(v) != number(v) || number(v) > number(b) ? v : b; });
      } else if (mode == scatter_mode::minimum) {
        meet(y, [=](T b, T v) { return number(v) != number(v) || number(v) < number(b) ? v : b; });
      } else {
        list<N> all(std::size_t(rows * width), N(1));
        meet(all.data(), [=](N b, T v) { return detail::wrapping_product(b, number(v)); });
        for (std::size_t i = 0; i < all.size(); ++i) y[i] = from_number<T>(all[i]);
      }
    }
  });
}

#endif

}  // namespace cella
