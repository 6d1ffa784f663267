// Which functions the operations of control flow take; of others see no_control.hpp.
#pragma once

#include <cella/transform/values.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella {

namespace detail {

/// Whether `for_each_var` finds vars in a T, as far as the T itself says.
template <class T>
concept has_vars = std::is_class_v<T> &&
    (std::is_aggregate_v<T> || is_sequence<T> || requires { std::tuple_size<T>::value; });
/// Whether a T may be made of vars alone, as far as it says without its members.
template <class T>
constexpr bool is_made_of_vars() {
  if constexpr (std::is_base_of_v<var, T>)
    return true;
  else if constexpr (requires { std::tuple_size<T>::value; })
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_made_of_vars<std::decay_t<std::tuple_element_t<I, T>>>() && ...);
    }
  (std::make_index_sequence<std::tuple_size_v<T>>{});
  else return has_vars<T>;
}
template <class T>
concept made_of_vars = is_made_of_vars<T>();
/// What a function is that is handed to a transform: neither a var nor a number.
template <class F>
concept function_like = !std::is_convertible_v<F, var> && !std::is_arithmetic_v<F>;
template <class F, class... X>
using result_of = std::decay_t<std::invoke_result_t<F&, X&...>>;

template <class F, class G, class... X>
concept branches = std::is_invocable_v<F&, X&...> && made_of_vars<result_of<F, X...>> &&
    std::is_invocable_r_v<result_of<F, X...>, G&, X&...>;
/// Whether `call_with` calls an F with a State. Of a tuple it may hand over the elements.
template <class Result, class F, class State>
constexpr bool takes_elements() {
  if constexpr (std::is_same_v<State, var> || !requires { std::tuple_size<State>::value; })
    return false;
  else
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::is_invocable_r_v<Result, F&, const std::tuple_element_t<I, State>&...>;
    }
  (std::make_index_sequence<std::tuple_size_v<State>>{});
}
template <class Result, class F, class State>
concept takes_state = std::is_invocable_r_v<Result, F&, const State&> ||
    takes_elements<Result, F, State>();
template <class P, class F, class State>
concept loop_functions =
    made_of_vars<State> && takes_state<var, P, State> && takes_state<State, F, State>;
template <class F, class X>
concept map_function =
    made_of_vars<X> && std::is_invocable_v<F&, X&> && made_of_vars<result_of<F, X>>;
template <class F, class State, class X>
concept scan_function = made_of_vars<State> && made_of_vars<X> &&
    std::is_invocable_v<F&, State&, X&> && made_of_vars<result_of<F, State, X>>;

/// Whether a transform has a function F to transform for these arguments.
template <class F, class... X>
concept transforms = sizeof...(X) > 0 && (made_of_vars<X> && ...) &&
                     std::is_invocable_v<const F&, X&...>&& made_of_vars<result_of<const F, X...>>;

/// Says why there is none, in the trace of the first argument, which is the result.
template <class F, class... X>
constexpr auto refuse_call(std::string_view op, std::source_location at, const X&... x) {
  const auto first = [](const auto& one, const auto&...) { return one; };
  if constexpr (sizeof...(X) == 0 || !(made_of_vars<X> && ...)) {
    return var{};
  } else {
    const auto value = first(x...);
    text fault;
    fault << at << ": " << op << ": the function ";
    if constexpr (std::is_invocable_v<const F&, const X&...>)
      fault << "returns what is no var, nor an array, tuple or struct of them";
    else
      fault << "does not take " << int(sizeof...(X)) << (sizeof...(X) == 1 ? " value" : " values")
            << ", with which it is called";
    if (builder* b = builder_of(value)) b->fail(fault);
    return value;
  }
}

}  // namespace detail

}  // namespace cella
