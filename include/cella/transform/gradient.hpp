// Reverse-mode derivatives by transforming the graph: grad, value_and_grad, vjp, of any order,
// usable inside cells and inside each other.
#pragma once

#include <array>
#include <cella/ops/elementwise.hpp>
#include <tuple>
#include <utility>

namespace cella {

namespace detail {

/// dy times the partial derivative of node n by its operand i; no node if that is zero.
constexpr var times_partial(node_ref n, int i, var dy) {
  const var p = n.b->g.nodes[std::size_t(n.id)].op->partial(n, i);
  if (p.id == zero_partial.id) return {};
  if (p.id == one_partial.id) return dy;
  if (p.id == minus_one_partial.id) return -dy;
  return dy * p;
}

/// Whether a cotangent can flow through a node of this type.
constexpr bool carries_derivative(const node& n) {
  return n.type.element == dtype::tuple || is_differentiable(n.type.element);
}

}  // namespace detail

/// Appends to the open region what computes the cotangents of `wrt` from the cotangents `dys` of
/// `ys`, by one sweep backwards over the region. A value that does not depend on a `wrt` yields
/// no_node.
constexpr ids pullback(builder& b, std::span<const node_id> ys, std::span<const node_id> dys,
                       std::span<const node_id> wrt) {
  const int here = b.here();
  const ids order = b.g.regions[std::size_t(here)].nodes;  // the sweep appends behind these
  auto position = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  ids cotangent(order.size(), no_node);
  std::vector<ids> result_cotangents(order.size(), ids());  // of nodes with several results
  flags needed(order.size(), 0);

  std::size_t first = order.size();
  for (node_id w : wrt) {
    needed[position(w)] = 1;
    if (position(w) < first) first = position(w);
  }
  for (std::size_t i = first; i < order.size(); ++i) {
    const node& n = b.g.nodes[std::size_t(order[i])];
    if (!detail::carries_derivative(n)) {
      needed[i] = 0;
      continue;
    }
    for (node_id x : b.g.operands(order[i])) needed[i] |= needed[position(x)];
  }

  auto accumulate = [&](node_id& into, node_id d) {
    if (d < 0) return;
    into = into < 0 ? d : (var{&b, into} + var{&b, d}).id;
  };
  std::size_t last = 0;
  for (std::size_t k = 0; k < ys.size(); ++k) {
    const std::size_t p = position(b.local(ys[k]));
    if (p >= order.size()) continue;
    accumulate(cotangent[p], b.local(dys[k]));
    if (p > last) last = p;
  }

  // Scratch that is reused: allocations are what constant evaluation is slow at.
  ids in;
  std::vector<var> dy;
  std::vector<var> dx;
  flags want;
  for (std::size_t i = last + 1; i-- > first;) {
    if (!needed[i] || (cotangent[i] < 0 && result_cotangents[i].empty())) continue;
    const node_ref n{&b, order[i]};
    const op_info& op = *b.g.nodes[std::size_t(n.id)].op;
    const auto operands = b.g.operands(n.id);
    if (operands.empty() || b.failed()) continue;
    in.assign(operands.begin(), operands.end());

    if (&op == &get_info_of) {
      const std::size_t owner = position(in[0]);
      auto& all = result_cotangents[owner];
      if (all.empty()) all.assign(std::size_t(b.g.nodes[std::size_t(in[0])].result_count), no_node);
      accumulate(all[std::size_t(n.as<get_attributes>().result)], cotangent[i]);
      continue;
    }
    dx.assign(in.size(), var{});
    want.clear();
    for (node_id x : in) want.push_back(needed[position(x)]);
    // What a rule appends is attributed to the line and cell of the forward node.
    const name_ref outer = b.current_cell();
    b.current_cell(b.g.nodes[std::size_t(n.id)].cell);
    if (op.vjp) {
      dy.clear();
      if (result_cotangents[i].empty()) dy.push_back({&b, cotangent[i]});
      for (node_id d : result_cotangents[i]) dy.push_back({&b, d});
      op.vjp(n, dy, want, dx);
    } else {
      for (std::size_t k = 0; k < in.size(); ++k) {
        if (!want[k]) continue;
        const var d{&b, cotangent[i]};
        if (op.kind == op_kind::elementwise)
          dx[k] = detail::times_partial(n, int(k), d);
        else if (op.linear_in >> k & 1)
          dx[k] = op.transpose(n, int(k), d);
      }
    }
    b.current_cell(outer);
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (want[k]) accumulate(cotangent[position(in[k])], dx[k].id);
    }
  }

  ids result;
  for (node_id w : wrt) result.push_back(cotangent[position(w)]);
  return result;
}

namespace detail {

/// Every transform hands its function a fresh node, so that what the function closes over stays
/// constant even when it depends on the same value (nested derivatives would confuse
/// perturbations).
constexpr var fresh(var x) { return emit<identity_op>({}, std::source_location::current(), x); }

constexpr var or_zeros(builder& b, node_id id, var like) {
  return id < 0 ? zeros_like(like) : var{&b, id};
}

/// The scalar that a gradient is taken of, or a fault.
constexpr bool is_scalar_loss(var y, std::source_location at) {
  if (y.shape().size() == 1 && is_floating(y.element())) return true;
  y.b->fail(text() << at << ": grad: the function returns " << y.type()
                   << "; a gradient needs one floating-point number (sum or mean it, or use vjp)");
  return false;
}

}  // namespace detail

/// What `value_and_grad` returns: the value and one gradient per differentiated argument.
template <std::size_t N>
struct valued_gradient {
  var value;
  std::array<var, N> gradient;
};

/// The gradient of a scalar function with respect to `wrt`: values that the function's result was
/// computed from, parameters of cells (bound as inputs) among them.
constexpr std::vector<var> gradients(var y, std::span<const var> wrt,
                                     std::source_location at = std::source_location::current()) {
  std::vector<var> out(wrt.begin(), wrt.end());
  if (!detail::is_scalar_loss(y, at)) return out;
  builder& b = *y.b;
  ids targets;
  for (var w : wrt) targets.push_back(b.local(w.id));
  const std::array ys{y.id};
  const std::array dys{ones_like(y).id};
  const ids g = pullback(b, ys, dys, targets);
  for (std::size_t k = 0; k < g.size(); ++k) out[k] = detail::or_zeros(b, g[k], wrt[k]);
  return out;
}

/// f -> (x, rest...) -> {f(x, rest...), df/dx}. With `Count`, of the first `Count` arguments.
template <std::size_t Count = 1, class F>
constexpr auto value_and_grad(F f, std::source_location at = std::source_location::current()) {
  return [f, at]<class... Rest>(Rest... arguments) {
    std::array<var, sizeof...(Rest)> x{arguments...};
    static_assert(Count <= sizeof...(Rest), "value_and_grad: fewer arguments than asked for");
    for (std::size_t k = 0; k < Count; ++k) x[k] = detail::fresh(x[k]);
    const var y = std::apply(f, x);
    const auto g = gradients(y, std::span<const var>(x.data(), Count), at);
    valued_gradient<Count> r{y, {}};
    for (std::size_t k = 0; k < Count; ++k) r.gradient[k] = g[k];
    return r;
  };
}

/// f -> gradient of f by its first argument: `grad(f)(x, rest...)`. The result is a function again,
/// so `grad(grad(f))` is the second derivative.
template <class F>
constexpr auto grad(F f, std::source_location at = std::source_location::current()) {
  return [f, at](auto... x) { return value_and_grad<1>(f, at)(x...).gradient[0]; };
}

/// The value of f at x, and the cotangent of x for the cotangent dy of the value:
/// `auto [y, dx] = vjp(f, x, dy)`.
template <class F>
constexpr std::pair<var, var> vjp(F f, var x, var dy,
                                  std::source_location at = std::source_location::current()) {
  const var t = detail::fresh(x);
  const var y = f(t);
  builder& b = *y.b;
  if (y.type() != dy.type()) {
    b.fail(text() << at << ": vjp: the function returns " << y.type() << " but the cotangent is "
                  << dy.type());
    return {y, x};
  }
  const std::array ys{y.id};
  const std::array dys{dy.id};
  const std::array wrt{t.id};
  return {y, detail::or_zeros(b, pullback(b, ys, dys, wrt)[0], x)};
}

}  // namespace cella
