// A view of elements in a row: the part of std::span that the library needs, for constant
// evaluation. Its iterators are pointers, so a loop over it costs the compiler a quarter of what a
// loop over std::span costs. Each converts to the other.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace cella {

template <class T>
class span {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr span() = default;
  constexpr span(T* data, std::size_t size) : data_(data), size_(size) {}
  constexpr span(T* first, T* last) : data_(first), size_(std::size_t(last - first)) {}
  template <std::size_t N>
  constexpr span(T (&elements)[N]) : data_(elements), size_(N) {}
  /// Any container with `data()` and `size()`, which must outlive the span.
  template <class Container>
  requires requires(Container& c) {
    static_cast<T*>(c.data());
    c.size();
  }
  constexpr span(Container&& elements) : data_(elements.data()), size_(elements.size()) {}

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() const { return data_; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  constexpr span first(std::size_t count) const { return {data_, count}; }
  constexpr span last(std::size_t count) const { return {data_ + size_ - count, count}; }
  constexpr span subspan(std::size_t from) const { return {data_ + from, size_ - from}; }
  constexpr span subspan(std::size_t from, std::size_t count) const {
    return {data_ + from, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class Container>
span(Container&) -> span<std::remove_pointer_t<decltype(std::declval<Container&>().data())>>;

}  // namespace cella

// A std::span can be made of a temporary one.
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<cella::span<T>> = true;
