// A region as one straight line of code: every value in registers, nothing between the operations.
// A step of a loop then costs what its arithmetic costs.
#pragma once

#include <cella/backend/cpu/memory/records.hpp>
#include <cella/backend/cpu/plan/register_rule.hpp>
#include <cella/backend/cpu/registers/packed.hpp>
#include <cella/backend/cpu/simd/math.hpp>

namespace cella::cpu {

/// Whether region `R` of program `Root` runs in registers.
template <class Root, int R>
inline constexpr bool runs_in_registers = register_rule(Root::graph, Root::element_type).fits(R);

/// The elements of node N of program P, a constant tensor or an iota.
template <class P, node_id N>
consteval auto make_known_elements() {
  constexpr const node& n = P::graph.nodes[std::size_t(N)];
  constexpr tensor_type t = P::graph.type(N);
  using T = element<t.element>;
  std::array<T, std::size_t(t.size())> x{};
  if constexpr (is<values_op>(n)) {
    for_each_element<T>(P::graph.values_of(N), x.size(), [&](std::size_t i, T v) { x[i] = v; });
  } else {
    const auto axis = std::size_t(n.attributes.template as<iota_op::options>().axis);
    for_each_index(t.shape, [&](std::int64_t k, const multi_index& i) {
      x[std::size_t(k)] = static_cast<T>(i[axis]);
    });
  }
  return x;
}
template <class P, node_id N>
inline constexpr auto known_elements = make_known_elements<P, N>();

// ---- how values are held

/// N truth values as a mask over numbers of type T.
template <class T, int N>
using mask_for =
    packed<bool, N, register_width<T>(N),
           std::conditional_t<register_width<T>(N) == 1, bool,
                              xsimd::batch_bool<T, typename wide_type<T, N>::arch_type>>>;

/// The type that holds a tensor of type E[N] in a program whose numbers are of type `Numbers`.
template <dtype E, int N, dtype Numbers>
struct held_tensor {
  using type = packed_of<element<E>, N>;
};
template <int N, dtype Numbers>
struct held_tensor<dtype::record, N, Numbers> {
  using type = packed<record, 1, 1, record>;
};
template <int N, dtype Numbers>
requires(N > most_single) struct held_tensor<dtype::boolean, N, Numbers> {
  using type = mask_for<element<Numbers>, N>;
};

/// The type that holds node N of program P.
template <class P, node_id N>
consteval auto held() {
  constexpr tensor_type t = P::graph.type(N);
  constexpr register_rule rule(P::graph, P::element_type);
  constexpr dtype mask = rule.mask_of(N);
  if constexpr (rule.repeated_truth(N))
    return std::type_identity<packed<bool, 1, 1, bool>>{};
  else if constexpr (mask != dtype::tuple)
    return std::type_identity<mask_for<element<mask>, int(t.size())>>{};
  else
    return std::type_identity<
        typename held_tensor<t.element, int(t.size()), P::element_type>::type>{};
}

template <class P, node_id N>
struct register_value {
  typename decltype(held<P, N>())::type v;
};
/// Result K of node N.
template <class P, node_id N, int K>
struct register_result {
  static constexpr tensor_type t = P::graph.result_type(N, K);
  typename held_tensor<t.element, int(t.size()), P::element_type>::type v;
};
template <class P, node_id N, class K>
struct register_results;
template <class P, node_id N, int... K>
struct register_results<P, N, std::integer_sequence<int, K...>> : register_result<P, N, K>... {};
template <class P, node_id N>
requires(P::graph.nodes[std::size_t(N)].result_count > 0) struct register_value<P, N> {
  register_results<P, N,
                   std::make_integer_sequence<int, P::graph.nodes[std::size_t(N)].result_count>>
      v;
};

// ---- tables

template <class P, node_id N>
consteval auto operand_types() {
  constexpr int count = P::graph.nodes[std::size_t(N)].operand_count;
  std::array<tensor_type, std::size_t(count ? count : 1)> t{};
  for (int k = 0; k < count; ++k) t[std::size_t(k)] = P::graph.type(P::graph.operand(N, k));
  return t;
}
/// Where the elements of node N come from.
template <class P, node_id N>
struct movement_table {
  static constexpr auto value = [] {
    std::array<element_source, std::size_t(P::graph.type(N).size())> map{};
    element_map(P::graph.nodes[std::size_t(N)], operand_types<P, N>(), map);
    return map;
  }();
};
template <class P, node_id N>
inline constexpr contraction contraction_of{P::graph.nodes[std::size_t(N)], operand_types<P, N>()};
/// Each element from its own place.
template <int N>
struct identity_table {
  static constexpr auto value = [] {
    std::array<element_source, std::size_t(N)> map{};
    for (std::size_t e = 0; e < map.size(); ++e) map[e] = {0, std::int16_t(e)};
    return map;
  }();
};
/// Elements of operand K of a contraction: those of term T for each result,
template <class P, node_id N, int K, int T>
struct term_table {
  static constexpr auto value = [] {
    std::array<element_source, std::size_t(P::graph.type(N).size())> map{};
    for (std::size_t e = 0; e < map.size(); ++e)
      map[e] = {0, std::int16_t(contraction_of<P, N>.element(K, std::int64_t(e), T))};
    return map;
  }();
};
/// and those of all terms of result E.
template <class P, node_id N, int K, int E>
struct result_table {
  static constexpr auto value = [] {
    std::array<element_source, std::size_t(contraction_of<P, N>.terms())> map{};
    for (std::size_t t = 0; t < map.size(); ++t)
      map[t] = {0, std::int16_t(contraction_of<P, N>.element(K, E, std::int64_t(t)))};
    return map;
  }();
};

// ---- one operation

/// Node N of program P, elementwise, on registers.
template <class P, node_id N>
struct register_operation {
  using op = op_of<P::graph.nodes[std::size_t(N)].op>;

  template <class X>
  [[gnu::always_inline]] static auto widened(X x) {
    if constexpr (std::is_unsigned_v<X> && !std::is_same_v<X, bool>)
      return std::uint64_t{x};
    else if constexpr (std::is_integral_v<X> && !std::is_same_v<X, bool>)
      return std::int64_t{x};
    else
      return x;
  }
  template <class... X>
  [[gnu::always_inline]] static auto one(const X&... x) {
    if constexpr (requires { typename op::options; }) {
      constexpr auto options =
          P::graph.nodes[std::size_t(N)].attributes.template as<typename op::options>();
      return op::apply(options, widened(x)...);
    } else if constexpr (requires { vector_form<op>::apply(x...); }) {
      return vector_form<op>::apply(x...);
    } else if constexpr (std::is_same_v<op, select_op>) {
      return chosen(x...);
    } else {
      return op::apply(widened(x)...);
    }
  }
  template <class C, class X>
  [[gnu::always_inline]] static X chosen(const C& c, const X& x, const X& y) {
    if constexpr (std::is_same_v<C, bool>)
      return c ? x : y;
    else
      return select_op::apply(c, x, y);
  }

  /// Register U of an operand; one truth value stands for all.
  template <std::size_t U, class X>
  [[gnu::always_inline]] static const auto& unit_of(const X& x) {
    return x.u[X::units == 1 ? 0 : U];
  }
  template <std::size_t U, class Y, class... X>
  [[gnu::always_inline]] static void set(Y& y, const X&... x) {
    using unit = typename Y::unit;
    y.u[U] = static_cast<unit>(one(unit_of<U>(x)...));
  }
  template <class Y, std::size_t... U, class... X>
  [[gnu::always_inline]] static void each(Y& y, std::index_sequence<U...>, const X&... x) {
    (set<U>(y, x...), ...);
  }
  template <class V, std::size_t... L, class X>
  [[gnu::always_inline]] static V gathered(std::index_sequence<L...>, const X& x) {
    return V(typename V::register_type{x.u[L < std::size_t(X::size) ? L : 0]...});
  }
  template <class Y, std::size_t... U, class V>
  [[gnu::always_inline]] static void scatter(Y& y, std::index_sequence<U...>, const V& v) {
    ((y.u[U] = v.data[U]), ...);
  }

  template <class Y, class... X>
  [[gnu::always_inline]] static void run(Y& y, const X&... x) {
    using number = typename Y::number;
    if constexpr (std::is_base_of_v<transcendental, op> && Y::width == 1 && Y::size > 1 &&
                  Y::size <= narrow_width<number>) {
      using vector = typename detail::lanes_type<number, narrow_width<number>>::type;
      constexpr auto lanes_of_vector = std::make_index_sequence<vector::size>{};
      const vector v = one(gathered<vector>(lanes_of_vector, x)...);
      scatter(y, std::make_index_sequence<std::size_t(Y::size)>{}, v);
    } else {
      each(y, std::make_index_sequence<std::size_t(Y::units)>{}, x...);
    }
  }
};

}  // namespace cella::cpu
