// Reverse-mode derivatives by transforming the graph: grad, value_and_grad, vjp, of any order,
// usable inside cells and inside each other.
#pragma once

#include <array>
#include <cella/graph/cell_check.hpp>
#include <cella/graph/name_pattern.hpp>
#include <cella/graph/once.hpp>
#include <cella/transform/branching.hpp>
#include <cella/transform/pullback.hpp>
#include <tuple>
#include <utility>

namespace cella {

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

/// The trainable parameters bound so far, of those that match a pattern (`*` stands for any
/// characters): what to differentiate by, `gradients(loss, parameters_of(loss, "head.*"))`.
CELLA_ONCE constexpr list<var> parameters_of(var x, std::string_view pattern = "*") {
  builder& b = *x.b;
  list<var> found;
  for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
    const input_info& in = b.g.inputs[i];
    if (in.role == input_role::parameter && matches(pattern, b.g.view(in.name)))
      found.push_back({&b, b.g.input(int(i))});
  }
  return found;
}

/// What `value_and_grad` returns: the value and one gradient per differentiated argument.
template <std::size_t N>
struct valued_gradient {
  var value;
  std::array<var, N> gradient;
};

/// The gradient of a scalar function with respect to `wrt`: values that the function's result was
/// computed from, parameters of cells (bound as inputs) among them.
CELLA_ONCE constexpr list<var> gradients(
    var y, span<const var> wrt, std::source_location at = std::source_location::current()) {
  list<var> out(wrt.begin(), wrt.end());
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

/// The same by values that are listed: `gradients(loss, {layer.weight, layer.bias})`.
constexpr list<var> gradients(var y, std::initializer_list<var> wrt,
                              std::source_location at = std::source_location::current()) {
  return gradients(y, span<const var>(wrt.begin(), wrt.size()), at);
}

namespace detail {
/// Whether an F takes so many vars, and returns one.
template <class F, std::size_t Count>
concept function_of_vars = calls_with<const F, Count>::value &&
    std::is_convertible_v<typename calls_with<const F, Count>::template result<const F>, var>;
/// Says why an F is none.
template <class F, std::size_t Count>
constexpr void refuse_function(builder& b, std::string_view who, std::source_location at) {
  text fault;
  fault << at << ": " << who << ": the function ";
  if constexpr (calls_with<const F, Count>::value)
    b.fail(fault << "returns "
                 << type_name<typename calls_with<const F, Count>::template result<const F>>()
                 << "; it has to return a var");
  else
    b.fail(fault << "does not take " << count_of_tensors(int(Count))
                 << ", with which it is called");
}
}  // namespace detail

/// f -> (x, rest...) -> {f(x, rest...), df/dx}. With `Count`, of the first `Count` arguments.
template <std::size_t Count = 1, class F>
constexpr auto value_and_grad(F f, std::source_location at = std::source_location::current()) {
  return [f, at]<class... Rest>(Rest... arguments) {
    std::array<var, sizeof...(Rest)> x{arguments...};
    if constexpr (Count > sizeof...(Rest)) {
      x[0].b->fail(text() << at << ": value_and_grad<" << Count << ">: is called with "
                          << sizeof...(Rest) << (sizeof...(Rest) == 1 ? " argument" : " arguments")
                          << "; the gradient is by so many of the first at most");
      valued_gradient<Count> r{x[0], {}};
      r.gradient.fill(x[0]);
      return r;
    } else if constexpr (!detail::function_of_vars<F, sizeof...(Rest)>) {
      detail::refuse_function<F, sizeof...(Rest)>(*x[0].b, "grad", at);
      valued_gradient<Count> r{x[0], {}};
      for (std::size_t k = 0; k < Count; ++k) r.gradient[k] = x[k];
      return r;
    } else {
      for (std::size_t k = 0; k < Count; ++k) x[k] = detail::fresh(x[k]);
      const var y = detail::run_paths(*x[0].b, [&]() -> var { return std::apply(f, x); });
      const auto g = gradients(y, span<const var>(x.data(), Count), at);
      valued_gradient<Count> r{y, {}};
      for (std::size_t k = 0; k < Count; ++k) r.gradient[k] = g[k];
      return r;
    }
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
  if constexpr (!detail::function_of_vars<F, 1>) {
    detail::refuse_function<F, 1>(*x.b, "vjp", at);
    return {x, x};
  } else {
    const var t = detail::fresh(x);
    builder& b = *t.b;
    const var y = detail::run_paths(b, [&]() -> var { return f(t); });
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
}

}  // namespace cella
