// What a model takes: the type of one sample or a struct of such, and rows of samples.
#pragma once

#include <algorithm>
#include <array>
#include <cella/data/tensor.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/runtime/array_like.hpp>
#include <cella/runtime/program_names.hpp>
#include <cella/transform/trace.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella {

/// One sample of these extents, of the model's element type. As a member of a struct of inputs it
/// is the var that stands for a batch of them while a net or a loss is traced.
template <int... Extents>
struct features : var {
  static constexpr cella::shape extents{Extents...};
  /// A batch of them, in a model of element type `Model`.
  template <dtype Model, int Rows>
  using batch = tensor<Model, Rows, Extents...>;
};
/// One picture: channels, height, width.
template <int Channels, int Height, int Width>
using image = features<Channels, Height, Width>;
/// Integers (i32) of these extents: indices, lengths, edges.
template <int... Extents>
struct integers : var {
  static constexpr cella::shape extents{Extents...};
  template <dtype Model, int Rows>
  using batch = tensor<dtype::i32, Rows, Extents...>;
};
/// One sequence of `Length` integers, as an embedding takes it.
template <int Length>
using tokens = integers<Length>;

/// What describes one sample: `features`, `image`, `tokens`, or a struct with the same members.
template <class T>
concept sample_spec = requires {
  { T::extents } -> std::convertible_to<shape>;
  { T::template batch<dtype::f32, 1>::type } -> std::convertible_to<tensor_type>;
};

namespace detail {
/// Several types in their order: of samples.
template <class... Specs>
struct spec_list {
  static constexpr std::size_t size = sizeof...(Specs);
  static constexpr bool valid = size > 0 && (sample_spec<Specs> && ...);
  static constexpr std::array<shape, size> extents{Specs::extents...};
  template <dtype Model, int Rows>
  static constexpr std::array<tensor_type, size> types{Specs::template batch<Model, Rows>::type...};
  /// Of a cell that takes batches of `Rows` of them, and `More`.
  template <class Cell, bool Training, dtype Model, int Rows>
  using graph = make_graph<Cell, Training, Model, typename Specs::template batch<Model, Rows>...>;
  template <class Cell, bool Training, dtype Model, int Rows, class... More>
  using program = cella::program<Cell, Training, Model,
                                 typename Specs::template batch<Model, Rows>..., More...>;
  /// The same of a cell that takes `Others` before these.
  template <class Others, class Cell, bool Training, dtype Model, int Rows>
  using append_to =
      typename Others::template program<Cell, Training, Model, Rows,
                                        typename Specs::template batch<Model, Rows>...>;
};

template <class T>
constexpr auto find_specs() {
  if constexpr (sample_spec<T>) {
    return spec_list<T>{};
  } else if constexpr (std::is_class_v<T> && !std::is_base_of_v<var, T> && std::is_aggregate_v<T> &&
                       !std::is_empty_v<T>) {
    return []<class... M>(const std::tuple<M&...>*) {
      if constexpr ((sample_spec<M> && ...)) return spec_list<M...>{};
    }(static_cast<decltype(tie_members<member_count<T>()>(std::declval<T&>()))*>(nullptr));
  }
}
/// The samples that one input or a struct of inputs is made of.
template <class T>
using specs_of = decltype(find_specs<T>());
/// What nets and losses are given for inputs of type T.
template <class T>
using traced_inputs = std::conditional_t<sample_spec<T>, var, T>;
}  // namespace detail

/// What a model takes: one sample, or a plain struct of several with names:
///   struct sentence { tokens<32> words; features<32> mask; };
template <class T>
concept model_inputs = !std::is_void_v<detail::specs_of<T>>;

namespace detail {

/// Its `type` is `tensor<...>` for a tensor type that is known in constant evaluation only.
template <tensor_type Type, class = std::make_index_sequence<std::size_t(Type.shape.rank)>>
struct tensor_of;
template <tensor_type Type, std::size_t... I>
struct tensor_of<Type, std::index_sequence<I...>> {
  using type = tensor<Type.element, int(Type.shape.extents[I])...>;
};

/// The number of samples in `a`. Throws `error` unless it is [rows, sample...] or one sample; an
/// array without extents may hold any number of whole samples.
template <array_like A>
std::int64_t rows_of(const A& a, const shape& sample, std::string_view name) {
  auto check = [&](const auto& extents) -> std::int64_t {
    std::vector<std::int64_t> e;
    for (auto x : extents) e.push_back(std::int64_t(x));
    auto ends_like_sample = [&](std::size_t from) {
      return e.size() - from == std::size_t(sample.rank) &&
             std::equal(sample.begin(), sample.end(), e.begin() + std::ptrdiff_t(from));
    };
    if (!e.empty() && ends_like_sample(1) && e[0] >= 0) return e[0];
    if (ends_like_sample(0)) return 1;
    text found;
    found << "[";
    for (std::size_t i = 0; i < e.size(); ++i) found << (i ? "," : "") << e[i];
    throw error(text() << "predict: " << name << " is " << found
                       << "], but the model takes samples " << sample
                       << "; hand over one of them, or rows of them");
  };
  if constexpr (requires { std::begin(a.shape()); }) {
    return check(a.shape());
  } else if constexpr (requires { std::begin(a.extents()); }) {
    return check(a.extents());
  } else {
    const std::int64_t size = sample.size();
    if (size == 0 || std::int64_t(a.size()) % size != 0) {
      throw error(text() << "predict: " << name << " has " << std::int64_t(a.size())
                         << " elements, but a sample " << sample << " has " << size
                         << "; hand over whole samples");
    }
    return std::int64_t(a.size()) / size;
  }
}

/// Throws `error` unless a batch of so many samples can be asked for.
inline void check_rows(std::int64_t rows) {
  if (rows >= 0 && rows <= std::numeric_limits<std::int32_t>::max()) return;
  throw error(text() << "predict: the number of rows is " << rows
                     << "; give 0 or more, and less than 2^31");
}

/// Throws `error` if one of the columns is nowhere.
template <std::size_t N>
void check_addresses(const char* who, const std::array<std::byte*, N>& columns) {
  if (std::find(columns.begin(), columns.end(), nullptr) == columns.end()) return;
  throw error(text() << who << ": the address of a column is null; hand over the samples' memory");
}

/// The first element of samples for an input of elements `Element`, and their number.
template <class Element, array_like A>
std::pair<const Element*, std::int64_t> samples_of(const A& a, const shape& sample,
                                                   std::string_view name) {
  if (!is_dense(a)) {
    throw error(text() << "predict: " << name
                       << " is not dense and row-major; hand over a row-major copy");
  }
  return {first_element(a), rows_of(a, sample, name)};
}
/// What messages call input `I`: the member of a struct of inputs.
template <class Input, std::size_t I>
constexpr std::string_view name_of_input() {
  if constexpr (sample_spec<Input>)
    return "the array";
  else
    return member_name<Input, I>();
}

}  // namespace detail

}  // namespace cella
