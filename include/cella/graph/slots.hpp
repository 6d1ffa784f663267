// Room for a list whose length is not known yet, where the list is to be a constant.
#pragma once

#include <array>
#include <cella/graph/span.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cella::detail {

/// An array of fixed room whose unused places cost nothing to initialize.
template <class T, std::size_t Room>
struct slots {
  union slot {
    char unused;
    T value;
    constexpr slot() : unused{} {}
  };
  std::array<slot, Room> data{};
  std::int32_t size{};

  constexpr void push_back(const T& value) {
    if (std::size_t(size) < Room) std::construct_at(&data[std::size_t(size)].value, value);
    ++size;
  }
  /// Many numbers at once, without a call for each.
  constexpr void append(span<const T> values) {
    slot* const to = data.data() + size;
    const std::size_t count = values.size();
    size += std::int32_t(count);
    if (!fits()) return;
    for (std::size_t i = 0; i < count; ++i) to[i].value = values.data()[i];
  }
  constexpr bool fits() const { return std::size_t(size) <= Room; }
  template <std::size_t N>
  constexpr void copy_to(std::array<T, N>& to) const {
    T* const out = to.data();
    const slot* const in = data.data();
    for (std::size_t i = 0; i < N; ++i) out[i] = in[i].value;
  }
};

}  // namespace cella::detail
