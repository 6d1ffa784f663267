// Functions that take structs of tensors, as cells that take their members one by one.
#pragma once

#include <array>
#include <cella/graph/compiled_cell_check.hpp>
#include <cella/graph/var_struct.hpp>
#include <cella/runtime/program.hpp>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella::detail {

template <class T>
concept tensor_argument = requires {
  { T::type } -> std::convertible_to<tensor_type>;
};
template <class... T>
struct tensor_list {
  static constexpr std::size_t size = sizeof...(T);
  static constexpr std::array<tensor_type, size> types{T::type...};
  template <class Cell, dtype Precision>
  using program = cella::program<Cell, false, Precision, T...>;
};
template <class... A, class... B>
constexpr tensor_list<A..., B...> operator+(tensor_list<A...>, tensor_list<B...>) {
  return {};
}
template <class T>
constexpr auto find_tensors() {
  if constexpr (tensor_argument<T>) {
    return tensor_list<T>{};
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T>) {
    return []<class... M>(const std::tuple<M&...>*) {
      if constexpr ((tensor_argument<M> && ...)) return tensor_list<M...>{};
    }(static_cast<decltype(tie_members<member_count<T>()>(std::declval<T&>()))*>(nullptr));
  }
}
/// A tensor, or a struct of tensors.
template <class T>
concept compiled_argument = !std::is_void_v<decltype(find_tensors<T>())>;
/// All tensors of arguments, in their order.
template <compiled_argument... Arguments>
using tensors_of = decltype((tensor_list<>{} + ... + find_tensors<Arguments>()));

/// F as a cell that takes one var for each tensor of its arguments.
template <class F, class... Arguments>
struct takes_tensors {
  F function{};

  constexpr F& wrapped() { return function; }
  static constexpr text fault() {
    text fault = find_structure_fault<F>();
    if (!fault.empty()) return fault;
    fault << type_name<F>() << ": ";
    if constexpr (!std::is_invocable_v<F&, given<Arguments>...>) {
      std::string_view separator = "is given (";
      ((fault << std::exchange(separator, ", ") << type_name<given<Arguments>>()), ...);
      return fault << "), but its call operator takes something else";
    } else {
      using result = std::remove_cvref_t<std::invoke_result_t<F&, given<Arguments>...>>;
      if constexpr (returns_vars<result>()) return {};
      return fault << "returns " << type_name<result>()
                   << "; a cell returns a var, or an array, tuple or struct of vars";
    }
  }
  static constexpr text constexpr_fault() {
    return detail::constexpr_fault<F, given<Arguments>...>();
  }
  static constexpr std::string_view argument_name(std::size_t i) { return names[i]; }
  constexpr auto operator()(std::same_as<var> auto... members) requires(
      sizeof...(members) == tensors_of<Arguments...>::size) {
    const std::array all{members...};
    return std::apply(function, of_vars<std::tuple<given<Arguments>...>>(all.data()));
  }

 private:
  template <class A>
  using given = std::conditional_t<tensor_argument<A>, var, A>;
  static constexpr auto names = [] {
    std::array<std::string_view, tensors_of<Arguments...>::size> all{};
    std::size_t i = 0;
    const auto add = [&]<class A>() {
      if constexpr (tensor_argument<A>) {
        all[i] = detail::argument_name(i);
        ++i;
      } else {
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          ((all[i++] = member_name<A, K>()), ...);
        }
        (std::make_index_sequence<tensors_of<A>::size>{});
      }
    };
    (add.template operator()<Arguments>(), ...);
    return all;
  }();
};
/// The cell that takes the tensors of `Arguments`: F itself unless there is a struct.
template <class F, class... Arguments>
using tensor_cell =
    std::conditional_t<(tensor_argument<Arguments> && ...), F, takes_tensors<F, Arguments...>>;
/// What such a cell was made of.
template <class Cell>
constexpr Cell& function_of(Cell& cell) {
  return cell;
}
template <class F, class... Arguments>
constexpr F& function_of(takes_tensors<F, Arguments...>& cell) {
  return cell.function;
}

}  // namespace cella::detail
