// The arrays that the caller of a program hands over, compared with what it takes: their number and
// element types by the compiler, extents and numbers of elements in the call.
#pragma once

#include <algorithm>
#include <cella/graph/cell_check.hpp>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/report.hpp>
#include <cella/graph/shape.hpp>
#include <cella/runtime/array_like.hpp>
#include <cella/runtime/program_results.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cella {

class parameter_store;

/// What `executable` runs and `explain` shows.
template <class P>
concept compiled_program = requires {
  typename P::backend;
  P::element_type;
};

}  // namespace cella

namespace cella::detail {

/// Why a T, which is no program, cannot stand for one.
template <class T>
constexpr text find_program_fault() {
  text fault(type_name<T>());
  if constexpr (requires { typename T::engine_type::training; })
    return fault
           << " is a model, not a program; a model M is run by its fit, evaluate and predict, and "
              "its programs are M::engine_type::training and M::engine_type::inference<32>";
  else
    return fault << " is no program; the program of a net is inference_program<Net, "
                    "tensor<dtype::f32, 32, 10>>, and compile<tensor<dtype::f32, 32, 10>>(Net{}) "
                    "makes it and runs it";
}
template <class T>
inline constexpr text program_text = find_program_fault<T>();
template <class T>
using program_fault = fault_of<program_text<T>>;

/// Whether these may be what an executable is made of.
template <class... A>
inline constexpr bool begins_with_a_store = false;
template <class First, class... A>
inline constexpr bool begins_with_a_store<First, A...> =
    std::is_convertible_v<std::remove_reference_t<First>*, parameter_store*>&&
        std::is_lvalue_reference_v<First>;
/// Why others are not.
template <class... A>
inline constexpr text no_store_text(
    "an executable is made of a parameter_store, which has the net's parameters and outlives it: "
    "parameter_store store(net, 1); executable<Program> run(store)");
template <class... A>
using no_store_fault = fault_of<no_store_text<A...>>;

/// Throws the error that an array is not what a tensor of type `t` takes.
class argument_refusal {
 public:
  explicit argument_refusal(const text& name, const tensor_type& t) : what_(name), type_(t) {}

  [[noreturn, gnu::cold]] void count(std::size_t found) {
    throw error(what_ << " has " << std::int64_t(found) << " elements, but the program's is "
                      << type_ << ", which has " << type_.size() << "; hand over as many");
  }
  [[noreturn, gnu::cold]] void extents(const auto& found) {
    what_ << " is [";
    bool first = true;
    for (auto e : found) what_ << (std::exchange(first, false) ? "" : ",") << std::int64_t(e);
    throw error(what_ << "], but the program's is " << type_
                      << "; hand over an array of these extents");
  }
  [[noreturn, gnu::cold]] void order() {
    throw error(what_ << " is not dense and row-major; hand over a row-major copy");
  }

 private:
  text what_;
  tensor_type type_;
};
/// The first element of an array that a program of a tensor of type `t` reads or writes. Throws
/// `error`, which begins with `name()`, unless the array is dense and has the extents of `t`, or,
/// where it has none, so many elements.
template <array_argument A, class Name>
auto checked_array(A& argument, const tensor_type& t, Name name) {
  auto&& a = as_array(argument);
  const auto refuse = [&] { return argument_refusal(name(), t); };
  with_extents(a, [&](const auto& extents) {
    const auto same = [](auto x, int y) { return std::int64_t(x) == y; };
    if (!std::equal(std::begin(extents), std::end(extents), t.shape.begin(), t.shape.end(), same))
        [[unlikely]]
      refuse().extents(extents);
  });
  if constexpr (requires { std::size_t(a.size()); }) {
    if (std::size_t(a.size()) != std::size_t(t.size())) [[unlikely]]
      refuse().count(a.size());
  }
  if (!is_dense(a)) [[unlikely]]
    refuse().order();
  return first_element(a);
}

/// Why an array of type A cannot stand for a tensor of elements `Element`; empty if it can.
/// `unchecked` is what takes addresses.
template <class A, dtype Element>
constexpr text array_fault(const text& name, const tensor_type& t, std::string_view unchecked) {
  text fault;
  if constexpr (array_argument<A>) {
    using own = std::remove_const_t<element_of_array<A>>;
    if (!std::is_same_v<own, element<Element>>)
      fault << "the elements of " << name << " are " << type_name<own>()
            << ", but the program's is " << t << ", of " << type_name<element<Element>>()
            << "; convert them";
  } else {
    fault << name << " is " << type_name<std::remove_const_t<A>>();
    if (std::is_pointer_v<A>)
      fault
          << ", an address, which does not say how many elements there are; hand over a vector, an "
             "array or a span, or call "
          << unchecked;
    else
      fault << ", no array; hand over a vector, an array or a span";
  }
  return fault;
}

/// What messages call argument `i` of program P, counted from 0.
template <class P>
constexpr text label_of_argument(std::size_t i) {
  return text() << "argument " << std::int64_t(i) + 1 << " (" << P::argument_name(i) << ")";
}
/// Why program P does not take these arrays.
template <class P, class... A>
constexpr text find_arguments_fault() {
  constexpr auto& types = P::argument_types;
  text fault;
  if constexpr (sizeof...(A) != types.size()) {
    fault << "the program takes " << std::int64_t(types.size())
          << (types.size() == 1 ? " argument" : " arguments");
    for (std::size_t i = 0; i < types.size(); ++i) fault << (i ? ", " : ": ") << types[i];
    fault << "; " << std::int64_t(sizeof...(A))
          << (sizeof...(A) == 1 ? " is handed over" : " are handed over");
  } else {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((fault.empty() ? void(fault = array_fault<const A, types[I].element>(
                                 label_of_argument<P>(I), types[I], "call_unchecked"))
                      : void()),
       ...);
    }
    (std::index_sequence_for<A...>{});
  }
  return fault;
}
template <class P, class... A>
inline constexpr text arguments_text = find_arguments_fault<P, A...>();
template <class P, class... A>
using program_arguments_fault = fault_of<arguments_text<P, A...>>;

/// Why result K of program P cannot be written to a place of type A, which is a reference where it
/// outlives the call.
template <class P, int K, class A>
constexpr text find_place_fault() {
  constexpr tensor_type t = result_type<P>(K);
  using place = std::remove_reference_t<A>;
  const text name = text() << "the place of result " << K;
  if constexpr (!P::options.results_bound)
    return text() << "only a program with_bound_results can be told where its results go: "
                     "executable<with_bound_results<P>>";
  text fault = array_fault<place, t.element>(name, t, "bind_unchecked");
  if constexpr (array_argument<place>) {
    if (fault.empty() && std::is_const_v<element_of_array<place>>)
      fault << name << " is " << type_name<place>() << ", which cannot be written to";
    if (fault.empty() && !std::is_lvalue_reference_v<A> &&
        !std::ranges::enable_borrowed_range<std::remove_cv_t<place>>)
      fault << name << " is gone before the first call; hand over memory that outlives the calls";
  }
  return fault;
}
template <class P, int K, class A>
inline constexpr text place_text = find_place_fault<P, K, A>();
template <class P, int K, class A>
using place_fault = fault_of<place_text<P, K, A>>;

}  // namespace cella::detail
