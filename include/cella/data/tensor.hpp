// Plain tensors of the data pipeline: views, columns of samples, buffers.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella::data {

/// A dense row-major tensor that somebody else owns.
template <class T>
class tensor_view {
 public:
  using value_type = std::remove_const_t<T>;

  constexpr tensor_view() = default;
  constexpr tensor_view(T* data, const shape& extents) : data_(data), extents_(extents) {}
  constexpr tensor_view(const tensor_view<value_type>& other) requires std::is_const_v<T>
      : data_(other.data()), extents_(other.extents()) {}
  tensor_view(const tensor_view&) = default;
  tensor_view& operator=(const tensor_view&) = default;

  constexpr T* data() const { return data_; }
  constexpr const shape& extents() const { return extents_; }
  constexpr std::size_t size() const {
    return data_ ? static_cast<std::size_t>(extents_.size()) : 0;
  }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size(); }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr std::span<T> span() const { return {data_, size()}; }

  /// Row `i` of the first axis. Preconditions: the rank is at least 1, i is inside.
  constexpr tensor_view row(std::int64_t i) const {
    shape inner = extents_;
    inner.erase(0);
    return {data_ + i * inner.size(), inner};
  }

 private:
  T* data_{};
  shape extents_{};
};

namespace detail {
/// What a column holds: numbers. Labels that are words become numbers by `csv_table::labels`, or
/// by a map of your own; truth values are `std::uint8_t`, since vectors of bool have no array.
template <class T>
concept column_element = std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>;
}  // namespace detail

/// Values of one feature of all samples: extents [N, ...], row-major.
template <detail::column_element T>
class column {
 public:
  /// Throws `error` when the extents do not match the number of values.
  column(const shape& extents, std::vector<T> values)
      : extents_(extents), values_(std::move(values)) {
    if (extents_.rank == 0) throw error("column: a scalar has no samples; give extents [N, ...].");
    for (const std::int64_t e : extents_) {
      if (e < 0) throw error(text("column: the extents ") << extents_ << " are not all 0 or more.");
    }
    if (static_cast<std::uint64_t>(extents_.size()) != values_.size()) {
      throw error(text("column: the extents ")
                  << extents_ << " need " << extents_.size() << " values, but " << values_.size()
                  << " are given; mend one of them.");
    }
  }
  template <class U>
  requires(!std::is_same_v<U, T>)  //
      __attribute__((unavailable("the values are a std::vector of the column's type; convert them: "
                                 "std::vector<float>(x.begin(), x.end())")))  //
      column(const shape& extents, const std::vector<U>&)
      : extents_(extents) {}
  /// A column of scalars: extents [N].
  explicit column(std::vector<T> values)
      : extents_{static_cast<std::int64_t>(values.size())}, values_(std::move(values)) {}

  /// Number of samples.
  std::int64_t size() const { return extents_[0]; }
  const shape& extents() const { return extents_; }
  tensor_view<const T> view() const { return {values_.data(), extents_}; }
  tensor_view<T> view() { return {values_.data(), extents_}; }
  /// Extents of one sample.
  shape sample_shape() const {
    shape inner = extents_;
    inner.erase(0);
    return inner;
  }

 private:
  shape extents_;
  std::vector<T> values_;
};

/// Zeroed, 64-byte aligned memory for elements of one type.
template <class T>
class typed_buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  typed_buffer() = default;
  explicit typed_buffer(std::size_t count) : bytes_(count * sizeof(T)) {}
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }

 private:
  aligned_buffer bytes_;
};

}  // namespace cella::data
