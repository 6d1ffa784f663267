// ba: bundle adjustment. The reprojection errors of observations of points by cameras, and their
// sparse Jacobian.
#include <algorithm>
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/gradient.hpp>
#include <span>

#include "suite.hpp"

using namespace cella;
using namespace gradbench;

namespace {

constexpr int camera_size =
    11;  ///< rotation 3, center 3, focal length, principal point 2, radial 2
constexpr int unknowns = camera_size + 3 + 1;  ///< of one observation: camera, point, weight
constexpr int rows_of_block = unknowns + 2;    ///< and the measured feature
/// Observations that one call computes together, side by side: each quantity is a row [1,block].
constexpr int block = 128;

using vector3 = std::array<var, 3>;

constexpr vector3 cross(const vector3& a, const vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
constexpr var dot(const vector3& a, const vector3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// x rotated about `axis` by as many radians as it is long (Rodrigues' formula). The little number
/// is lost in the square of any angle that matters; for none at all it leaves x + axis x x, and
/// keeps the derivatives finite.
constexpr vector3 rotate(const vector3& axis, const vector3& x) {
  const var square_angle = dot(axis, axis) + 1e-30;
  const var angle = sqrt(square_angle);
  const var c = cos(angle);
  const var s = sin(angle) / angle;
  const var along = dot(axis, x) * ((1 - c) / square_angle);
  const vector3 turned = cross(axis, x);
  vector3 y;
  for (std::size_t i = 0; i < 3; ++i) y[i] = x[i] * c + turned[i] * s + axis[i] * along;
  return y;
}

/// The two errors of each observation, from the rows of a block.
constexpr std::array<var, 2> errors(const std::vector<var>& row) {
  const vector3 x{row[11] - row[3], row[12] - row[4], row[13] - row[5]};
  const vector3 seen = rotate({row[0], row[1], row[2]}, x);
  const var u = seen[0] / seen[2];
  const var v = seen[1] / seen[2];
  const var r = u * u + v * v;
  const var scale = row[6] * (1 + row[9] * r + row[10] * r * r);
  const var weight = row[14];
  return {weight * (u * scale + row[7] - row[15]), weight * (v * scale + row[8] - row[16])};
}
constexpr var weight_error(const std::vector<var>& row) { return 1 - row[14] * row[14]; }

/// A block has a row for each quantity; as an argument they stand one after the other.
constexpr std::vector<var> rows(var data) { return split(data, rows_of_block, 1); }

struct value_cell {
  constexpr std::array<var, 3> operator()(var data) const {
    const auto row = rows(data);
    const auto [u, v] = errors(row);
    return {u, v, weight_error(row)};
  }
};
/// The derivatives of both errors by each unknown, then that of the weight's error. Observations do
/// not share unknowns here, so the gradient of a sum over them holds each one's derivative.
struct jacobian_cell {
  constexpr std::vector<var> operator()(var data) const {
    const auto row = rows(data);
    const std::span wrt(row.data(), std::size_t(unknowns));
    std::vector<var> all;
    for (var e : errors(row)) {
      for (var d : gradients(sum(e), wrt)) all.push_back(d);
    }
    all.push_back(gradients(sum(weight_error(row)), wrt.last(1))[0]);
    return all;
  }
};

/// The suite's input: one camera, point, weight and feature, repeated.
struct problem {
  explicit problem(const json& j) : n(j.at("n")), m(j.at("m")), p(j.at("p")) {
    const numbers camera = j.at("cam"), point = j.at("x"), feature = j.at("feat");
    for (int i = 0; i < n; ++i) cameras.insert(cameras.end(), camera.begin(), camera.end());
    for (int i = 0; i < m; ++i) points.insert(points.end(), point.begin(), point.end());
    for (int i = 0; i < p; ++i) features.insert(features.end(), feature.begin(), feature.end());
    weights.assign(std::size_t(p), j.at("w"));
    for (int i = 0; i < p; ++i) observations.push_back({i % n, i % m});
  }
  int n, m, p;
  numbers cameras, points, weights, features;
  std::vector<std::array<int, 2>> observations;  ///< camera, point
};

/// A program on blocks of observations.
template <class Cell>
class by_blocks {
 public:
  explicit by_blocks(const problem& p) : p_(p) {}
  /// Calls f(first observation, count) after each block.
  template <class F>
  void for_each(F f) {
    for (int first = 0; first < p_.p; first += block) {
      const int count = std::min(block, p_.p - first);
      // A block that is not full repeats its last observation.
      for (int i = 0; i < block; ++i) fill(i, first + std::min(i, count - 1));
      run_(data_.data());
      f(first, count);
    }
  }
  template <int K>
  std::span<const double> result() const {
    return run_.template result<K>();
  }

 private:
  void fill(int place, int observation) {
    const auto [camera, point] = p_.observations[std::size_t(observation)];
    double* to = data_.data() + place;
    auto put = [&](const double* from, int count) {
      for (int i = 0; i < count; ++i, to += block) *to = from[i];
    };
    put(&p_.cameras[std::size_t(camera_size * camera)], camera_size);
    put(&p_.points[std::size_t(3 * point)], 3);
    put(&p_.weights[std::size_t(observation)], 1);
    put(&p_.features[std::size_t(2 * observation)], 2);
  }
  const problem& p_;
  numbers data_ = numbers(std::size_t(rows_of_block * block), 0.0);
  compiled<Cell, real<1, rows_of_block * block>> run_;
};

class value {
 public:
  explicit value(const problem& p) : p_(p), run_(p) {}
  void operator()() {
    errors_.resize(2 * std::size_t(p_.p));
    weight_errors_.resize(std::size_t(p_.p));
    run_.for_each([&](int first, int count) {
      const auto u = run_.result<0>(), v = run_.result<1>(), w = run_.result<2>();
      for (std::size_t i = 0; i < std::size_t(count); ++i) {
        const std::size_t at = std::size_t(first) + i;
        errors_[2 * at] = u[i];
        errors_[2 * at + 1] = v[i];
        weight_errors_[at] = w[i];
      }
    });
  }
  json result() const {
    return {{"reproj_error",
             {{"elements", {errors_[0], errors_[1]}}, {"repeated", weight_errors_.size()}}},
            {"w_err", {{"element", weight_errors_[0]}, {"repeated", weight_errors_.size()}}}};
  }

 private:
  const problem& p_;
  numbers errors_, weight_errors_;
  by_blocks<value_cell> run_;
};

/// The Jacobian in compressed rows: two for each observation, then one for each weight. Where its
/// entries stand does not depend on the values, and is worked out once.
class derivative {
 public:
  explicit derivative(const problem& p) : p_(p), run_(p) {
    const int of_points = camera_size * p.n;
    const int of_weights = of_points + 3 * p.m;
    for (int at = 0; at < p.p; ++at) {
      const auto [camera, point] = p.observations[std::size_t(at)];
      for (int row = 0; row < 2; ++row) {
        starts_.push_back(int(columns_.size()));
        for (int k = 0; k < camera_size; ++k) columns_.push_back(camera_size * camera + k);
        for (int k = 0; k < 3; ++k) columns_.push_back(of_points + 3 * point + k);
        columns_.push_back(of_weights + at);
      }
    }
    for (int at = 0; at < p.p; ++at) {
      starts_.push_back(int(columns_.size()));
      columns_.push_back(of_weights + at);
    }
    starts_.push_back(int(columns_.size()));
    values_.resize(columns_.size());
  }
  void operator()() {
    run_.for_each([&](int first, int count) { store(first, count); });
  }
  json result() const {
    return {{"rows", ends(starts_)}, {"cols", ends(columns_)}, {"vals", ends(values_)}};
  }

 private:
  void store(int first, int count) {
    constexpr std::size_t width = 2 * unknowns;
    std::array<const double*, width> from;
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      ((from[K] = run_.template result<int(K)>().data()), ...);
    }
    (std::make_index_sequence<width>{});
    double* to = &values_[width * std::size_t(first)];
    for (int i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < width; ++k) *to++ = from[k][i];
    }
    const auto by_weight = run_.result<int(width)>();
    std::copy_n(by_weight.begin(), count, &values_[width * std::size_t(p_.p) + std::size_t(first)]);
  }
  /// The first entries and the last: what the suite compares.
  template <class T>
  static std::vector<T> ends(const std::vector<T>& all) {
    std::vector<T> some(all.begin(), all.begin() + 2 * unknowns);
    some.push_back(all.back());
    return some;
  }
  const problem& p_;
  std::vector<int> starts_, columns_;
  numbers values_;
  by_blocks<jacobian_cell> run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const problem p(e.input);
    e.function<value>("objective", p);
    e.function<derivative>("jacobian", p);
  });
}
