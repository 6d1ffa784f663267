// ba: bundle adjustment. The reprojection errors of observations of points by cameras, and their
// sparse Jacobian.
#include <algorithm>
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <span>

#include "suite.hpp"

using namespace cella;
using namespace gradbench;

namespace {

constexpr int camera_size =
    11;  ///< rotation 3, center 3, focal length, principal point 2, radial 2
constexpr int unknowns = camera_size + 3 + 1;  ///< of one observation: camera, point, weight
constexpr int quantities = unknowns + 2;       ///< and the measured feature
constexpr int block = 128;                     ///< observations that one call computes
constexpr int side_by_side = 8;                ///< of them in the lanes

using vector3 = std::array<var, 3>;
using observation = std::array<var, std::size_t(quantities)>;

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

/// The two errors of each observation.
constexpr std::array<var, 2> errors(const observation& row) {
  const vector3 x{row[11] - row[3], row[12] - row[4], row[13] - row[5]};
  const vector3 seen = rotate({row[0], row[1], row[2]}, x);
  const var u = seen[0] / seen[2];
  const var v = seen[1] / seen[2];
  const var r = u * u + v * v;
  const var scale = row[6] * (1 + row[9] * r + row[10] * r * r);
  const var weight = row[14];
  return {weight * (u * scale + row[7] - row[15]), weight * (v * scale + row[8] - row[16])};
}
constexpr var weight_error(const observation& row) { return 1 - row[14] * row[14]; }

/// Calls f with the quantities of `side_by_side` observations, so few that all values of a body
/// stay in registers, for each such part of a block. A block has a row for each quantity; as an
/// argument they stand one after the other.
template <class F>
constexpr auto for_parts(F f, var data) {
  std::array<var, std::size_t(quantities)> rows;
  for (int k = 0; k < quantities; ++k)
    rows[std::size_t(k)] =
        reshape(slice(data, 1, k * block, (k + 1) * block), {block / side_by_side, side_by_side});
  return map(f, rows);
}

struct value_cell {
  constexpr auto operator()(var data) const {
    return for_parts(
        [](const observation& x) {
          const auto [u, v] = errors(x);
          return std::array{u, v, weight_error(x)};
        },
        data);
  }
};
/// The derivatives of both errors by each unknown, then that of the weight's error. Observations do
/// not share unknowns here, so the gradient of a sum over them holds each one's derivative.
struct jacobian_cell {
  constexpr auto operator()(var data) const {
    return for_parts(
        [](const observation& x) {
          const std::span wrt(x.data(), std::size_t(unknowns));
          std::array<var, std::size_t(2 * unknowns + 1)> all;
          auto to = all.begin();
          for (var e : errors(x)) to = std::ranges::copy(gradients(sum(e), wrt), to).out;
          *to = gradients(sum(weight_error(x)), wrt.last(1))[0];
          return all;
        },
        data);
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

/// A program on blocks of observations. Its `Results` results of each block lie side by side, those
/// of the observations of a block in the lanes: [blocks][Results][block].
template <class Cell, int Results>
class by_blocks {
 public:
  explicit by_blocks(const problem& p) : p_(p), values_(size(p)) {}
  void operator()() {
    for (int first = 0; first < p_.p; first += block) {
      // A block that is not full repeats the last observation.
      for (int i = 0; i < block; ++i) fill(i, std::min(first + i, p_.p - 1));
      bind(&values_[place(0, first)], std::make_integer_sequence<int, Results>{});
      run_(data_);
    }
  }
  double result(int k, int i) const { return values_[place(k, i)]; }

  static std::size_t size(const problem& p) { return place(0, (p.p + block - 1) / block * block); }
  /// Where result k of observation i lies.
  static std::size_t place(int k, int i) {
    return std::size_t(i / block * Results + k) * block + std::size_t(i % block);
  }

 private:
  template <int... K>
  void bind(double* to, std::integer_sequence<int, K...>) {
    (run_.template bind_unchecked<K>(to + K * block), ...);
  }
  /// Observation i, as a column of the argument.
  void fill(int column, int i) {
    const auto [camera, point] = p_.observations[std::size_t(i)];
    double* to = data_.data() + column;
    auto put = [&](const double* from, int count) {
      for (int k = 0; k < count; ++k, to += block) *to = from[k];
    };
    put(&p_.cameras[std::size_t(camera_size * camera)], camera_size);
    put(&p_.points[std::size_t(3 * point)], 3);
    put(&p_.weights[std::size_t(i)], 1);
    put(&p_.features[std::size_t(2 * i)], 2);
  }

  const problem& p_;
  numbers data_ = numbers(std::size_t(quantities * block), 0.0);
  numbers values_;
  Cell cell_;
  parameter_store none_{cell_, 0, dtype::f64};
  executable<with_bound_results<program<Cell, false, dtype::f64, reals<1, quantities * block>>>>
      run_{none_};
};

class value {
 public:
  explicit value(const problem& p) : count_(p.p), run_(p) {}
  void operator()() { run_(); }
  json result() const {
    return {{"reproj_error",
             {{"elements", {run_.result(0, 0), run_.result(1, 0)}}, {"repeated", count_}}},
            {"w_err", {{"element", run_.result(2, 0)}, {"repeated", count_}}}};
  }

 private:
  int count_;
  by_blocks<value_cell, 3> run_;
};

/// The Jacobian as a sparse matrix in slices (sliced ELLPACK): the entries of 128 observations side
/// by side, for each of them two rows, of its errors, and one of its weight's. Where the entries
/// stand does not depend on the values, and is worked out once.
class derivative {
  static constexpr int entries = 2 * unknowns + 1;  ///< of one observation
  using program = by_blocks<jacobian_cell, entries>;

 public:
  explicit derivative(const problem& p)
      : count_(p.p), run_(p), rows_(program::size(p), -1), columns_(program::size(p), -1) {
    const int of_points = camera_size * p.n;
    const int of_weights = of_points + 3 * p.m;
    for (int i = 0; i < p.p; ++i) {
      const auto [camera, point] = p.observations[std::size_t(i)];
      const auto put = [&](int entry, int row, int column) {
        rows_[program::place(entry, i)] = row;
        columns_[program::place(entry, i)] = column;
      };
      for (int e = 0; e < 2; ++e) {
        const int first = e * unknowns;
        for (int k = 0; k < camera_size; ++k) put(first + k, 2 * i + e, camera_size * camera + k);
        for (int k = 0; k < 3; ++k)
          put(first + camera_size + k, 2 * i + e, of_points + 3 * point + k);
        put(first + unknowns - 1, 2 * i + e, of_weights + i);
      }
      put(2 * unknowns, 2 * p.p + i, of_weights + i);
    }
  }
  void operator()() { run_(); }
  /// What the suite compares, of the matrix in compressed rows: the first 30 numbers and the last.
  json result() const {
    std::vector<int> starts, columns;
    numbers values;
    for (int k = 0; k < 2 * unknowns; ++k) {
      starts.push_back(unknowns * k);
      columns.push_back(columns_[program::place(k, 0)]);
      values.push_back(run_.result(k, 0));
    }
    starts.push_back(entries * count_);
    columns.push_back(columns_[program::place(entries - 1, count_ - 1)]);
    values.push_back(run_.result(entries - 1, count_ - 1));
    return {{"rows", starts}, {"cols", columns}, {"vals", values}};
  }

 private:
  int count_;
  program run_;
  std::vector<int> rows_, columns_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const problem p(e.input);
    e.function<value>("objective", p);
    e.function<derivative>("jacobian", p);
  });
}
