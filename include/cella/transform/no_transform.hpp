// What is written with transforms by habit and is none: axes and values beside the function that is
// transformed, a value in its place. As in no_control.hpp it is declared, so that one sentence says
// what to write instead. Included by no_control.hpp.
#pragma once

#include <cella/transform/no_control.hpp>

namespace cella {

namespace detail {

/// What stands for a function that was refused.
struct no_function : var {
  template <class... X>
  constexpr var operator()(const X&...) const {
    return *this;
  }
};
constexpr no_function refuse_value(std::string_view op, located x) {
  return {refuse_form(op, "transforms a function, and is given a value: write the function first",
                      x.at, x.value)};
}
/// The transform takes the function alone, and what it yields takes the values.
constexpr no_function refuse_at_once(std::string_view op, located x) {
  text form;
  form << "yields a function, which takes the values: " << op << "(f)(x)";
  return {refuse_form(op, form.view(), x.at, x.value)};
}
struct no_axes {
  __attribute__((unavailable(
      "vmap goes along the leading axes of its arguments: vmap(f)(move_axis(x, 1, 0))")))  //
  constexpr no_axes(int) {}
  __attribute__((unavailable(
      "vmap goes along the leading axes of its arguments; what is the same for all f closes over: "
      "vmap([&](var v) { return f(v, w); })(x)")))  //
  constexpr no_axes(std::initializer_list<int>) {}
};
struct no_argument_number {
  __attribute__((unavailable(
      "grad is by the first argument; value_and_grad<2>(f)(x, y).gradient[1] by the second")))  //
  constexpr no_argument_number(int) {}
};

}  // namespace detail

template <detail::function_like F>
constexpr auto vmap(F f, detail::no_axes) {
  return f;
}
template <detail::function_like F>
constexpr auto grad(F, detail::no_argument_number) {
  return [](var x, auto...) { return x; };
}
constexpr auto vmap(detail::located x) { return detail::refuse_value("vmap", x); }
constexpr auto checkpoint(detail::located x) { return detail::refuse_value("checkpoint", x); }
template <detail::function_like F, class... More>
constexpr auto vmap(F, detail::located x, More...) {
  return detail::refuse_at_once("vmap", x);
}
template <detail::function_like F, class... More>
constexpr auto checkpoint(F, detail::located x, More...) {
  return detail::refuse_at_once("checkpoint", x);
}
template <detail::function_like F, class... More>
constexpr auto grad(F, detail::located x, More...) {
  return detail::refuse_at_once("grad", x);
}
template <class... More>
constexpr auto grad(detail::located x, var, More...) {
  return detail::refuse_value("grad", x);
}
template <detail::function_like F>
constexpr auto jacobian(F, detail::located x) {
  return detail::refuse_at_once("jacobian", x);
}
template <detail::function_like F>
constexpr auto hessian(F, detail::located x) {
  return detail::refuse_at_once("hessian", x);
}
template <detail::function_like F>
constexpr auto jvp(F, detail::located x) {
  const var v =
      detail::refuse_form("jvp", "takes the direction, too: jvp(f, x, dx)", x.at, x.value);
  return std::pair{v, v};
}
template <detail::function_like F>
constexpr auto vjp(F, detail::located x) {
  const var v =
      detail::refuse_form("vjp", "takes the cotangent, too: vjp(f, x, dy)", x.at, x.value);
  return std::pair{v, v};
}
template <detail::function_like F>
constexpr var hvp(F, detail::located x) {
  return detail::refuse_form("hvp", "takes the direction, too: hvp(f, x, v)", x.at, x.value);
}
/// Without a rule.
template <detail::function_like F>
constexpr auto custom_vjp(F f, std::source_location at = std::source_location::current()) {
  return [f, at](var x, auto...) {
    return detail::refuse_form(
        "custom_vjp",
        "takes a rule behind the function: custom_vjp(f, [](var x, var y, var dy) { return dy; })",
        at, x);
  };
}

}  // namespace cella
