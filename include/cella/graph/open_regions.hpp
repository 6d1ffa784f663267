// Which regions of a graph are being filled.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// Indices of the open regions, outermost first. The main region is always open.
///
/// What follows a native `if` is a region that continues the one round it (see
/// transform/branching.hpp), so that together they are one straight line.
class open_regions {
 public:
  constexpr open_regions() { open(0); }

  constexpr std::size_t depth() const { return regions_.size(); }
  constexpr int operator[](std::size_t level) const { return regions_[level]; }
  constexpr int innermost() const { return regions_.back(); }

  constexpr void open(int r) {
    regions_.push_back(r);
    continues_.push_back(0);
  }
  constexpr void open_continuation(int r) {
    regions_.push_back(r);
    continues_.push_back(1);
  }
  constexpr void close() {
    regions_.pop_back();
    continues_.pop_back();
  }

  /// The straight line that ends in the innermost region, from the region that belongs to a
  /// function.
  constexpr span<const int> line() const {
    std::size_t first = regions_.size() - 1;
    while (first > 0 && continues_[first]) --first;
    return span(regions_).subspan(first);
  }

  /// Sets the regions from level `depth` on aside: continuations, which `open_again` opens.
  constexpr list<int> set_aside(std::size_t depth) {
    const auto first = regions_.begin() + std::ptrdiff_t(depth);
    const list<int> aside(first, regions_.end());
    regions_.erase(first, regions_.end());
    continues_.resize(depth);
    return aside;
  }
  constexpr void open_again(span<const int> aside) {
    for (int r : aside) open_continuation(r);
  }

 private:
  list<int> regions_;
  flags continues_;  ///< parallel to regions_
};

}  // namespace cella
