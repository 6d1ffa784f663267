// A short list of axes, or of one number per axis.
#pragma once

#include <array>
#include <cella/graph/shape.hpp>
#include <cella/graph/span.hpp>
#include <concepts>
#include <cstddef>
#include <initializer_list>

namespace cella {

/// What a public function takes as `{0, 2}` in braces, or from a container when the numbers are
/// known at run time only. Entries beyond the eighth are counted but not kept: no tensor has so
/// many axes, so every function refuses them.
class axis_list {
 public:
  constexpr axis_list() = default;
  constexpr axis_list(std::initializer_list<int> axes)
      : axis_list(span<const int>(axes.begin(), axes.size())) {}
  template <class Container>
  requires std::convertible_to<const Container&, span<const int>>
  constexpr axis_list(const Container& axes) : axis_list(span<const int>(axes)) {}
  /// Of one axis as well: `sum(x, 1)` reads like a number beside x.
  template <std::same_as<int> Axis>
  __attribute__((unavailable("write axes in braces: {1}")))  //
  constexpr axis_list(Axis axis)
      : axis_list({axis}) {}
  constexpr axis_list(span<const int> axes) : size_(int(axes.size())) {
    for (std::size_t i = 0; i < values_.size() && i < axes.size(); ++i) values_[i] = axes[i];
  }

  constexpr int size() const { return size_; }
  constexpr int operator[](int i) const { return values_[std::size_t(i)]; }
  constexpr const int* begin() const { return values_.data(); }
  constexpr const int* end() const {
    return values_.data() + (size_ < max_rank ? size_ : max_rank);
  }

 private:
  std::array<int, max_rank> values_{};
  int size_{};
};

}  // namespace cella
