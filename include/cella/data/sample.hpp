// What a data set is: a number of samples, each with a fixed list of columns of different types.
#pragma once

#include <array>
#include <boost/hana/for_each.hpp>
#include <boost/hana/integral_constant.hpp>
#include <boost/hana/range.hpp>
#include <boost/hana/tuple.hpp>
#include <cella/data/tensor.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cella::data {

namespace hana = boost::hana;
using hana::literals::operator""_c;

/// Calls `f(hana::size_c<I>)` for each column I of `Columns` columns.
template <std::size_t Columns, class F>
constexpr void for_each_column(F&& f) {
  hana::for_each(hana::make_range(hana::size_c<0>, hana::size_c<Columns>), f);
}

/// Extents of one sample's columns.
template <std::size_t Columns>
using sample_shapes = std::array<shape, Columns>;

/// One sample: a view of each of its columns. `s.column<1>()` and `s[1_c]` are the second.
template <class... Ts>
class sample {
 public:
  static constexpr std::size_t width = sizeof...(Ts);
  template <template <class...> class Target>
  using rebind = Target<Ts...>;

  sample() = default;
  explicit sample(hana::tuple<tensor_view<Ts>...> columns) : columns_(columns) {}

  template <std::size_t I>
  auto column() const {
    return columns_[hana::size_c<I>];
  }
  template <class Index>
  auto operator[](Index) const {
    return column<std::size_t{Index::value}>();
  }

 private:
  hana::tuple<tensor_view<Ts>...> columns_;
};

/// Which sample to read. Views may give another order, or other random changes, in each epoch.
struct position {
  std::int64_t index{};
  std::int64_t epoch{};
};

/// Working memory of one reader, one block per stage of the pipeline; it only ever grows.
class scratch {
 public:
  /// Uninitialised space for `count` elements; the same memory for the same `stage` and `slot`.
  template <class T>
  T* block(std::size_t stage, std::size_t slot, std::size_t count) {
    if (blocks_.size() <= stage) blocks_.resize(stage + 1);
    auto& slots = blocks_[stage];
    if (slots.size() <= slot) slots.resize(slot + 1);
    if (slots[slot].size() < count * sizeof(T)) { slots[slot] = aligned_buffer(count * sizeof(T)); }
    return reinterpret_cast<T*>(slots[slot].data());
  }

 private:
  std::vector<std::vector<aligned_buffer>> blocks_;
};

/// What pipelines are made of. `read` writes the sample at a position into `out`, whose columns
/// have the extents of `shapes()`; it is called from several threads at once. A third parameter of
/// type `scratch&` is optional.
template <class D>
concept dataset = std::copy_constructible<D> &&
    requires(const D& d, position at, scratch& work, const typename D::sample& out) {
  { d.size() } -> std::convertible_to<std::int64_t>;
  { d.shapes() } -> std::convertible_to<sample_shapes<D::sample::width>>;
  requires requires { d.read(at, out); } || requires {
    d.read(at, out, work);
  };
};

/// Reads the sample at a position, with working memory if the data set asks for it.
template <dataset D>
void read_sample(const D& d, position at, const typename D::sample& out, scratch& work) {
  if constexpr (requires { d.read(at, out, work); }) {
    d.read(at, out, work);
  } else {
    d.read(at, out);
  }
}

/// Whether position i means the same sample in every epoch. Views over a data set ask it.
template <dataset D>
bool has_stable_order(const D& d) {
  if constexpr (requires { d.stable_order(); }) {
    return d.stable_order();
  } else {
    return true;
  }
}

}  // namespace cella::data
