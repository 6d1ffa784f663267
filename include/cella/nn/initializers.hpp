// First values beside those of `initializer`: orthogonal and sparse matrices, identities, variances
// by the number of outputs; and the gains of activations. Each is a function that a user could have
// written: see initializer::custom.
#pragma once

#include <algorithm>
#include <cella/graph/parameter.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

namespace cella::initializers {

/// What `gain` keeps the variance behind a relu: sqrt(2).  He et al. 2015
inline constexpr double gain_relu = 1.41421356237309504880;
/// The same behind a tanh, as PyTorch has it.
inline constexpr double gain_tanh = 5.0 / 3;
/// The same behind a selu, as PyTorch has it.
inline constexpr double gain_selu = 0.75;

namespace detail {

/// The values as a matrix: the first axis, and all others.
struct matrix_extents {
  std::size_t rows, columns;
  explicit matrix_extents(const shape& s)
      : rows(s.rank ? std::size_t(s[0]) : 1),
        columns(std::size_t(s.size()) / std::max<std::size_t>(rows, 1)) {}
};
/// Filters read by one channel of the result, but for its own inputs.
inline double fan_out(const shape& s) {
  return std::max(1.0, double(s.rank ? s[0] : 1) * double(s.rank > 2 ? s.size(2, s.rank) : 1));
}

inline void fill_orthogonal(std::span<double> values, const shape& s, std::uint64_t key,
                            double gain, double) {
  const matrix_extents m(s);
  const bool wide = m.columns >= m.rows;  // then rows are orthogonal, else columns
  const std::size_t count = wide ? m.rows : m.columns, length = wide ? m.columns : m.rows;
  const std::size_t next = wide ? m.columns : 1, step = wide ? 1 : m.columns;
  generator random(key);
  const auto at = [&](std::size_t i, std::size_t k) -> double& {
    return values[i * next + k * step];
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < length; ++k) at(i, k) = random.normal<double>();
    // Twice, since once leaves what rounding has lost.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        double dot = 0;
        for (std::size_t k = 0; k < length; ++k) dot += at(i, k) * at(j, k);
        for (std::size_t k = 0; k < length; ++k) at(i, k) -= dot * at(j, k);
      }
      double square = 0;
      for (std::size_t k = 0; k < length; ++k) square += at(i, k) * at(i, k);
      for (std::size_t k = 0; k < length; ++k) at(i, k) /= std::sqrt(square);
    }
  }
  for (double& v : values) v *= gain;
}
inline void fill_identity(std::span<double> values, const shape& s, std::uint64_t, double gain,
                          double) {
  const matrix_extents m(s);
  for (std::size_t i = 0; i < std::min(m.rows, m.columns); ++i) values[i * m.columns + i] = gain;
}
inline void fill_dirac(std::span<double> values, const shape& s, std::uint64_t, double gain,
                       double groups) {
  const std::int64_t each = s.rank > 1 ? s.size(2, s.rank) : 1;  // elements of a filter
  std::int64_t middle = 0;
  for (int d = 2; d < s.rank; ++d) middle = middle * s[d] + s[d] / 2;
  const auto outputs = std::int64_t(s[0] / groups), inputs = std::int64_t(s[1]);
  for (std::int64_t g = 0; g < std::int64_t(groups); ++g) {
    for (std::int64_t c = 0; c < std::min(outputs, inputs); ++c)
      values[std::size_t(((g * outputs + c) * inputs + c) * each + middle)] = gain;
  }
}
inline void fill_sparse(std::span<double> values, const shape& s, std::uint64_t key, double zeros,
                        double deviation) {
  const matrix_extents m(s);
  generator random(key);
  for (double& v : values) v = deviation * random.normal<double>();
  const auto count = std::min(m.rows, std::size_t(std::ceil(zeros * double(m.rows))));
  std::vector<std::size_t> order(m.rows);
  for (std::size_t c = 0; c < m.columns; ++c) {
    for (std::size_t i = 0; i < m.rows; ++i) order[i] = i;
    for (std::size_t i = 0; i < count; ++i) {
      const auto j = i + std::size_t(random.uniform<double>() * double(m.rows - i));
      std::swap(order[i], order[j]);
      values[order[i] * m.columns + c] = 0;
    }
  }
}
inline void fill_fan_out_normal(std::span<double> values, const shape& s, std::uint64_t key,
                                double gain, double) {
  generator random(key);
  for (double& v : values) v = gain / std::sqrt(fan_out(s)) * random.normal<double>();
}
inline void fill_fan_out_uniform(std::span<double> values, const shape& s, std::uint64_t key,
                                 double gain, double) {
  generator random(key);
  const double bound = gain * std::sqrt(3 / fan_out(s));
  for (double& v : values) v = bound * (2 * random.uniform<double>() - 1);
}

}  // namespace detail

/// Rows, or columns if these are fewer, that are orthogonal and of length `gain`, evenly
/// distributed over all such matrices; filters are matrices [Out, all others].  Saxe et al. 2014
constexpr initializer orthogonal(double gain = 1) {
  return initializer::custom(&detail::fill_orthogonal, gain);
}
/// `gain` where row and column are equal, else 0.
constexpr initializer identity(double gain = 1) {
  return initializer::custom(&detail::fill_identity, gain);
}
/// Filters [Out,In,...] that hand channel c on to channel c, in each of the groups.
constexpr initializer dirac(int groups = 1, double gain = 1) {
  return initializer::custom(&detail::fill_dirac, gain, groups);
}
/// Normal numbers of which in each column the share `zeros` is 0.  Martens 2010
constexpr initializer sparse(double zeros, double deviation = 0.01) {
  return initializer::custom(&detail::fill_sparse, zeros, deviation);
}
/// Deviation 1 / sqrt(fan_in).  LeCun et al. 1998
constexpr initializer lecun_normal() { return initializer::he_normal(1 / gain_relu); }
/// Between -sqrt(3 / fan_in) and its opposite.
constexpr initializer lecun_uniform() { return initializer::he_uniform(1 / gain_relu); }
/// Deviation gain / sqrt(fan_out), which keeps the variance of gradients.  He et al. 2015
constexpr initializer he_fan_out_normal(double gain = gain_relu) {
  return initializer::custom(&detail::fill_fan_out_normal, gain);
}
/// Between -gain sqrt(3 / fan_out) and its opposite.
constexpr initializer he_fan_out_uniform(double gain = gain_relu) {
  return initializer::custom(&detail::fill_fan_out_uniform, gain);
}

}  // namespace cella::initializers
