// How nets and losses are called that have several inputs or outputs: structs of vars, made from
// the columns of a trace and taken apart into them.
#pragma once

#include <array>
#include <cella/graph/cell_check.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/reflection.hpp>
#include <cella/graph/var.hpp>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace cella::detail {

/// How many vars a T has: itself, or the elements of a tuple or array, or the members of a struct,
/// each with its own. -1: that is known at run time only.
template <class T>
constexpr int var_count() {
  if constexpr (std::is_base_of_v<var, T>) {
    return 1;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    int all = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((all = all < 0 || var_count<std::tuple_element_t<I, T>>() < 0
                  ? -1
                  : all + var_count<std::tuple_element_t<I, T>>()),
       ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
    return all;
  } else if constexpr (is_sequence<T> || !std::is_aggregate_v<T> || std::is_empty_v<T>) {
    return -1;
  } else {
    using members = decltype(tie_members<member_count<T>()>(std::declval<T&>()));
    return []<class... M>(const std::tuple<M&...>*) {
      return ((var_count<M>() < 0) || ...) ? -1 : (var_count<M>() + ... + 0);
    }(static_cast<members*>(nullptr));
  }
}

/// Calls f(var&) for each var of `t`, in the order in which a trace lists results.
template <class T, class F>
constexpr void visit_vars(T& t, F&& f) {
  if constexpr (std::is_base_of_v<var, T>) {
    f(static_cast<var&>(t));
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](auto&... x) { (visit_vars(x, f), ...); }, t);
  } else {
    std::apply([&](auto&... x) { (visit_vars(x, f), ...); }, tie_members<member_count<T>()>(t));
  }
}

/// A T of the vars from `first` on; a var is the first.
template <class T>
constexpr T of_vars(const var* first) {
  T t{};
  visit_vars(t, [&](var& v) { v = *first++; });
  return t;
}

/// What a net yields for `Count` vars; of one that cannot be called so a var stands in.
template <class Net, std::size_t Count>
constexpr auto result_of_net() {
  if constexpr (calls_with<Net, Count>::value) {
    using result = std::remove_cvref_t<typename calls_with<Net, Count>::template result<Net>>;
    if constexpr (returns_vars<result>())
      return std::type_identity<result>{};
    else
      return std::type_identity<var>{};
  } else {
    return std::type_identity<var>{};
  }
}
template <class Net, std::size_t Count>
using net_result = typename decltype(result_of_net<Net, Count>())::type;

/// A net that takes a struct, as a cell that takes its members one by one.
template <class Net, class Inputs>
struct takes_members {
  Net net{};

  constexpr Net& wrapped() { return net; }
  static constexpr text fault() {
    text fault = find_structure_fault<Net>();
    using result = std::remove_cvref_t<std::invoke_result_t<Net&, const Inputs&>>;
    if constexpr (!returns_vars<result>()) {
      if (fault.empty())
        fault << type_name<Net>() << ": returns " << type_name<result>()
              << "; a cell returns a var, or an array, tuple or struct of vars";
    }
    return fault;
  }
  constexpr auto operator()(std::same_as<var> auto... members) requires(
      sizeof...(members) == std::size_t(var_count<Inputs>())) {
    const std::array all{members...};
    return net(of_vars<Inputs>(all.data()));
  }
};
/// The cell that takes the vars of `Inputs`: the net itself unless it asks for the struct.
template <class Net, class Inputs>
using net_cell = std::conditional_t<!calls_with<Net, std::size_t(var_count<Inputs>())>::value &&
                                        std::is_invocable_v<Net&, const Inputs&>,
                                    takes_members<Net, Inputs>, Net>;

/// What a loss is called with, which its type tells: (outputs, target); or (outputs, inputs,
/// target); or, where inputs are a struct, (outputs, inputs) of data without a target.
template <class Loss, class Outputs, class Inputs>
struct loss_call {
  static constexpr bool plain = std::is_invocable_v<const Loss&, const Outputs&, const var&>;
  static constexpr bool full =
      std::is_invocable_v<const Loss&, const Outputs&, const Inputs&, const var&>;
  static constexpr bool unsupervised =
      !std::is_same_v<Inputs, var> &&
      std::is_invocable_v<const Loss&, const Outputs&, const Inputs&>;
  static constexpr bool possible = plain || full || unsupervised;
  static constexpr bool takes_inputs = !plain && (full || unsupervised);
  static constexpr bool takes_target = plain || full || !unsupervised;

  static constexpr auto call(const Loss& loss, const Outputs& outputs, const Inputs& inputs,
                             [[maybe_unused]] var target) {
    if constexpr (plain)
      return loss(outputs, target);
    else if constexpr (full)
      return loss(outputs, inputs, target);
    else if constexpr (unsupervised)
      return loss(outputs, inputs);
  }
};

}  // namespace cella::detail
