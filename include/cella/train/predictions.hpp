// What a model answers: the net's outputs, one row per sample.
#pragma once

#include <cella/data/tensor.hpp>
#include <cella/train/metrics.hpp>
#include <span>
#include <vector>

namespace cella {

/// Outputs [rows, ...], row-major; an array-like itself.
template <class T>
class predictions {
 public:
  explicit predictions(const cella::shape& extents)
      : extents_(extents), values_(std::size_t(extents.size())) {}

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  const cella::shape& shape() const { return extents_; }
  std::int64_t rows() const { return extents_.rank ? extents_[0] : 1; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  T operator[](std::size_t i) const { return values_[i]; }
  std::span<const T> row(std::int64_t i) const {
    const std::size_t each = size() / std::size_t(rows());
    return {data() + std::size_t(i) * each, each};
  }

  /// The index of the largest output along the last axis, for each row of it.
  std::vector<std::int32_t> classes() const {
    std::vector<std::int32_t> all;
    const auto n = std::size_t(extents_.rank ? extents_[extents_.rank - 1] : 1);
    for (std::size_t i = 0; n && i + n <= size(); i += n) {
      all.push_back(std::int32_t(metrics::argmax(std::span<const T>(data() + i, n))));
    }
    return all;
  }

 private:
  cella::shape extents_;
  std::vector<T> values_;
};

}  // namespace cella
