// What tells a sequence its places: sinusoidal and learned positions, rotations, biases of scores.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/transform/trace.hpp>

namespace cella {

namespace detail {

/// places [T] and their frequencies base^(-2 i / width), i < width / 2 -> angles [T, width / 2].
constexpr var position_angles(var places, int width, double base) {
  builder& b = *places.b;
  const int half = width / 2;
  tensor_type row{places.element(), {1, half}};
  const var exponent = iota(b, row, 1) * (-2.0 / width);
  const var frequency = pow(full_like(exponent, base), exponent);
  return reshape(places, {places.extent(0), 1}) * frequency;
}

}  // namespace detail

/// Sines and cosines of places [T], floating-point numbers: [T,width], where elements 2 i and 2 i +
/// 1 are the sine and the cosine of place base^(-2 i / width). The width is even.
/// Vaswani et al. 2017, section 3.5
constexpr var sinusoidal_encoding(operand places, int width, double base = 1e4) {
  builder& b = *places.owner();
  const var p = places.in(b);
  if (p.rank() != 1 || width < 2 || width % 2) {
    b.fail(text() << places.at() << ": sinusoidal_encoding: needs places [T] and an even width: "
                  << b.describe(p.id) << " is " << p.shape() << ", the width is " << width);
    return p;
  }
  const var angles = detail::position_angles(p, width, base);
  return reshape(stack({sin(angles), cos(angles)}, 2), {p.extent(0), width});
}
/// The same of places 0 to `count` - 1, of the type of `like`.
constexpr var sinusoidal_positions(operand like, int count, int width, double base = 1e4) {
  builder& b = *like.owner();
  const var p = iota(b, {like.in(b).element(), {count}}, 0);
  return sinusoidal_encoding({p, like.at()}, width, base);
}

/// Where the two numbers lie that a rotation mixes.
enum class rotary_pairs : std::uint8_t {
  halves,     ///< i and i + D / 2, as in GPT-NeoX and Llama
  neighbours  ///< 2 i and 2 i + 1, as in the paper
};
/// Rotates pairs of the last axis of x [...,T,D], D even, by angles that grow with the place: pair
/// i by place base^(-2 i / D). So products of queries and keys depend on the distance of their
/// places only. `places` are T floating-point numbers.  Su et al. 2021
constexpr var rotary(operand x, operand places, double base = 1e4,
                     rotary_pairs pairs = rotary_pairs::halves) {
  builder& b = owner_of(x, places);
  const var v = x.in(b);
  const var p = places.in(b);
  if (v.rank() < 2 || v.extent(-1) % 2 || p.shape() != shape{v.extent(-2)} ||
      p.element() != v.element()) {
    b.fail(text() << x.at() << ": rotary: needs x [...,T,D] with an even D and places [T] of its "
                  << "type: " << b.describe(v.id) << " is " << v.type() << ", " << b.describe(p.id)
                  << " is " << p.type());
    return v;
  }
  const int width = v.extent(-1), half = width / 2;
  const var angle = detail::position_angles(p, width, base);
  const var c = cos(angle), s = sin(angle);
  if (pairs == rotary_pairs::halves) {
    const var first = slice(x, -1, 0, half), second = slice(x, -1, half, width);
    return concat({first * c - second * s, second * c + first * s}, -1);
  }
  const var first = slice(x, -1, 0, width, 2), second = slice(x, -1, 1, width, 2);
  return reshape(stack({first * c - second * s, second * c + first * s}, v.rank()), v.shape());
}
/// The same where the places are `first`, `first` + 1, ...
constexpr var rotary(operand x, double base = 1e4, rotary_pairs pairs = rotary_pairs::halves,
                     int first = 0) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const int count = v.rank() < 2 ? 1 : v.extent(-2);
  const var places = iota(b, {v.element(), {count}}, 0) + first;
  return rotary(x, {places, x.at()}, base, pairs);
}

/// Biases [heads,T,S] of scores: -slope |t + S - T - s|, the last query at the place of the last
/// key. The slopes are 2^(-8 (h + 1) / heads); the number of heads is a power of two.
/// Press et al. 2022 (ALiBi)
constexpr var alibi_bias(operand like, int heads, int queries, int keys) {
  builder& b = *like.owner();
  if (heads < 1 || (heads & (heads - 1))) {
    b.fail(text() << like.at() << ": alibi_bias: there are " << heads
                  << " heads; their number must be a power of two");
    return like.in(b);
  }
  tensor_type t{like.in(b).element(), {heads, queries, keys}};
  const var exponent = (iota(b, t, 0) + 1) * (-8.0 / heads);
  const var slope = pow(full_like(exponent, 2), exponent);
  return -slope * abs(iota(b, t, 1) - iota(b, t, 2) + (keys - queries));
}

namespace nn {

/// x + sinusoidal positions: [...,T,D] -> [...,T,D].
struct sinusoidal_position {
  double base = 1e4;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const int places = x.rank() < 2 ? 1 : x.extent(-2), width = x.rank() < 1 ? 0 : x.extent(-1);
    return x + operand(sinusoidal_positions({x, at}, places, width, base), at);
  }
};

/// x + learned positions: [...,T,Width] -> [...,T,Width] with T at most `Places`.
template <int Places, int Width>
struct learned_position {
  parameter<Places, Width> weight{initializer::normal(0, 0.02)};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (x.rank() < 2 || x.extent(-1) != Width || x.extent(-2) > Places) {
      x.b->fail(text() << at << ": learned_position: needs a sequence [...,T," << Width
                       << "] of at most " << Places << " places: " << x.b->describe(x.id) << " is "
                       << x.shape());
      return x;
    }
    const var all = operand(weight, at).in(*x.b);
    const int count = x.extent(-2);
    return x + (count == Places ? all : slice({all, at}, 0, 0, count));
  }
};

}  // namespace nn
}  // namespace cella
