// Several samples side by side in contiguous buffers.
#pragma once

#include <algorithm>
#include <cella/data/sample.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::data {

/// Samples side by side: column I has extents [size(), ...], is contiguous and 64-byte aligned.
/// The buffers hold `capacity()` rows; rows beyond `size()` (in the last batch) are zero.
template <class... Ts>
class batch {
 public:
  using sample_type = data::sample<Ts...>;
  static constexpr std::size_t width = sizeof...(Ts);

  batch(const sample_shapes<width>& shapes, std::int64_t capacity)
      : shapes_(shapes), capacity_(capacity) {
    for_each_column<width>([&](auto i) {
      const auto elements = static_cast<std::size_t>(capacity * shapes_[i].size());
      buffers_[i] = std::decay_t<decltype(buffers_[i])>(elements);
    });
  }

  /// Number of valid rows.
  std::int64_t size() const { return size_; }
  /// Number of rows that the buffers hold: the batch size that was asked for.
  std::int64_t capacity() const { return capacity_; }
  /// Number of this batch in its epoch, from 0.
  std::int64_t index() const { return index_; }

  /// Valid rows of a column: [size(), ...].
  template <std::size_t I>
  auto column() const {
    return rows<I>(size_);
  }
  template <class Index>
  auto operator[](Index) const {
    return column<std::size_t{Index::value}>();
  }
  /// All rows of a column, the zero ones included: [capacity(), ...].
  template <std::size_t I>
  auto padded() const {
    return rows<I>(capacity_);
  }

  /// Reads samples [first, first + count) of `source` as batch `index` of `epoch`.
  template <dataset D>
  void fill(const D& source, std::int64_t epoch, std::int64_t index, std::int64_t first,
            std::int64_t count, scratch& work) {
    index_ = index;
    size_ = count;
    for (std::int64_t row = 0; row < count; ++row) {
      read_sample(source, {first + row, epoch}, at_row(row), work);
    }
    for_each_column<width>([&](auto i) {
      auto all = padded<i>();
      std::fill(all.begin() + count * shapes_[i].size(), all.end(),
                typename decltype(all)::value_type{});
    });
  }

 private:
  template <std::size_t I>
  auto rows(std::int64_t count) const {
    shape extents = shapes_[I];
    extents.insert(0, static_cast<int>(count));
    return tensor_view(buffers_[hana::size_c<I>].data(), extents);
  }
  sample_type at_row(std::int64_t row) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return sample_type(hana::tuple<tensor_view<Ts>...>(padded<I>().row(row)...));
    }
    (std::index_sequence_for<Ts...>{});
  }

  sample_shapes<width> shapes_;
  std::int64_t capacity_;
  std::int64_t size_{};
  std::int64_t index_{};
  hana::tuple<typed_buffer<Ts>...> buffers_;
};

}  // namespace cella::data
