// The columns that go into a model and come out of it, by their element types.
#pragma once

#include <array>
#include <cella/graph/op_info.hpp>
#include <cella/train/input.hpp>
#include <cella/train/predictions.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::detail {

/// A T, or of several a tuple.
template <class T, class... More>
struct one_or_tuple_of {
  using type = std::tuple<T, More...>;
};
template <class T>
struct one_or_tuple_of<T> {
  using type = T;
};
template <class... T>
using one_or_tuple = typename one_or_tuple_of<T...>::type;

inline std::byte* byte_address(const void* p) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(p));
}
/// The addresses that a pointer, or a tuple of pointers, is.
inline std::array<std::byte*, 1> addresses_of(const void* p) { return {byte_address(p)}; }
template <class... T>
std::array<std::byte*, sizeof...(T)> addresses_of(const std::tuple<T*...>& all) {
  return std::apply([](auto... p) { return std::array{byte_address(p)...}; }, all);
}

template <std::size_t N>
std::array<tensor_ref, N> memory_of(const std::array<std::byte*, N>& all,
                                    const std::array<tensor_type, N>& types) {
  std::array<tensor_ref, N> memory;
  for (std::size_t k = 0; k < N; ++k) memory[k] = {all[k], types[k]};
  return memory;
}

/// Columns of these element types; of one column there are no tuples.
template <class... E>
struct typed_columns {
  using first = std::tuple_element_t<0, std::tuple<E...>>;
  using pointers = one_or_tuple<const E*...>;
  using places = one_or_tuple<E*...>;
  using views = one_or_tuple<data::tensor_view<const E>...>;
  using answer = one_or_tuple<predictions<E>...>;
  using buffers = std::tuple<std::vector<E>...>;

  template <std::size_t I>
  using at = std::tuple_element_t<I, std::tuple<E...>>;

  static std::tuple<predictions<E>...> make_predictions(
      const std::array<tensor_type, sizeof...(E)>& types) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<predictions<E>...>(predictions<E>(types[I].shape)...);
    }
    (std::index_sequence_for<E...>{});
  }
  static answer answer_of(std::tuple<predictions<E>...> all) {
    if constexpr (sizeof...(E) == 1)
      return std::get<0>(std::move(all));
    else
      return all;
  }
  static views view(const std::array<tensor_ref, sizeof...(E)>& all) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return views(data::tensor_view<const E>(reinterpret_cast<const E*>(all[I].data),
                                              all[I].type.shape)...);
    }
    (std::index_sequence_for<E...>{});
  }
};
template <auto Types, class = std::make_index_sequence<Types.size()>>
struct columns_of_types;
template <auto Types, std::size_t... I>
struct columns_of_types<Types, std::index_sequence<I...>> {
  using type = typed_columns<element<Types[I].element>...>;
};
/// The columns of tensors of these types.
template <auto Types>
using columns_of = typename columns_of_types<Types>::type;

/// The first elements of arrays of samples, one for each input, and the number of samples. Throws
/// `error`, which names the member, if they have different numbers.
template <class Input, class Columns, array_like... A>
std::pair<typename Columns::pointers, std::int64_t> samples_of_all(const A&... arrays) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    using specs = specs_of<Input>;
    const std::array names{name_of_input<Input, I>()...};
    const auto all = std::make_tuple(
        samples_of<typename Columns::template at<I>>(arrays, specs::extents[I], names[I])...);
    const std::array rows{std::get<I>(all).second...};
    for (std::size_t k = 1; k < rows.size(); ++k) {
      if (rows[k] == rows[0]) continue;
      throw error(text() << "predict: " << names[0] << " has " << rows[0] << " samples, but "
                         << names[k] << " has " << rows[k] << "; hand over as many of each");
    }
    return std::pair(typename Columns::pointers(std::get<I>(all).first...), rows[0]);
  }
  (std::index_sequence_for<A...>{});
}

}  // namespace cella::detail
