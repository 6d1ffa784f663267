// The growable array of everything that runs in constant evaluation. It offers the part of
// std::vector that the library needs. Compilers evaluate each call by itself: std::vector takes a
// dozen calls for one `push_back` and an iterator object for each loop, so g++ needs three times
// the time and memory for the same work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cella {

template <class T>
class list {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr list() = default;
  constexpr explicit list(std::size_t size) { resize(size); }
  constexpr list(std::size_t size, const T& value) { resize(size, value); }
  constexpr list(std::initializer_list<T> values) { append(values.begin(), values.size()); }
  /// The elements of [first, last).
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) constexpr list(Iterator first, Iterator last) {
    assign(first, last);
  }

  constexpr list(const list& other) { append(other.data_, other.size_); }
  constexpr list(list&& other) noexcept { swap(other); }
  constexpr list& operator=(const list& other) {
    if (this == &other) return *this;
    clear();
    append(other.data_, other.size_);
    return *this;
  }
  constexpr list& operator=(list&& other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~list() {
    clear();
    deallocate();
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr const T* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& front() { return data_[0]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr const T& back() const { return data_[size_ - 1]; }

  // Values may be elements of this list; ranges may not be parts of it.

  constexpr void push_back(const T& value) {
    if (size_ == capacity_) {
      T copy(value);
      grow();
      put(data_ + size_++, std::move(copy));
    } else if constexpr (trivial) {
      data_[size_++] = value;
    } else {
      put(data_ + size_++, value);
    }
  }
  constexpr void push_back(T&& value) {
    if (size_ == capacity_) {
      T moved(std::move(value));
      grow();
      put(data_ + size_++, std::move(moved));
    } else if constexpr (trivial) {
      data_[size_++] = value;
    } else {
      put(data_ + size_++, std::move(value));
    }
  }
  template <class... Arguments>
  constexpr T& emplace_back(Arguments&&... arguments) {
    push_back(T(std::forward<Arguments>(arguments)...));
    return back();
  }
  constexpr void pop_back() { shrink(size_ - 1); }

  constexpr void reserve(std::size_t size) {
    if (size > capacity_) reallocate(size);
  }
  constexpr void resize(std::size_t size) {
    shrink(size);
    reserve(size);
    while (size_ < size) put(data_ + size_++, T());
  }
  constexpr void resize(std::size_t size, T value) {
    shrink(size);
    reserve(size);
    if constexpr (trivial)
      while (size_ < size) data_[size_++] = value;
    else
      while (size_ < size) put(data_ + size_++, value);
  }
  constexpr void clear() { shrink(0); }
  constexpr void assign(std::size_t size, T value) {
    clear();
    resize(size, value);
  }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) constexpr void assign(Iterator first, Iterator last) {
    clear();
    insert(end(), first, last);
  }

  /// Puts `value` in front of `at`.
  constexpr T* insert(const T* at, T value) { return insert(at, &value, &value + 1); }
  /// Puts [first, last) in front of `at`.
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) constexpr T* insert(const T* at, Iterator first,
                                                              Iterator last) {
    const std::size_t place = std::size_t(at - data_);
    const std::size_t behind = size_ - place;
    if constexpr (std::is_pointer_v<Iterator>)
      append(first, std::size_t(last - first));
    else
      for (; first != last; ++first) push_back(*first);
    rotate(place, behind);
    return data_ + place;
  }
  constexpr T* erase(const T* at) { return erase(at, at + 1); }
  constexpr T* erase(const T* first, const T* last) {
    T* const from = data_ + (first - data_);
    if (first == last) return from;
    T* to = from;
    for (T* x = data_ + (last - data_); x != end(); ++x) *to++ = std::move(*x);
    shrink(std::size_t(to - data_));
    return from;
  }

  constexpr operator std::vector<T>() const { return {begin(), end()}; }

  constexpr void swap(list& other) noexcept {
    T* const data = data_;
    const std::size_t size = size_, capacity = capacity_;
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
    other.data_ = data, other.size_ = size, other.capacity_ = capacity;
  }

  friend constexpr bool operator==(const list& a, const list& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  template <class Value>
  constexpr void append(const Value* values, std::size_t count) {
    if (size_ + count > capacity_) reallocate(std::max(size_ + count, 2 * capacity_));
    if constexpr (trivial && std::is_same_v<T, Value>) {
      T* const to = data_ + size_;
      for (std::size_t i = 0; i < count; ++i) to[i] = values[i];
      size_ += count;
    } else {
      for (std::size_t i = 0; i < count; ++i) put(data_ + size_++, values[i]);
    }
  }
  constexpr void grow() { reallocate(capacity_ ? 2 * capacity_ : 8); }
  constexpr void reallocate(std::size_t capacity) {
    T* const data = allocate(capacity);
    if constexpr (trivial) {
      for (std::size_t i = 0; i < size_; ++i) data[i] = data_[i];
    } else {
      for (std::size_t i = 0; i < size_; ++i) {
        put(data + i, std::move(data_[i]));
        if constexpr (!std::is_trivially_destructible_v<T>) std::destroy_at(data_ + i);
      }
    }
    deallocate();
    data_ = data;
    capacity_ = capacity;
  }

  // Elements without constructors are assigned to arrays of them: to construct one is three calls
  // more, each of which the compiler evaluates.
  static constexpr bool trivial = std::is_trivial_v<T>;
  static constexpr T* allocate(std::size_t capacity) {
    if constexpr (trivial)
      return new T[capacity];
    else
      return std::allocator<T>().allocate(capacity);
  }
  constexpr void deallocate() {
    if (capacity_ == 0) return;
    if constexpr (trivial)
      delete[] data_;
    else
      std::allocator<T>().deallocate(data_, capacity_);
  }
  template <class Value>
  static constexpr void put(T* at, Value&& value) {
    if constexpr (trivial)
      *at = value;
    else
      std::construct_at(at, std::forward<Value>(value));
  }
  constexpr void shrink(std::size_t size) {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      while (size_ > size) std::destroy_at(data_ + --size_);
    } else if (size_ > size) {
      size_ = size;
    }
  }
  /// Exchanges the `behind` elements from `place` on with those behind them.
  constexpr void rotate(std::size_t place, std::size_t behind) {
    if (behind == 0) return;
    list tail(data_ + place, data_ + place + behind);
    for (std::size_t i = place; i + behind < size_; ++i) data_[i] = std::move(data_[i + behind]);
    for (std::size_t i = 0; i < behind; ++i) data_[size_ - behind + i] = std::move(tail[i]);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

template <class T>
constexpr bool contains(const list<T>& values, const T& value) {
  for (const T& x : values) {
    if (x == value) return true;
  }
  return false;
}

/// Takes away the elements for which `drop` is true and returns how many there were.
template <class T, class F>
constexpr std::size_t erase_if(list<T>& values, F drop) {
  T* to = values.begin();
  for (T& x : values) {
    if (drop(std::as_const(x))) continue;
    if (to != &x) *to = std::move(x);
    ++to;
  }
  const std::size_t dropped = std::size_t(values.end() - to);
  values.erase(to, values.end());
  return dropped;
}

}  // namespace cella
