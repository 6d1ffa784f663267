// What a model is trained and measured on: data whose columns it can take, and what is refused.
#pragma once

#include <cella/data/loader.hpp>
#include <type_traits>
#include <utility>

namespace cella {

namespace detail {
template <class Data>
struct columns_of {
  using type = typename Data::sample;
};
template <data::batch_loader Data>
struct columns_of<Data> {
  using type = typename Data::batch_type;
};
/// Column `I` of a data set or loader, as elements.
template <class Data, std::size_t I>
using column_element = typename decltype(std::declval<typename columns_of<Data>::type&>()
                                             .template column<I>())::value_type;
template <class T, class U>
concept same_kind = std::is_floating_point_v<T>
== std::is_floating_point_v<U>;

/// Data whose first two columns can be converted to a model's inputs and targets.
template <class Data, class Model>
concept samples_for = data::sample_source<Data> && columns_of<Data>::type::width >= 2 &&
                      same_kind<column_element<Data, 0>, typename Model::input_element>&&
                          same_kind<column_element<Data, 1>, typename Model::target_element>;

/// What no samples come from, and samples of other kinds, are refused where they are handed over.
template <class Model>
struct no_samples {
  template <class Data>
  requires(!data::sample_source<Data>)
      __attribute__((unavailable("hand over a data set (see data/sample.hpp) or a loader")))  //
      no_samples(const Data&) {}
  template <class Data>
  requires(data::sample_source<Data> && !samples_for<Data, Model> && Model::accepted)
      __attribute__((unavailable(
          "the data need a column of inputs and one of targets, each integers where the "
          "model takes integers and floating-point numbers where it takes these (labels of "
          "classes are integers); convert them with map_to")))  //
      no_samples(const Data&) {}
  /// The model has said what is wrong.
  template <data::sample_source Data>
  requires(!Model::accepted) no_samples(const Data&) {}
};
}  // namespace detail

}  // namespace cella
