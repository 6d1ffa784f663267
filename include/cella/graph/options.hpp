// The fields of an operation's options, read from their struct by reflection: what prints options,
// compares them or puts them into files needs no more.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/attributes.hpp>
#include <cella/graph/dtype.hpp>
#include <cella/graph/reflection.hpp>
#include <cella/graph/shape.hpp>
#include <cella/graph/span.hpp>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cella {

/// An element type among options, which are whole words.
struct stored_dtype {
  std::int32_t code{};
  constexpr operator dtype() const { return dtype(code); }
};

/// What a field of options is, by its C++ type.
enum class option_kind : std::uint8_t {
  number,      ///< double
  integer,     ///< std::int32_t, or an array of them
  element,     ///< stored_dtype
  extents,     ///< shape
  axes,        ///< std::array<std::int8_t, max_rank>: an axis or factor each; -1 ends the list
  axis_set,    ///< std::uint32_t: a set of axes, one bit each
  characters,  ///< std::array<char, N>: a string that ends at the first zero
};

struct option_field {
  std::string_view name;
  option_kind kind{};
  std::int16_t offset{};  ///< bytes from the beginning of the options
  std::int16_t count = 1;
};

/// All fields, nested structs flattened, and the options of which nothing was said.
struct option_schema {
  span<const option_field> fields;
  attributes defaults;
};

namespace detail {

template <class T>
inline constexpr bool is_integers = false;
template <std::size_t N>
inline constexpr bool is_integers<std::array<std::int32_t, N>> = true;
template <class T>
inline constexpr bool is_characters = false;
template <std::size_t N>
inline constexpr bool is_characters<std::array<char, N>> = true;

/// What a field of type T is; a struct has no kind of its own: its members are fields.
template <class T>
constexpr option_field field_of_type() {
  if constexpr (std::is_same_v<T, double>)
    return {{}, option_kind::number};
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return {{}, option_kind::integer};
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return {{}, option_kind::axis_set};
  else if constexpr (std::is_same_v<T, stored_dtype>)
    return {{}, option_kind::element};
  else if constexpr (std::is_same_v<T, shape>)
    return {{}, option_kind::extents};
  else if constexpr (std::is_same_v<T, std::array<std::int8_t, max_rank>>)
    return {{}, option_kind::axes};
  else if constexpr (is_integers<T>)
    return {{}, option_kind::integer, 0, std::int16_t(std::tuple_size_v<T>)};
  else if constexpr (is_characters<T>)
    return {{}, option_kind::characters, 0, std::int16_t(std::tuple_size_v<T>)};
  else
    return {{}, {}, 0, 0};
}

/// The fields found so far, and the bytes that they take.
struct found_options {
  std::array<option_field, 2 * most_members> fields;
  std::size_t count{};
  std::size_t bytes{};
  bool has_others{};  ///< fields of types that are no option
};
template <class T>
constexpr void find_options(found_options& found, std::string_view name);
template <class T, std::size_t... I, class... M>
constexpr void find_options_in(found_options& found,
                               const member_addresses<std::index_sequence<I...>, M...>&) {
  (find_options<M>(found, member_name<T, I>()), ...);
}
template <class T>
constexpr void find_options(found_options& found, std::string_view name) {
  constexpr option_field field = field_of_type<T>();
  if constexpr (field.count > 0) {
    option_field& f = found.fields[found.count++] = field;
    f.name = name;
    f.offset = std::int16_t(found.bytes);
    found.bytes += sizeof(T);
  } else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>) {
    find_options_in<T>(found, members_of<T>());
  } else {
    found.has_others = true;
  }
}
template <class Options>
constexpr found_options find_options() {
  found_options found{};
  find_options<Options>(found, {});
  return found;
}
template <std::size_t Count>
constexpr std::array<option_field, Count> first_fields(const found_options& found) {
  std::array<option_field, Count> fields{};
  std::copy_n(found.fields.begin(), Count, fields.begin());
  return fields;
}

constexpr int bytes_of(const option_field& f) {
  switch (f.kind) {
    case option_kind::number:
      return 8;
    case option_kind::integer:
      return 4 * f.count;
    case option_kind::extents:
      return int(sizeof(shape));
    case option_kind::axes:
      return max_rank;
    case option_kind::characters:
      return f.count;
    default:
      return 4;
  }
}

template <class Options>
constexpr auto fields_in() {
  constexpr found_options found = find_options<Options>();
  return first_fields<found.count>(found);
}
template <class Options>
inline constexpr auto fields_of = fields_in<Options>();

}  // namespace detail

/// The fields of an operation's `options`.
template <class Options>
inline constexpr option_schema schema_of{detail::fields_of<Options>, Options{}};

}  // namespace cella
