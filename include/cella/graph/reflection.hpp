// Finds the parameters and cells inside a cell, with their paths: plain aggregates need no macro,
// types described with BOOST_HANA_DEFINE_STRUCT work as well.
#pragma once

#include <array>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/unpack.hpp>
#include <cella/graph/generated/with_members.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/parameter.hpp>
#include <cella/graph/text.hpp>
#include <cella/graph/type_tag.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella {

namespace detail {

struct any_member {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... I>
constexpr bool initializes_from(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), any_member{})...}; };
}
/// Members of an aggregate: the most initializers that it takes, counted no further than one beyond
/// `most_members`. A base without members takes one, too.
template <class T, int N = 0>
constexpr int count_members() {
  if constexpr (std::is_empty_v<T>) {
    return 0;
  } else if constexpr (N > most_members ||
                       (initializes_from<T>(std::make_index_sequence<N>{}) &&
                        !initializes_from<T>(std::make_index_sequence<N + 1>{}))) {
    return N;
  } else {
    return count_members<T, N + 1>();
  }
}
template <class T>
constexpr int member_count() {
  constexpr int count = count_members<T>();
  static_assert(count <= most_members, "a struct has at most 32 members: group some into one");
  return count <= most_members ? count : 0;
}

/// The members as a tuple of references.
template <int Count, class T>
constexpr auto tie_members(T& x) {
  return with_members<Count>(x, [](auto&... members) { return std::tie(members...); });
}

/// Converts to bases of T only: the first initializer of an aggregate that has one.
template <class T>
struct any_base_of {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const;
};
/// Whether reflection cannot tell the members of T from those of its base: structured bindings take
/// members of one class only.
template <class T>
concept mixes_bases = !std::is_empty_v<T> && requires {
  T{any_base_of<T>{}};
}
&&(
    requires {
      T{any_base_of<T>{}, any_member{}};
    } ||
    requires {
      T{{any_member{}, any_member{}}};
    });

template <class U>
struct exactly {
  operator U() const;
};
/// Initializes member `sizeof...(I)` of T unless that is an array of several: braces round it take
/// elements.
template <class T, std::size_t... I>
struct any_single {
  template <class U>
  static constexpr bool may_be_element() {
    if constexpr (std::is_aggregate_v<U>) return requires {
        T{(static_cast<void>(I), any_member{})..., {exactly<U>{}}};
      };
    else if constexpr (std::is_scalar_v<U> || std::is_base_of_v<parameter_base, U>)
      return requires { T{(static_cast<void>(I), any_member{})..., {exactly<U>{}, any_member{}}}; };
    else
      return requires { T{(static_cast<void>(I), any_member{})..., {exactly<U>{}, exactly<U>{}}}; };
  }
  template <class U>
  requires(!std::is_array_v<U> && !may_be_element<U>()) operator U() const;
};
template <class T, std::size_t... I>
constexpr bool has_array_at(std::index_sequence<I...>) {
  return !requires { T{(static_cast<void>(I), any_member{})..., any_single<T, I...>{}}; };
}
template <class T>
constexpr bool has_c_array() {
  // An array was counted by its elements, and takes one pair of braces: then these are too many.
  if constexpr (takes_braces<count_members<T>(), T>)
    return false;
  else
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (has_array_at<T>(std::make_index_sequence<I>{}) || ...);
    }
  (std::make_index_sequence<std::size_t(count_members<T>())>{});
}
// The name of a member is read from the compiler's print of a function that has the member's
// address as template argument. The object is never defined: only its address is used.
template <class T>
struct named_object {
  T value;
};
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern const named_object<T> imaginary;
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
template <class T>
struct member_address {
  const T* p;
};
template <std::size_t I, class T>
struct numbered_address : member_address<T> {};
/// The addresses of all members; std::tuple would take the compiler ten times as long.
template <class Numbers, class... T>
struct member_addresses;
template <std::size_t... I, class... T>
struct member_addresses<std::index_sequence<I...>, T...> : numbered_address<I, T>... {};
template <class... T>
using all_member_addresses = member_addresses<std::index_sequence_for<T...>, T...>;
template <std::size_t I, class T>
constexpr member_address<T> address_at(numbered_address<I, T> a) {
  return a;
}
/// `... & imaginary<net>.named_object<net>::value.net::weight)}]`: what stands before `)}]`, or
/// `}]`. Its type is auto, since g++ explains names of types behind it. The name is read from the
/// end: each character counts.
template <auto Address>
constexpr auto print_address() {
  const char* const s = __PRETTY_FUNCTION__;
  const char* end = s + sizeof(__PRETTY_FUNCTION__) - 3;
  if (end[-1] == ')') --end;
  const char* begin = end;
  while (begin[-1] != '.' && begin[-1] != ':') --begin;
  return std::string_view(begin, std::size_t(end - begin));
}
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
struct address_taker {
  template <class... M>
  constexpr all_member_addresses<M...> operator()(const M&... m) const {
    return {{{&m}}...};
  }
};
/// No variable: without optimization g++ keeps those of types that are local to a file, and the
/// linker would look for the object.
template <class T>
consteval auto members_of() {
  return with_members<member_count<T>()>(imaginary<T>.value, address_taker{});
}
template <class T, std::size_t I>
consteval std::string_view member_name() {
  return print_address<address_at<I>(members_of<T>())>();
}
template <class T>
concept has_bit_fields = has_bit_field < count_members<T>()
> (imaginary<T>.value);
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// Whether structured bindings find the members of T, and references those.
template <class T>
concept decomposable =
    std::is_aggregate_v<T> && !mixes_bases<T> && count_members<T>() <= most_members &&
    !has_c_array<T>() && !has_bit_fields<T>;

template <class T>
inline constexpr bool is_sequence = false;
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_sequence<list<T>> = true;
template <class T>
inline constexpr bool is_sequence<std::vector<T>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;

/// Types that reflection looks into. Everything else (numbers, strings, ...) is an option.
template <class T>
concept transparent = std::is_class_v<T> &&
    (std::is_aggregate_v<T> || boost::hana::Struct<T>::value);

}  // namespace detail

namespace detail {
/// Calls f(name, member) for each of all members.
template <class T, class F>
struct member_caller {
  F& f;

  template <class... M>
  constexpr void operator()(M&... member) const {
    call(std::index_sequence_for<M...>{}, member...);
  }

 private:
  template <std::size_t... I, class... M>
  constexpr void call(std::index_sequence<I...>, M&... member) const {
    (f(member_name<T, I>(), member), ...);
  }
};
}  // namespace detail

/// Calls f(name, member) for each member, in the order of declaration.
template <class T, class F>
constexpr void for_each_member(T& x, F f) {
  using U = std::remove_const_t<T>;
  if constexpr (boost::hana::Struct<U>::value) {
    boost::hana::unpack(boost::hana::accessors<U>(), [&](const auto&... pair) {
      (f(std::string_view(boost::hana::first(pair).c_str()), boost::hana::second(pair)(x)), ...);
    });
  } else if constexpr (std::is_aggregate_v<U>) {
    detail::with_members<detail::member_count<U>()>(x, detail::member_caller<U, F>{f});
  }
}

/// Where a walk over a cell has come to. Elements of arrays, vectors and tuples are numbered:
/// `layers.0.weight`.
class cell_path {
 public:
  constexpr std::string_view path() const { return {path_.data(), path_.size()}; }
  /// Goes on to a member; returns what to hand to `leave`.
  CELLA_ONCE constexpr std::size_t enter(std::string_view name) {
    const std::size_t length = path_.size();
    if (length) path_.push_back('.');
    path_.insert(path_.end(), name.begin(), name.end());
    return length;
  }
  CELLA_ONCE constexpr std::size_t enter(int number) { return enter((text() << number).view()); }
  CELLA_ONCE constexpr void leave(std::size_t length) {
    path_.erase(path_.begin() + std::ptrdiff_t(length), path_.end());
  }

 protected:
  constexpr ~cell_path() = default;

 private:
  list<char> path_;
};

/// Is told of a cell's parts, depth first, a cell's own path before those of its members.
/// `Parameter` is parameter_base, const or not.
template <class Parameter>
class cell_visitor : public cell_path {
 public:
  constexpr virtual void on_parameter(std::string_view path, Parameter& p) = 0;
  /// A cell has an address, which its first member may share, and a type.
  constexpr virtual void on_cell(std::string_view /*path*/, const void* /*address*/,
                                 const void* /*type tag*/) {}

 protected:
  constexpr ~cell_visitor() = default;
};

template <class T, class Parameter>
constexpr void walk_cell(T& x, cell_visitor<Parameter>& visitor);

namespace detail {
/// Walks members; what is no class has no parameters. A struct, and no
/// lambda: it is made for each type of cell.
template <class Parameter>
struct member_walker {
  cell_visitor<Parameter>& visitor;

  template <class Name, class M>
  constexpr void operator()(Name name, M& member) const {
    if constexpr (std::is_class_v<M>) {
      const std::size_t outside = visitor.enter(name);
      walk_cell(member, visitor);
      visitor.leave(outside);
    }
  }
};
}  // namespace detail

template <class T, class Parameter>
constexpr void walk_cell(T& x, cell_visitor<Parameter>& visitor) {
  using U = std::remove_const_t<T>;
  const detail::member_walker<Parameter> descend{visitor};
  if constexpr (std::is_base_of_v<parameter_base, U>) {
    visitor.on_parameter(visitor.path(), x);
  } else if constexpr (detail::is_sequence<U>) {
    if constexpr (std::is_class_v<typename U::value_type>) {
      int i = 0;
      for (auto& element : x) descend(i++, element);
    }
  } else if constexpr (detail::is_tuple<U>) {
    int i = 0;
    std::apply([&](auto&... member) { (descend(i++, member), ...); }, x);
  } else if constexpr (detail::transparent<U>) {
    visitor.on_cell(visitor.path(), &x, &type_tag<U>);
    // cell_check.hpp says what is wrong with others.
    if constexpr (boost::hana::Struct<U>::value || detail::decomposable<U>)
      for_each_member(x, descend);
  }
}
/// Calls f(path, parameter) for each parameter of a cell.
template <class T, class F>
constexpr void for_each_parameter(T& cell, F f) {
  using parameter = std::conditional_t<std::is_const_v<T>, const parameter_base, parameter_base>;
  struct visitor final : cell_visitor<parameter> {
    F& f;
    constexpr explicit visitor(F& to) : f(to) {}
    constexpr void on_parameter(std::string_view path, parameter& p) override { f(path, p); }
  } v(f);
  walk_cell(cell, v);
}

#if CELLA_HAS_BODIES == 0
extern template class cell_visitor<parameter_base>;
extern template class cell_visitor<const parameter_base>;
#endif

}  // namespace cella
