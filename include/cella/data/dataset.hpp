// Data sets: columns in memory, and all that views make of them.
//
//   auto train = read_mnist(dir, part::train).shuffle(seed).map<0>(random_shift{}).batch(64);
//   for (auto& batch : train.prefetch(4).epoch(e)) use(batch.column<0>(), batch.column<1>());
#pragma once

#include <algorithm>
#include <cella/data/composable.hpp>
#include <cella/data/loader.hpp>
#include <cella/data/sample.hpp>
#include <cella/data/views.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cella::data {

/// Columns in memory. Copies share them.
template <class... Ts>
class tensor_dataset : public composable<tensor_dataset<Ts...>> {
 public:
  using sample = data::sample<Ts...>;

  /// Throws `error` when the columns differ in their number of samples.
  explicit tensor_dataset(data::column<Ts>... columns)
      : columns_(std::make_shared<const hana::tuple<data::column<Ts>...>>(std::move(columns)...)) {
    for_each_column<sizeof...(Ts)>([&](auto i) {
      if (column<i>().extents()[0] != size()) {
        throw error(text("tensor_dataset: column 0 has ")
                    << size() << " samples, but column " << std::size_t{i} << " has "
                    << (*columns_)[i].size() << "; all need the same number.");
      }
    });
  }

  // A vector does not tell which of its values are one sample.
  template <class... Nothing>
  __attribute__((
      unavailable("a data set is made of columns: data::tensor_dataset("
                  "data::column<float>({n, 10}, x), data::column(y))")))  //
  explicit tensor_dataset(const std::vector<Ts>&... values)
      : tensor_dataset(data::column<Ts>(values)...) {}

  std::int64_t size() const { return (*columns_)[hana::size_c<0>].size(); }
  sample_shapes<sizeof...(Ts)> shapes() const {
    return hana::unpack(*columns_, [](const auto&... c) {
      return sample_shapes<sizeof...(Ts)>{c.sample_shape()...};
    });
  }
  /// A whole column: [size(), ...].
  template <std::size_t I>
  auto column() const {
    return (*columns_)[hana::size_c<I>].view();
  }

  void read(position at, const sample& out) const {
    for_each_column<sizeof...(Ts)>([&](auto i) {
      const auto from = column<i>().row(at.index);
      std::copy(from.begin(), from.end(), out[i].begin());
    });
  }

 private:
  std::shared_ptr<const hana::tuple<data::column<Ts>...>> columns_;
};

template <class Self>
auto composable<Self>::to_memory(std::int64_t epoch) const requires dataset<Self> {
  const Self& from = self();
  const auto shapes = from.shapes();
  const std::int64_t n = from.size();
  if (n > 0x7fffffff) {
    throw error(text("to_memory: there are ") << n
                                              << " samples, but a column holds less than "
                                                 "2^31; take fewer.");
  }
  return [&]<class... Ts>(sample<Ts...>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      hana::tuple<std::vector<Ts>...> values(
          std::vector<Ts>(static_cast<std::size_t>(n * shapes[I].size()))...);
      scratch work;
      for (std::int64_t i = 0; i < n; ++i) {
        read_sample(from, {i, epoch},
                    sample<Ts...>(hana::tuple<tensor_view<Ts>...>(tensor_view<Ts>(
                        values[hana::size_c<I>].data() + i * shapes[I].size(), shapes[I])...)),
                    work);
      }
      auto extents = shapes;
      for (auto& e : extents) e.insert(0, static_cast<int>(n));
      return tensor_dataset<Ts...>(column<Ts>(extents[I], std::move(values[hana::size_c<I>]))...);
    }
    (std::index_sequence_for<Ts...>{});
  }(typename Self::sample{});
}

}  // namespace cella::data
