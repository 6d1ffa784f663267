// What a model takes: the type of one sample, and arrays that may be handed over for samples.
#pragma once

#include <algorithm>
#include <cella/data/tensor.hpp>
#include <cella/transform/trace.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella {

/// One sample of these extents, of the model's element type.
template <int... Extents>
struct features {
  static constexpr shape extents{Extents...};
  /// A batch of them, in a model of element type `Model`.
  template <dtype Model, int Rows>
  using batch = tensor<Model, Rows, Extents...>;
};
/// One picture: channels, height, width.
template <int Channels, int Height, int Width>
using image = features<Channels, Height, Width>;
/// One sequence of `Length` integers (i32), as an embedding takes it.
template <int Length>
struct tokens {
  static constexpr shape extents{Length};
  template <dtype Model, int Rows>
  using batch = tensor<dtype::i32, Rows, Length>;
};

/// What describes one sample: `features`, `image`, `tokens`, or a struct with the same members.
template <class T>
concept sample_spec = requires {
  { T::extents } -> std::convertible_to<shape>;
  { T::template batch<dtype::f32, 1>::type } -> std::convertible_to<tensor_type>;
};

/// Dense arrays as they come from elsewhere: `data()` with `shape()` or `extents()`, or with
/// `size()`. xtensor's containers, `data::tensor_view`, `std::vector` and `std::span` are some.
template <class A>
concept array_like = requires(const A& a) {
  *a.data();
  requires requires { std::begin(a.shape()); } || requires {
    std::begin(a.extents());
  } || requires { a.size(); };
};

namespace detail {

/// Its `type` is `tensor<...>` for a tensor type that is known in constant evaluation only.
template <tensor_type Type, class = std::make_index_sequence<std::size_t(Type.shape.rank)>>
struct tensor_of;
template <tensor_type Type, std::size_t... I>
struct tensor_of<Type, std::index_sequence<I...>> {
  using type = tensor<Type.element, int(Type.shape.extents[I])...>;
};

/// The first element of a dense row-major array; a library's column-major array is refused.
template <array_like A>
auto first_element(const A& a) {
  if constexpr (requires {
                  std::begin(a.strides());
                  std::begin(a.shape());
                }) {
    std::int64_t expected = 1;
    for (std::size_t i = a.shape().size(); i-- > 0;) {
      const auto extent = std::int64_t(a.shape()[i]);
      if (extent != 1 && std::int64_t(a.strides()[i]) != expected) {
        throw error("predict: the array is not dense and row-major; hand over a row-major copy");
      }
      expected *= extent;
    }
  }
  if constexpr (requires { a.data_offset(); })
    return a.data() + a.data_offset();
  else
    return a.data();
}

/// The number of samples in `a`. Throws `error` unless it is [rows, sample...] or one sample; an
/// array without extents may hold any number of whole samples.
template <array_like A>
std::int64_t rows_of(const A& a, const shape& sample) {
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
    throw error(text() << "predict: the array is " << found << "], but the model takes samples "
                       << sample << "; hand over one of them, or rows of them");
  };
  if constexpr (requires { std::begin(a.shape()); }) {
    return check(a.shape());
  } else if constexpr (requires { std::begin(a.extents()); }) {
    return check(a.extents());
  } else {
    const std::int64_t size = sample.size();
    if (size == 0 || std::int64_t(a.size()) % size != 0) {
      throw error(text() << "predict: the array has " << std::int64_t(a.size())
                         << " elements, but a sample " << sample << " has " << size
                         << "; hand over whole samples");
    }
    return std::int64_t(a.size()) / size;
  }
}

/// The first element of samples for a model whose inputs are of type `Element`, and their number.
template <class Element, array_like A>
std::pair<const Element*, std::int64_t> samples_of(const A& a, const shape& sample) {
  const auto* first = first_element(a);
  static_assert(std::is_same_v<std::remove_cv_t<std::remove_pointer_t<decltype(first)>>, Element>,
                "predict: the array's elements are not of the model's input type");
  return {first, rows_of(a, sample)};
}

}  // namespace detail

}  // namespace cella
