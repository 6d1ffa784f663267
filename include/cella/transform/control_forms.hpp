// Which functions the operations of control flow take; of others see no_control.hpp.
#pragma once

#include <cella/transform/values.hpp>
#include <tuple>
#include <type_traits>

namespace cella {

namespace detail {

/// Whether `for_each_var` finds vars in a T, as far as the T itself says.
template <class T>
concept has_vars = std::is_class_v<T> &&
    (std::is_aggregate_v<T> || is_sequence<T> || requires { std::tuple_size<T>::value; });
template <class F, class... X>
using result_of = std::decay_t<std::invoke_result_t<F&, X&...>>;

template <class F, class G, class... X>
concept branches = std::is_invocable_v<F&, X&...> && has_vars<result_of<F, X...>> &&
    std::is_invocable_r_v<result_of<F, X...>, G&, X&...>;
/// Whether `call_with` calls an F with a State. Of a tuple it may hand over the elements.
template <class Result, class F, class State>
concept takes_state = (!std::is_same_v<State, var> &&
                       requires { std::tuple_size<State>::value; }) ||
                      std::is_invocable_r_v<Result, F&, const State&>;
template <class P, class F, class State>
concept loop_functions =
    has_vars<State> && takes_state<var, P, State> && takes_state<State, F, State>;
template <class F, class State, class X>
concept scan_function = has_vars<State> && has_vars<X> && std::is_invocable_v<F&, State&, X&>;

}  // namespace detail

}  // namespace cella
