// The signs of vectors that are free: those of eigenvectors and singular vectors.
#pragma once

#include <cmath>

namespace cella::detail {

/// Whether the largest of n elements is negative: then such a vector changes its sign. Of elements
/// that differ by rounding only the first counts.
template <class Element>
bool has_negative_largest(int n, Element x) {
  int best = 0;
  for (int i = 1; i < n; ++i)
    if (std::abs(x(i)) > std::abs(x(best)) * (1 + 1e-12)) best = i;
  return x(best) < 0;
}

}  // namespace cella::detail
