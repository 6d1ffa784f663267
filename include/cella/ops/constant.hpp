// Constants: one repeated value, or a tensor of values.
//
//   x * constant(x, {0.5f, 1.f, 2.f})                        // f32[3]
//   x * constant(x, {0.5, 1., 2.}, {3, 1, 1}, x.element())   // [3,1,1], of x's element type
//   gather(constant(x, table), words)                        // std::array<std::array<float, 4>, 9>
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/graph/once.hpp>
#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <concepts>
#include <type_traits>
#include <utility>

namespace cella {

/// A tensor of one repeated value.
struct constant_op : leaf<constant_op> {
  static constexpr std::string_view name = "constant";
  static constexpr std::string_view numpy = "np.full";
  static constexpr std::string_view torch = "torch.full";
  static constexpr std::string_view formula = "y = value";
  struct options {
    double value{};
    cella::shape shape{};
    stored_dtype element{};
  };
  static constexpr onnx_operator onnx{"Constant", 1};
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes& o) {
    const double value = o.as<options>().value;
    return {value, value};
  }
  static constexpr attributes part_options(const attributes& o, const shape& part) {
    auto a = o.as<options>();
    a.shape = part;
    return a;
  }
  static void compute(const attributes& o, span<const tensor_ref>, span<const tensor_ref> out);
};

/// A tensor whose values lie in the graph: see constant_pool.
struct values_op : leaf<values_op>, stored_in_graph {
  static constexpr std::string_view name = "values";
  static constexpr std::string_view numpy = "np.array";
  static constexpr std::string_view torch = "torch.tensor";
  static constexpr std::string_view formula = "y = the given values";
  static constexpr onnx_operator onnx{"Constant", 1};
  using options = values_options;
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static constexpr text validate(const graph& g, node_id n) {
    const auto index = g.nodes[std::size_t(n)].attributes.as<options>().index;
    if (index < 0 || std::size_t(index) >= g.constants.tensors.size())
      return text() << "the graph has no constant tensor " << index;
    const pooled_tensor& x = g.constants.tensors[std::size_t(index)];
    if (x.type != g.type(n)) return text() << "constant tensor " << index << " is " << x.type;
    if (x.offset < 0 || std::size_t(x.offset / 8) + x.word_count() > g.constants.words.size())
      return text() << "constant tensor " << index << " lies beyond the pool";
    return {};
  }
};

namespace detail {
template <class T>
using bits_of = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// The bits of a number as an element of type `t`, which is not complex: see `from_double`.
constexpr std::uint64_t bits_of_number(dtype t, double value) {
  return with_element(t, [&]<class T>() -> std::uint64_t {
    if constexpr (is_complex_number<T>)
      return 0;
    else
      return std::bit_cast<bits_of<T>>(from_double<T>(value));
  });
}
/// And back; the bits above those of an element are zero.
constexpr double number_of_bits(dtype t, std::uint64_t bits) {
  return with_element(t, [&]<class T>() -> double {
    if constexpr (is_complex_number<T>)
      return 0;
    else
      return static_cast<double>(std::bit_cast<T>(static_cast<bits_of<T>>(bits)));
  });
}
/// What an integer type holds of a number.
constexpr double nearest_integer(dtype t, double value) {
  return number_of_bits(t, bits_of_number(t, value));
}
}  // namespace detail

/// A tensor of type `t` filled with `value`, in the graph of `b`; integers take the nearest.
constexpr var constant(builder& b, double value, const tensor_type& t) {
  if (is_integer(t.element)) value = detail::nearest_integer(t.element, value);
  constant_op::options o{value, t.shape, {std::int32_t(t.element)}};
  return {&b, b.emit(bound<constant_op>(), span<const node_id>{}, o)};
}
/// A tensor of the shape and type of x, filled with one number.
constexpr var full_like(operand x, double value) {
  return constant(*x.owner(), value, x.in(*x.owner()).type());
}
/// Zeros of the shape and type of x.
constexpr var zeros_like(operand x) { return full_like(x, 0); }
/// Ones of the shape and type of x.
constexpr var ones_like(operand x) { return full_like(x, 1); }

// ---- tensors of values

namespace detail {

template <class T>
concept has_dtype = requires {
  dtype_of_type<T>::value;
};

/// Elements and extents of nested arrays; `element` is void for anything else.
template <class T>
struct nested_array {
  using element = std::conditional_t<has_dtype<T>, T, void>;
  static constexpr cella::shape shape{};
};
template <class T, std::size_t N>
struct nested_array<T[N]> {
  using element = typename nested_array<T>::element;
  static constexpr cella::shape shape = [] {
    cella::shape s = nested_array<T>::shape;
    s.insert(0, int(N));
    return s;
  }();
};
template <class T, std::size_t N>
struct nested_array<std::array<T, N>> : nested_array<T[N]> {};

/// Nested arrays of elements, as they lie in memory: `std::array<std::array<float, 3>, 2>`.
template <class V>
concept array_of_values =
    !std::is_void_v<typename nested_array<V>::element> &&
    sizeof(V) == sizeof(typename nested_array<V>::element) * nested_array<V>::shape.size();

/// Elements one after the other whose number is known at run time: std::vector, std::span.
template <class V>
concept list_of_values = !array_of_values<V> && requires(const V& v) {
  requires has_dtype<std::remove_cvref_t<decltype(*v.data())>>;
  { v.size() } -> std::convertible_to<std::size_t>;
};

template <class V>
struct value_type {
  using type = typename nested_array<V>::element;
};
template <list_of_values V>
struct value_type<V> {
  using type = std::remove_cvref_t<decltype(*std::declval<const V&>().data())>;
};
template <class V>
inline constexpr dtype element_of_values = dtype_of<typename value_type<V>::type>;

/// The words of `count` elements, converted to the type `to` if they are of another one.
template <class From>
constexpr word_list converted_words(const From* from, std::size_t count, dtype to) {
  if (to == dtype_of<From>) return packed(from, count);
  return with_element(to, [&]<class T>() {
    if constexpr (std::is_same_v<T, From>) {
      return word_list();
    } else {
      list<T> all;
      all.reserve(count);
      for (std::size_t i = 0; i < count; ++i) all.push_back(from_number<T>(from[i]));
      return packed(all.data(), count);
    }
  });
}
/// The same for arrays. Those that fill words exactly are converted as a whole.
template <array_of_values V>
constexpr word_list words_of_array(const V& values, dtype to) {
  using T = typename nested_array<V>::element;
  constexpr std::size_t count = std::size_t(nested_array<V>::shape.size());
  struct elements {
    T at[count];
  };
  if constexpr (sizeof(V) % 8 == 0) {
    struct all_words {
      std::uint64_t at[sizeof(V) / 8];
    };
    if (to == dtype_of<T>) {
      const auto words = std::bit_cast<all_words>(values);
      return {words.at, words.at + sizeof(V) / 8};
    }
  }
  const auto flat = std::bit_cast<elements>(values);
  return converted_words(flat.at, count, to);
}

/// Whether all elements of a tensor have the same bits, and one number tells them.
constexpr bool is_one_value(const tensor_type& t, span<const std::uint64_t> words, double& value) {
  value = 0;
  if (words.empty()) return true;
  if (is_complex(t.element)) return false;
  for (std::uint64_t w : words) {
    if (w != words[0]) return false;
  }
  if (std::rotl(words[0], 8 * int(size_of(t.element))) != words[0]) return false;
  const std::uint64_t bits = element_at(words, 0, size_of(t.element));
  value = number_of_bits(t.element, bits);
  // Not all integers of 64 bits are doubles.
  return !is_integer(t.element) ||
         (value < beyond_integers(t.element) && bits_of_number(t.element, value) == bits);
}
/// The node's operation and options for a tensor that has these words: a constant if all of its
/// elements are equal, else an entry of the pool.
struct constant_application {
  const op_info* op{};
  attributes options{};
};
constexpr constant_application apply_constant(graph& g, const tensor_type& t,
                                              const word_list& words) {
  const stored_dtype element{std::int32_t(t.element)};
  double value{};
  if (is_one_value(t, words, value))
    return {&bound<constant_op>(), constant_op::options{value, t.shape, element}};
  return {&bound<values_op>(), values_op::options{g.constants.add(t, words), t.shape, element}};
}

constexpr var constant_of_words(operand x, const tensor_type& t, dtype from, std::size_t count,
                                const word_list& words) {
  builder& b = *x.owner();
  if (is_complex(from) && !is_complex(t.element)) {
    b.fail(text() << x.at() << ": constant: the values are " << from << ", which " << t.element
                  << " does not hold");
    return {&b, 0};
  }
  if (std::int64_t(count) != t.size()) {
    b.fail(text() << x.at() << ": constant: " << count << " values do not fit " << t.shape << " ("
                  << t.size() << " elements)");
    return {&b, 0};
  }
  if (b.failed()) return {&b, 0};
  const constant_application a = apply_constant(b.g, t, words);
  return {&b, b.emit(*a.op, span<const node_id>{}, a.options, x.at())};
}

}  // namespace detail

/// Values that are part of the graph of `x`, in the shape of the nested arrays that hold them.
/// Their type is the arrays' or, converted, `element`. Equal tensors are kept once.
template <detail::array_of_values V>
constexpr var constant(operand x, const V& values, dtype element = detail::element_of_values<V>) {
  constexpr shape s = detail::nested_array<V>::shape;
  return detail::constant_of_words(x, {element, s}, detail::element_of_values<V>,
                                   std::size_t(s.size()), detail::words_of_array(values, element));
}
/// The same in row-major order of a shape that is given: of arrays, a std::vector or a std::span.
template <detail::array_of_values V>
constexpr var constant(operand x, const V& values, const shape& s,
                       dtype element = detail::element_of_values<V>) {
  return detail::constant_of_words(x, {element, s}, detail::element_of_values<V>,
                                   std::size_t(detail::nested_array<V>::shape.size()),
                                   detail::words_of_array(values, element));
}
template <detail::list_of_values V>
constexpr var constant(operand x, const V& values, const shape& s,
                       dtype element = detail::element_of_values<V>) {
  return detail::constant_of_words(x, {element, s}, detail::element_of_values<V>, values.size(),
                                   detail::converted_words(values.data(), values.size(), element));
}
/// The same for values in braces: `constant(x, {1.f, 2.f})`.
template <detail::has_dtype T, std::size_t N>
constexpr var constant(operand x, const T (&values)[N], dtype element = dtype_of<T>) {
  return constant<T[N]>(x, values, element);
}
template <detail::has_dtype T, std::size_t N>
constexpr var constant(operand x, const T (&values)[N], const shape& s,
                       dtype element = dtype_of<T>) {
  return constant<T[N]>(x, values, s, element);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void constant_op::compute(const attributes& o, span<const tensor_ref>,
                                 span<const tensor_ref> out) {
  fill(out[0], o.as<options>().value);
}

#endif

}  // namespace cella
