// Forward mode and what is made of both modes: jvp, jacobian, hessian, hvp.
#pragma once

#include <cella/transform/directions.hpp>
#include <cella/transform/forward.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/vmap.hpp>

namespace cella {

/// The value of f at x, and its derivative along dx, in one pass: `auto [y, dy] = jvp(f, x, dx)`.
/// x and dx are values of one type (a var, or tuples of vars).
template <class F, class X>
constexpr auto jvp(F f, X x, X dx, std::source_location at = std::source_location::current()) {
  using result = std::decay_t<decltype(f(x))>;
  builder& b = *builder_of(x);
  const ids in = flatten_value(x);
  const ids d = flatten_value(dx);
  const auto types = detail::types_of(b, in);
  if (!detail::same_types(b, types, detail::types_of(b, d), "the argument", "its tangent",
                          "they must be equal", "jvp", at))
    return std::pair<result, result>{f(x), f(x)};
  int r = 0;
  list<std::int32_t> assigned;
  const result value = detail::trace_region(b, types, r, assigned, [&]() -> result {
    return f(rebuild_value(x, b, detail::own_inputs(b)));
  });
  if (b.failed()) return std::pair<result, result>{value, value};
  const ids captured = b.g.regions[std::size_t(r)].captured;
  ids tangents;
  for (node_id n : d) tangents.push_back(is_differentiable(b.g.type(n).element) ? n : no_node);
  tangents.resize(in.size() + captured.size(), no_node);
  detail::dual_values out = detail::push_forward(b, r, detail::join_ids({in, captured}), tangents);
  b.discard(r);
  detail::assign_all(b, assigned,
                     detail::tail(out.primals, int(out.primals.size() - assigned.size())));
  for (std::size_t k = 0; k < out.primals.size(); ++k)
    out.tangents[k] = detail::or_zeros(b, out.tangents[k], b.g.type(out.primals[k]));
  return std::pair<result, result>{rebuild_value(value, b, out.primals),
                                   rebuild_value(value, b, out.tangents)};
}

namespace detail {

/// One basis vector of the space of `t` per slice: [n, extents of t] for n elements, or, if they
/// are `last`, [extents of t, n].
constexpr var basis(builder& b, const tensor_type& t, bool last = false) {
  const auto n = int(t.size());
  const shape matrix{n, n};
  const tensor_type square{dtype::i32, matrix};
  shape s = t.shape;
  s.insert(last ? s.rank : 0, n);
  return reshape(cast(equal(iota(b, square, 0), iota(b, square, 1)), t.element), s);
}
/// A fault unless a type is of real numbers: of complex ones one number for each pair of elements
/// would not be the derivative.
constexpr bool is_real(builder& b, std::string_view which, dtype t, std::source_location at) {
  if (!is_complex(t)) return true;
  b.fail(text() << at << ": jacobian: the " << which << " is " << t
                << "; take real() and imag() apart, or use jvp() or vjp()");
  return false;
}
/// A fault if the derivative of a `y` by an `x` has more axes than a tensor may, or x is complex.
constexpr bool has_jacobian(var x, int rank, std::source_location at) {
  if (!is_real(*x.b, "argument", x.element(), at)) return false;
  if (x.rank() + rank <= max_rank && x.rank() < max_rank && rank < max_rank) return true;
  x.b->fail(text() << at << ": jacobian: the argument has " << x.rank() << " axes, the result "
                   << rank << "; a tensor has at most " << max_rank);
  return false;
}
/// What f returns for x; it is traced on the side to know.
template <class F>
constexpr tensor_type type_of_result(F& f, var x) {
  builder& b = *x.b;
  int r = 0;
  const type_list in{x.type()};
  list<std::int32_t> assigned;
  in_body(b, {}, [&] {
    auto run = [&]() -> var { return f(var{&b, own_inputs(b)[0]}); };
    return trace_region(b, in, r, assigned, run);
  });
  if (b.failed()) return {};
  const tensor_type y = b.g.type(outputs_of(b, r)[0]);
  b.discard_since(r);
  return y;
}
constexpr shape joined(shape s, const shape& t) {
  for (int e : t) s.push_back(e);
  return s;
}

/// The derivatives of f at x along all basis vectors: [elements of y, elements of x], and the
/// extents of y.
template <class F>
constexpr std::pair<var, shape> derivatives_along_basis(F f, var x, std::source_location at) {
  builder& b = *x.b;
  const int size = int(x.shape().size());
  auto along = [&](var d) { return jvp(f, x, d, at).second; };
  const auto sample = trace_sample(along, std::tuple{x}, {x.type()}, true);
  if (b.failed()) return {x, {}};
  const shape y = b.g.type(outputs_of(b, sample.region)[0]).shape;
  if (!has_jacobian(x, y.rank, at)) return {x, {}};
  const ids captured = sample.captured(b);
  flags inputs{1};
  inputs.resize(1 + captured.size(), 0);
  const auto marked = trailing_values(b, sample.region, inputs);
  if (marked && sample.assigned.empty()) {
    const ids in = join_ids({ids{basis(b, x.type(), true).id}, captured});
    const ids out = replay_directions(b, sample.region, in, *marked, size);
    b.discard(sample.region);
    return {reshape(var{&b, out[0]}, {int(y.size()), size}), y};
  }
  const ids out = run_samples(b, sample, {basis(b, x.type()).id}, size, at);
  if (b.failed()) return {x, {}};
  return {transpose(reshape(var{&b, out[0]}, {size, int(y.size())})), y};
}

}  // namespace detail

/// f -> (x) -> all derivatives of the result by x: extents of the result, then those of x. By
/// forward mode: one pass per element of x, all passes together.
template <class F>
constexpr auto jacobian_forward(F f, std::source_location at = std::source_location::current()) {
  return [f, at](var x) {
    builder& b = *x.b;
    if (!detail::has_jacobian(x, 0, at)) return x;
    const auto [matrix, y] = detail::derivatives_along_basis(f, x, at);
    if (b.failed()) return x;
    return reshape(matrix, detail::joined(y, x.shape()));
  };
}

/// The same by reverse mode: one sweep per element of the result.
template <class F>
constexpr auto jacobian_reverse(F f, std::source_location at = std::source_location::current()) {
  return [f, at](var x) {
    builder& b = *x.b;
    const tensor_type y = detail::type_of_result(f, x);
    if (b.failed() || !detail::has_jacobian(x, y.rank(), at) ||
        !detail::is_real(b, "result", y.element, at))
      return x;
    const var rows = detail::batch_function([&](var dy) { return vjp(f, x, dy, at).second; }, true,
                                            at)(detail::basis(b, y));
    if (b.failed()) return x;
    return reshape(rows, detail::joined(y.shape, x.shape()));
  };
}

/// The same by the mode with fewer passes: reverse if the result has fewer elements than x.
template <class F>
constexpr auto jacobian(F f, std::source_location at = std::source_location::current()) {
  return [f, at](var x) {
    const tensor_type y = detail::type_of_result(f, x);
    if (x.b->failed()) return x;
    if (y.size() < x.shape().size()) return jacobian_reverse(f, at)(x);
    return jacobian_forward(f, at)(x);
  };
}

/// f -> (x) -> second derivatives of a scalar function: extents of x, twice. Forward over reverse.
template <class F>
constexpr auto hessian(F f, std::source_location at = std::source_location::current()) {
  return jacobian_forward(grad(f, at), at);
}

/// The Hessian of a scalar function at x times v, without the Hessian: forward over reverse.
/// Pearlmutter 1994
template <class F>
constexpr var hvp(F f, var x, var v, std::source_location at = std::source_location::current()) {
  return jvp(grad(f, at), x, v, at).second;
}

}  // namespace cella
