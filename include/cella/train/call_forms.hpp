// How nets and losses are called that have several inputs or outputs: structs of vars, made from
// the columns of a trace and taken apart into them.
#pragma once

#include <array>
#include <cella/graph/compiled_cell_check.hpp>
#include <cella/graph/var.hpp>
#include <cella/graph/var_struct.hpp>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace cella::detail {

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
  static constexpr text constexpr_fault() { return detail::constexpr_fault<Net, const Inputs>(); }
  static constexpr std::string_view argument_name(std::size_t i) {
    constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array{member_name<Inputs, I>()...};
    }
    (std::make_index_sequence<std::size_t(var_count<Inputs>())>{});
    return names[i];
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

template <class... A>
using last_of = std::remove_cvref_t<std::tuple_element_t<sizeof...(A), std::tuple<void, A...>>>;
template <class R, class... A>
std::type_identity<last_of<A...>> last_parameter(R (*)(A...));
template <class C, class R, class... A>
std::type_identity<last_of<A...>> last_parameter(R (C::*)(A...) const);
/// What a loss calls the labels: its last parameter; void where it is a template of them.
template <class Loss>
struct last_of_loss {
  using type = void;
};
template <class Loss>
requires requires { last_parameter(&Loss::operator()); }
struct last_of_loss<Loss> : decltype(last_parameter(&Loss::operator())) {};
template <class Loss>
requires requires(Loss loss) { last_parameter(loss); }
struct last_of_loss<Loss> : decltype(last_parameter(std::declval<Loss>())) {};
/// What is called where this loss is, and what keeps the compiler from doing so.
template <class Loss>
struct called_loss {
  template <class... A>
  static constexpr text constexpr_fault() {
    return detail::constexpr_fault<const Loss, A...>();
  }
};
/// A struct of vars that stands for labels; else they are one var.
template <class T>
constexpr auto find_labels() {
  if constexpr (!std::is_class_v<T> || std::is_base_of_v<var, T>)
    return std::type_identity<var>{};
  else if constexpr (var_count<T>() < 1)
    return std::type_identity<var>{};
  else
    return std::type_identity<T>{};
}

/// What a loss is called with, which its type tells: (outputs, target); or (outputs, inputs,
/// target); or, where inputs are a struct, (outputs, inputs) of data without a target. A last
/// parameter that is another struct of vars is a struct of targets.
template <class Loss, class Outputs, class Inputs>
struct loss_call {
  static constexpr bool unsupervised =
      !std::is_same_v<Inputs, var> &&
      std::is_invocable_v<const Loss&, const Outputs&, const Inputs&>;
  using last = typename last_of_loss<Loss>::type;
  using labels =
      typename decltype(find_labels<std::conditional_t<unsupervised && std::is_same_v<last, Inputs>,
                                                       var, last>>())::type;
  static constexpr bool plain = std::is_invocable_v<const Loss&, const Outputs&, const labels&>;
  static constexpr bool full =
      std::is_invocable_v<const Loss&, const Outputs&, const Inputs&, const labels&>;
  static constexpr bool possible = plain || full || unsupervised;
  static constexpr bool takes_inputs = !plain && (full || unsupervised);
  /// So many tensors.
  static constexpr std::size_t targets =
      plain || full || !unsupervised ? std::size_t(var_count<labels>()) : 0;

  /// What keeps the compiler from tracing the loss.
  static constexpr text constexpr_fault() {
    if constexpr (plain)
      return called_loss<Loss>::template constexpr_fault<const Outputs, const labels>();
    else if constexpr (full)
      return called_loss<Loss>::template constexpr_fault<const Outputs, const Inputs,
                                                         const labels>();
    else
      return {};
  }
  static constexpr auto call(const Loss& loss, const Outputs& outputs, const Inputs& inputs,
                             [[maybe_unused]] const labels& target) {
    if constexpr (plain)
      return loss(outputs, target);
    else if constexpr (full)
      return loss(outputs, inputs, target);
    else if constexpr (unsupervised)
      return loss(outputs, inputs);
  }
  /// The same with targets in a row.
  static constexpr auto call(const Loss& loss, const Outputs& outputs, const Inputs& inputs,
                             [[maybe_unused]] const var* target) {
    if constexpr (targets > 0)
      return call(loss, outputs, inputs, of_vars<labels>(target));
    else
      return call(loss, outputs, inputs, labels{});
  }
};

}  // namespace cella::detail
