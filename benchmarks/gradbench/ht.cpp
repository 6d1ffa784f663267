// ht: hand tracking. The distances of measured points from the skin of a posed hand, and their
// Jacobian by the pose.
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/vmap.hpp>
#include <cmath>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

constexpr int fingers = 5;
constexpr int pose_size = 26;  ///< rotation 3, translation 3, four angles for each finger
constexpr int moving = 3 * fingers;
constexpr int bones = 22;
constexpr int resting = bones - moving;       ///< wrist, first bones of the fingers, forearm
constexpr std::array<int, 3> bends{0, 2, 3};  ///< the angle by which a finger's moving bone bends

// Forward mode for several directions at once: what depends on the pose has an axis of lanes, one
// for each direction. The pose is the same in all of them, its tangents are not.
//
// An angle bends its own finger only. So four directions are enough for all angles, one for each
// angle of a finger, as long as the fingers are not added up.

/// Rotations [5,4,4,lanes] by angles [5,lanes]. `parts` [3,4,4]: what does not turn, what goes with
/// the cosine, and with the sine.
constexpr var turn(var parts, var angle) {
  const int lanes = angle.extent(1);
  const var a = reshape(angle, {fingers, 1, 1, lanes});
  auto part = [&](int i) { return reshape(slice(parts, 0, i, i + 1), {1, 4, 4, 1}); };
  return part(0) + part(1) * cos(a) + part(2) * sin(a);
}
/// (A M) transposed, from A transposed [5,4,3,lanes] and M [5,4,4,lanes].
constexpr var times(var a, var m) { return sum(expand_dims(m, 3) * expand_dims(a, 2), {1}); }

/// The model: `start` [5,4,3,1], the fingers' second bones before they turn, transposed; `links`
/// [2,5,4,4,1], from there to the next two; `still` [3,points], the skin that hangs on resting
/// bones; `skin` [3,20,points], the points that hang on each moving bone, weighted, in its own
/// coordinates; `parts` [2,3,4,4], see turn(), about x and z; `mirror` [1].
struct hand {
  var start, links, still, skin, parts, mirror;
};
constexpr var pick(var x, int i) {
  shape s = x.shape();
  s.erase(0);
  return reshape(slice(x, 0, i, i + 1), s);
}

/// Points of the skin from its three corners, one after the other along the last axis [3 points],
/// by barycentric coordinates u and v, each [points].
constexpr var between(var corners, var u, var v) {
  const int count = u.extent(0);
  auto corner = [&](int k) {
    return slice(corners, corners.rank() - 1, k * count, (k + 1) * count);
  };
  return u * corner(0) + v * corner(1) + (1 - u - v) * corner(2);
}

/// What hangs on the moving bones of each finger [5,3,lanes,points], for angles [5,4,lanes].
constexpr var on_fingers(const hand& h, var angles) {
  const int lanes = angles.extent(2);
  const int points = h.skin.extent(2);
  auto angle = [&](int k) { return reshape(slice(angles, 1, k, k + 1), {fingers, lanes}); };
  const auto hang = vmap([](var bone, var skin) { return tensor_dot(bone, skin, {0}, {0}); });
  const var about_x = pick(h.parts, 0);
  var bone = times(h.start, turn(pick(h.parts, 1), angle(1)));
  var all{};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) bone = times(bone, pick(h.links, i - 1));
    bone = times(bone, turn(about_x, angle(bends[std::size_t(i)])));
    const var hung = hang(bone, reshape(pick(h.skin, i), {fingers, 4, points}));
    all = i ? all + hung : hung;
  }
  return all;
}
/// The points of the posed skin, before the hand as a whole moves [1,3,1,points].
constexpr var posed(const hand& h, var on_each_finger) {
  const var moved = sum(slice(on_each_finger, 2, 0, 1), {0}, true);
  return moved + expand_dims(expand_dims(h.still, 1), 0);
}

/// Rows and columns of the rotation about `axis` by as many radians as it is long; see ba.cpp for
/// the little number.
constexpr std::array<std::array<var, 3>, 3> rotation(const std::array<var, 3>& axis) {
  const var square_angle = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2] + 1e-30;
  const var angle = sqrt(square_angle);
  const var c = cos(angle);
  const var s = sin(angle) / angle;
  const var k = (1 - c) / square_angle;
  std::array<std::array<var, 3>, 3> r;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const var both = axis[i] * axis[j] * k;
      const var turned = axis[3 - i - j < 3 ? 3 - i - j : 0] * s;
      r[i][j] = i == j ? both + c : (j + 3 - i) % 3 == 1 ? both - turned : both + turned;
    }
  }
  return r;
}

/// The three coordinates of the errors, each [n,1,lanes,points], for the skin [n,3,lanes,points] of
/// a hand that is turned and moved by a place [6,lanes].
constexpr std::array<var, 3> errors(var mirror, var measured, var place, var skin) {
  const int lanes = place.extent(1);
  auto row = [&](int i) { return reshape(slice(place, 0, i, i + 1), {lanes, 1}); };
  const auto r = rotation({row(0), row(1), row(2)});
  const var x = slice(skin, 1, 0, 1) * mirror;
  const var y = slice(skin, 1, 1, 2);
  const var z = slice(skin, 1, 2, 3);
  std::array<var, 3> e;
  for (int i = 0; i < 3; ++i) {
    const auto& q = r[std::size_t(i)];
    e[std::size_t(i)] =
        slice(measured, 0, i, i + 1) - (x * q[0] + y * q[1] + z * q[2]) - row(3 + i);
  }
  return e;
}
/// The same for points in triangles: skin that has all corners, and coordinates u and v [points].
constexpr hand in_triangles(hand h, var u, var v) {
  h.still = between(h.still, u, v);
  h.skin = between(h.skin, u, v);
  return h;
}

constexpr int place_size = 6;  ///< rotation and translation
constexpr int angle_count = 4;

/// A pose [1,26] as the hand's place [6,1] and the fingers' angles [5,4,1].
struct pose_parts {
  explicit constexpr pose_parts(var pose)
      : place(reshape(slice(pose, 1, 0, place_size), {place_size, 1})),
        angles(reshape(slice(pose, 1, place_size, pose_size), {fingers, angle_count, 1})) {}
  var place, angles;
};

/// `within` [2,points] holds u and v.
template <bool Triangles>
struct value_cell {
  constexpr auto operator()(var pose, var measured, var within, var start, var links, var still,
                            var skin, var parts, var mirror) const {
    hand h{start, links, still, skin, parts, mirror};
    if constexpr (Triangles) h = in_triangles(h, pick(within, 0), pick(within, 1));
    const pose_parts p(pose);
    return errors(mirror, measured, p.place, posed(h, on_fingers(h, p.angles)));
  }
};
/// By the hand's place in all directions, which are the rows of `identity` [6,6]; by the angles;
/// then by u and by v, of which each error has its own.
template <bool Triangles>
struct jacobian_cell {
  constexpr std::vector<var> operator()(var pose, var identity, var measured, var within, var start,
                                        var links, var still, var skin, var parts,
                                        var mirror) const {
    const hand model{start, links, still, skin, parts, mirror};
    const pose_parts p(pose);
    const var u = pick(within, 0);
    const var v = pick(within, 1);
    hand h = model;
    if constexpr (Triangles) h = in_triangles(model, u, v);

    const var rows = reshape(identity, {place_size, place_size});
    const var angle_rows = slice(slice(rows, 0, 0, angle_count), 1, 0, angle_count);
    const var directions = broadcast_to(angle_rows, {fingers, angle_count, angle_count});
    const auto [on_each, by_angles] = jvp([&](var angles) { return on_fingers(h, angles); },
                                          p.angles + zeros_like(directions), directions);
    const var all = posed(h, on_each);

    std::vector<var> columns;
    const auto along = [&](auto f, var x, var dx) {
      for (var d : jvp(f, x, dx).second) columns.push_back(d);
    };
    along([&](var place) { return errors(mirror, measured, place, all); },
          p.place + zeros_like(rows), rows);
    along([&](var moved) { return errors(mirror, measured, p.place, moved); },
          all + zeros_like(by_angles), by_angles);
    if constexpr (Triangles) {
      const auto by = [&](var a, var b) {
        const hand moved = in_triangles(model, a, b);
        return errors(mirror, measured, p.place, posed(moved, on_fingers(moved, p.angles)));
      };
      along([&](var x) { return by(x, v); }, u, ones_like(u));
      along([&](var x) { return by(u, x); }, v, ones_like(v));
    }
    return columns;
  }
};

using matrix = std::array<std::array<double, 4>, 4>;

matrix operator*(const matrix& a, const matrix& b) {
  matrix c{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 4; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

/// The suite's input. What depends on the model alone is worked out here, once.
struct problem {
  explicit problem(const json& j) : theta(j.at("theta")), us(flat(j.at("us"))) {
    const json& model = j.at("data").at("model");
    const std::vector<matrix> relative = model.at("base_relatives");
    const std::vector<matrix> inverse = model.at("inverse_base_absolutes");
    if (int(relative.size()) != bones || int(theta.size()) != pose_size)
      throw error("ht: the hand has " + std::to_string(relative.size()) + " bones and " +
                  std::to_string(theta.size()) +
                  " pose parameters; this program knows hands of 22 "
                  "bones and 26 parameters");
    const std::vector<int> found = j.at("data").at("correspondences");
    count = int(found.size());
    mirror = model.at("is_mirrored").get<bool>() ? -1 : 1;
    const auto points = j.at("data").at("points").get<std::vector<std::array<double, 3>>>();
    for (std::size_t i = 0; i < 3; ++i) {
      for (const auto& p : points) measured.push_back(p[i]);
    }
    std::vector<int> vertices = found;
    if (in_triangles()) {
      const std::vector<std::array<int, 3>> triangles = model.at("triangles");
      vertices.clear();
      for (std::size_t k = 0; k < 3; ++k) {
        for (int t : found) vertices.push_back(triangles[std::size_t(t)][k]);
      }
      for (std::size_t k = 0; k < 2; ++k) {
        for (std::size_t i = 0; i < found.size(); ++i) within.push_back(us[2 * i + k]);
      }
    } else {
      within.assign(2 * found.size(), 0.0);
    }
    prepare(model, relative, inverse, vertices);
  }
  bool in_triangles() const { return !us.empty(); }

  numbers theta, us, measured, within, start, links, still, skin;
  numbers parts{                                                  // about x
                1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,   //
                0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,   //
                0, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 0,  //
                                                                  // about z
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,   //
                1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   //
                0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  double mirror = 1;
  int count = 0;

 private:
  void prepare(const json& model, const std::vector<matrix>& relative,
               const std::vector<matrix>& inverse, const std::vector<int>& vertices) {
    const std::vector<std::array<double, 4>> base = model.at("base_positions");
    const std::vector<std::array<double, bones>> weights = model.at("weights");
    const std::size_t columns = vertices.size();
    // Point v in the coordinates of bone b, weighted.
    auto hung = [&](std::size_t b, std::size_t v) {
      const auto at = std::size_t(vertices[v]);
      std::array<double, 4> p{};
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t k = 0; k < 4; ++k) p[i] += inverse[b][i][k] * base[at][k];
        p[i] *= weights[at][b];
      }
      return p;
    };
    still.assign(3 * columns, 0.0);
    auto rest = [&](std::size_t b, const matrix& absolute) {
      for (std::size_t v = 0; v < columns; ++v) {
        const auto p = hung(b, v);
        for (std::size_t i = 0; i < 3; ++i) {
          for (std::size_t k = 0; k < 4; ++k) still[i * columns + v] += absolute[i][k] * p[k];
        }
      }
    };
    rest(0, relative[0]);
    rest(bones - 1, relative[0] * relative[bones - 1]);
    links.assign(2 * fingers * 16, 0.0);
    skin.assign(3 * fingers * 4 * columns, 0.0);
    for (std::size_t f = 0; f < fingers; ++f) {
      const matrix root = relative[0] * relative[1 + 4 * f];
      rest(1 + 4 * f, root);
      const matrix second = root * relative[2 + 4 * f];
      for (std::size_t c = 0; c < 4; ++c) {
        for (std::size_t i = 0; i < 3; ++i) start.push_back(second[i][c]);
      }
      for (std::size_t l = 0; l < 3; ++l) {
        const std::size_t b = 2 + 4 * f + l;
        for (std::size_t i = 0; l > 0 && i < 16; ++i)
          links[((l - 1) * fingers + f) * 16 + i] = relative[b][i / 4][i % 4];
        for (std::size_t v = 0; v < columns; ++v) {
          const auto p = hung(b, v);
          for (std::size_t k = 0; k < 4; ++k)
            skin[((l * fingers + f) * 4 + k) * columns + v] = p[k];
        }
      }
    }
  }
};

template <class Cell, int Points, int Corners, class... Front>
using program_of =
    compiled<Cell, Front..., reals<3, Points>, reals<2, Points>, reals<fingers, 4, 3, 1>,
             reals<2, fingers, 4, 4, 1>, reals<3, Points * Corners>,
             reals<3, fingers * 4, Points * Corners>, reals<2, 3, 4, 4>, reals<1>>;

template <bool Triangles, int Points>
class value {
 public:
  explicit value(const problem& p) : p_(p) {}
  void operator()() {
    run_(p_.theta, p_.measured, p_.within, p_.start, p_.links, p_.still, p_.skin, p_.parts,
         std::span(&p_.mirror, 1));
  }
  /// Computed coordinate by coordinate; printed point by point.
  json result() const {
    const std::array e{run_.template result<0>(), run_.template result<1>(),
                       run_.template result<2>()};
    numbers all;
    for (std::size_t i = 0; i < Points; ++i) {
      for (std::size_t k = 0; k < 3; ++k) all.push_back(e[k][i]);
    }
    return all;
  }

 private:
  const problem& p_;
  program_of<value_cell<Triangles>, Points, Triangles ? 3 : 1, reals<1, pose_size>> run_;
};

template <bool Triangles, int Points>
class derivative {
 public:
  explicit derivative(const problem& p) : p_(p) {
    for (std::size_t i = 0; i < place_size; ++i) identity_[i * place_size + i] = 1;
  }
  void operator()() {
    run_(p_.theta, identity_, p_.measured, p_.within, p_.start, p_.links, p_.still, p_.skin,
         p_.parts, std::span(&p_.mirror, 1));
  }
  /// Computed coordinate by coordinate, column by column; printed row by row.
  json result() const {
    json all = json::array();
    for (std::size_t i = 0; i < 3 * Points; ++i) {
      numbers row;
      // In the suite's order the coordinates in triangles come first.
      if constexpr (Triangles) {
        append<6>(row, i, 1);
        append<9>(row, i, 1);
      }
      append<0>(row, i, place_size);
      append<3>(row, i, fingers * angle_count);
      all.push_back(row);
    }
    return all;
  }

 private:
  /// Puts the `count` derivatives of number `i` that results K to K + 2 hold behind `row`.
  template <int K>
  void append(numbers& row, std::size_t i, int count) const {
    const std::array e{run_.template result<K>(), run_.template result<K + 1>(),
                       run_.template result<K + 2>()};
    for (std::size_t c = 0; c < std::size_t(count); ++c)
      row.push_back(e[i % 3][c * Points + i / 3]);
  }
  const problem& p_;
  numbers identity_ = numbers(std::size_t(place_size * place_size), 0.0);
  program_of<jacobian_cell<Triangles>, Points, Triangles ? 3 : 1, reals<1, pose_size>,
             reals<1, place_size * place_size>>
      run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const problem p(e.input);
    e.with_sizes<ht_sizes>(std::array{p.count}, [&]<int Points>() {
      if (p.in_triangles()) {
        e.function<value<true, Points>>("objective", p);
        e.function<derivative<true, Points>>("jacobian", p);
      } else {
        e.function<value<false, Points>>("objective", p);
        e.function<derivative<false, Points>>("jacobian", p);
      }
    });
  });
}
