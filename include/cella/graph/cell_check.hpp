// What a cell has to be, asked by its type before it is traced: one sentence for each failure.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/reflection.hpp>
#include <cella/graph/var.hpp>

namespace cella {

namespace detail {

template <class T>
constexpr auto print_type() {
  return std::string_view(__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 2);  // without `]`
}
inline constexpr std::size_t begin_of_type = print_type<int>().size() - 3;
/// The name of a type as the compiler prints it.
template <class T>
constexpr std::string_view type_name() {
  return print_type<T>().substr(begin_of_type);
}
template <class T>
constexpr bool is_closure() {
  return !std::is_aggregate_v<T> && type_name<T>().find("lambda") != std::string_view::npos;
}

/// How many initializers T{} lacks; 0 if none does it.
template <class T, std::size_t N = 1>
constexpr std::size_t needed_initializers() {
  if constexpr (N > most_members)
    return 0;
  else if constexpr (initializes_from<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return needed_initializers<T, N + 1>();
}

template <class T>
concept holds_parameters = std::is_base_of_v<parameter_base, T> || std::is_invocable_v<T&, var>;
template <class T>
concept points_to_cell = requires(T& p) {
  requires std::is_class_v<std::remove_cvref_t<decltype(*p)>>;
  requires holds_parameters<std::remove_cvref_t<decltype(*p)>>;
};
template <class T>
concept hides_members =
    std::is_class_v<T> && !transparent<T> && !std::is_empty_v<T> && !is_closure<T>();

/// Why a cell cannot have a member of type M; empty if it can.
template <class M>
constexpr std::string_view member_fault() {
  if constexpr (is_sequence<M>) {
    return member_fault<typename M::value_type>();
  } else if constexpr (is_tuple<M>) {
    std::string_view fault;
    [&]<class... T>(const std::tuple<T...>*) {
      static_cast<void>(((fault = member_fault<T>()).empty() && ...));
    }(static_cast<const M*>(nullptr));
    return fault;
  } else if constexpr (points_to_cell<M>) {
    return "points to a cell or a parameter, but a model owns its cells; make it a member itself, "
           "or an element of a std::array or std::tuple";
  } else if constexpr (type_name<M>().starts_with("std::function<")) {
    return "is a std::function, which the compiler cannot call; write a struct, or a lambda "
           "without "
           "captures";
  } else {
    return {};
  }
}

template <class T>
constexpr text find_structure_fault();
/// The fault of a cell inside a cell.
template <class M>
constexpr text inner_fault() {
  if constexpr (is_sequence<M>) {
    return inner_fault<typename M::value_type>();
  } else if constexpr (is_tuple<M>) {
    text fault;
    [&]<class... T>(const std::tuple<T...>*) {
      static_cast<void>(((fault = inner_fault<T>()).empty() && ...));
    }(static_cast<const M*>(nullptr));
    return fault;
  } else if constexpr (transparent<M> && !std::is_base_of_v<parameter_base, M>) {
    return find_structure_fault<M>();
  } else if constexpr (hides_members<M> && !std::is_base_of_v<parameter_base, M>) {
    if constexpr (std::is_invocable_v<M&, var>) return find_structure_fault<M>();
  }
  return {};
}
/// Member `K` of T, declared as an M: whether nothing speaks against it, which `fault` says
/// otherwise.
template <class T, std::size_t K, class M>
constexpr bool accepts_member(text& fault) {
  using type = std::remove_const_t<std::remove_reference_t<M>>;
  constexpr bool constant = std::is_const_v<std::remove_reference_t<M>>;
  if constexpr (std::is_arithmetic_v<type> ||
                (std::is_base_of_v<parameter_base, type> && !constant)) {
    return true;
  } else if constexpr (constant && std::is_class_v<type> && holds_parameters<type>) {
    fault << type_name<T>() << ": member " << member_name<T, K>()
          << " is const, so that its parameters cannot be given values; leave const out";
    return false;
  } else if constexpr (!member_fault<type>().empty()) {
    fault << type_name<T>() << ": member " << member_name<T, K>() << " " << member_fault<type>();
    return false;
  } else {
    fault = inner_fault<type>();
    return fault.empty();
  }
}
/// Types; std::tuple would take the compiler ten times as long.
template <class... M>
struct member_types {};
template <class T>
constexpr text members_fault() {
  text fault;
  [&]<std::size_t... I, class... M>(std::index_sequence<I...>, member_types<M...>) {
    static_cast<void>((accepts_member<T, I, M>(fault) && ...));
  }
  (std::make_index_sequence<std::size_t(count_members<T>())>{},
   decltype(with_members<count_members<T>()>(
       std::declval<T&>(), []<class... M>(M&...) { return member_types<M...>{}; })){});
  return fault;
}

/// What keeps the compiler from making a T and from finding what it owns.
template <class T>
constexpr text find_structure_fault() {
  constexpr auto say = [](const auto&... words) {
    text fault(type_name<T>());
    fault << ": ";
    (fault << ... << words);
    return fault;
  };
  if constexpr (!std::is_class_v<T>) {
    return say("is no cell; write a lambda, [](var x) { ... }, or a struct with a call operator");
  } else if constexpr (std::is_polymorphic_v<T>) {
    return say("a cell has no virtual functions; make what varies a template parameter");
  } else if constexpr (!std::is_default_constructible_v<T> && is_closure<T>()) {
    return say(
        "the lambda captures something, but the compiler makes each cell anew; hand it over "
        "as an argument, or write a struct with it as a member");
  } else if constexpr (!std::is_default_constructible_v<T> && std::is_aggregate_v<T>) {
    return say("member ", needed_initializers<T>(),
               " has no value; give members their values where they are declared (a reference can "
               "be none)");
  } else if constexpr (hides_members<T>) {
    return say(
        "its members cannot be found: they are private, or there is a constructor or a "
        "virtual base; write a struct without these, whose members have their values where "
        "they are declared");
  } else if constexpr (!std::is_default_constructible_v<T>) {
    return say("has no default constructor, but the compiler makes each cell anew");
  } else if constexpr (boost::hana::Struct<T>::value || !std::is_aggregate_v<T>) {
    return {};
  } else if constexpr (mixes_bases<T>) {
    return say("a cell with a base class has no members besides; make the base a member");
  } else if constexpr (count_members<T>() > most_members) {
    return say("a cell has at most ", most_members,
               " members; group some into a cell of their own, or into a std::array");
  } else if constexpr (has_c_array<T>()) {
    return say("an array is a member; write std::array<T, N> for T[N]");
  } else if constexpr (has_bit_fields<T>) {
    return say("a bit-field is a member, to which nothing can refer; leave its width out");
  } else {
    return members_fault<T>();
  }
}

template <class R>
constexpr bool returns_vars() {
  if constexpr (std::is_same_v<R, var>) {
    return true;
  } else if constexpr (is_sequence<R>) {
    return returns_vars<typename R::value_type>();
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (returns_vars<std::remove_cvref_t<std::tuple_element_t<I, R>>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>{});
  } else if constexpr (std::is_class_v<R> && std::is_aggregate_v<R> && !std::is_empty_v<R>) {
    if constexpr (!mixes_bases<R> && count_members<R>() <= most_members)
      return returns_vars<decltype(tie_members<count_members<R>()>(std::declval<R&>()))>();
    return false;
  } else {
    return false;
  }
}

template <std::size_t>
using var_argument = var&;
template <class Cell, class Indices>
struct call_with_vars;
template <class Cell, std::size_t... I>
struct call_with_vars<Cell, std::index_sequence<I...>>
    : std::is_invocable<Cell&, var_argument<I>...> {
  template <class C>
  using result = std::invoke_result_t<C&, var_argument<I>...>;
};
template <class Cell, std::size_t Count>
using calls_with = call_with_vars<Cell, std::make_index_sequence<Count>>;
/// With how many vars a cell can be called; -1 if with no number up to 8.
template <class Cell, std::size_t N = 0>
constexpr int taken_vars() {
  if constexpr (N > 8)
    return -1;
  else if constexpr (calls_with<Cell, N>::value)
    return int(N);
  else
    return taken_vars<Cell, N + 1>();
}
constexpr text count_of_tensors(int n) { return text() << n << (n == 1 ? " tensor" : " tensors"); }

/// What keeps a T from being called with `Count` vars, and what it returns from being results.
template <class T, std::size_t Count>
constexpr text call_fault() {
  text fault(type_name<T>());
  fault << ": ";
  if constexpr (!calls_with<T, Count>::value) {
    constexpr int taken = taken_vars<T>();
    if constexpr (taken >= 0)
      return fault << "takes " << count_of_tensors(taken) << ", but is given "
                   << count_of_tensors(Count);
    else if constexpr (requires { &T::operator(); })
      return fault << "its call operator takes something other than vars; it has to be constexpr "
                      "var operator()(var x) const";
    else
      return fault << "has no public call operator that takes vars; write constexpr var "
                      "operator()(var x) const";
  } else {
    using result = typename calls_with<T, Count>::template result<T>;
    if constexpr (std::is_reference_v<result>)
      return fault << "returns a reference, to what may be gone when it is read; leave the & out";
    else if constexpr (!returns_vars<std::remove_cvref_t<result>>())
      return fault << "returns " << type_name<result>()
                   << "; a cell returns a var, or an array, tuple or struct of vars";
    return {};
  }
}

/// Whether the structure of a type is sound; evaluated once for each.
template <class T>
concept sound = requires {
  typename std::enable_if_t<find_structure_fault<T>().empty()>;
};
/// Whether the compiler has a type whole: where it found an error in a member, clang can say
/// nothing of the others.
template <class T>
concept readable = requires {
  typename std::bool_constant<(find_structure_fault<T>(), true)>;
};

}  // namespace detail

/// Why the compiler cannot trace a cell on `Count` tensors; empty if nothing speaks against it. A
/// cell that is made of others says by a function `fault()` what it asks of them.
template <class Cell, std::size_t Count>
constexpr text find_cell_fault() {
  if constexpr (requires { Cell::fault(); }) {
    return Cell::fault();
  } else if constexpr (detail::sound<Cell>) {
    return detail::call_fault<Cell, Count>();
  } else if constexpr (detail::readable<Cell>) {
    return detail::find_structure_fault<Cell>();
  } else {
    return text(detail::type_name<Cell>())
           << ": its members cannot be read; the error before this one says why";
  }
}
template <class Cell, std::size_t Count>
inline constexpr text cell_fault = find_cell_fault<Cell, Count>();

/// Takes the place of a refused cell, so that its fault remains the only error.
struct refused_cell {
  constexpr auto operator()(auto... x) const { return std::array<var, sizeof...(x)>{x...}; }
};

}  // namespace cella
