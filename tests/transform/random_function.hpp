// Random small functions built of operations, branches and loops of every kind. A function is given
// by its seed: whoever runs it draws the same program, in eager mode as in graph mode.
#pragma once

#include <cella/graph/random.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/transform/recursion.hpp>

namespace cella::test {

/// A program over two vectors of three numbers, which stay moderate.
class random_function {
 public:
  using state = std::array<var, 2>;

  constexpr explicit random_function(std::uint64_t seed) : seed_(seed) {}

  constexpr var operator()(var x) const {
    const state s = block({x, sin(x)}, seed_, 0);
    return sum(s[0] * tanh(s[1]));
  }

 private:
  /// Blocks that may not run, or run often, get a seed of their own before.
  static constexpr state block(state s, std::uint64_t seed, int depth) {
    generator random(seed, 21);
    const int statements = depth == 0 ? 3 : 1 + int(random() % 2);
    for (int i = 0; i < statements; ++i) {
      const auto kind = random() % (depth < 2 ? 12 : 5);
      const auto first = seed * 31 + random() % 1000003;
      const double c = random.uniform(-0.5, 0.5);
      s = statement(s, int(kind), first, c, depth + 1);
    }
    return s;
  }

  static constexpr state statement(state s, int kind, std::uint64_t seed, double c, int depth) {
    const var x = s[0];
    const var y = s[1];
    auto inner = [&](state t, std::uint64_t offset) { return block(t, seed + offset, depth); };
    switch (kind) {
      case 0:
        return {tanh(x) * y + c, x};
      case 1:
        return {sin(x * y) + x, y};
      case 2:
        return {y, softmax(x) + c * y};
      case 3:
        return {matmul(outer(x, tanh(y)), sin(x)), x};
      case 4:
        return {x, exp(-square(y)) * sum(x)};
      case 5:
        return cond(
            sum(x) > c, [&] { return inner(s, 1); }, [&] { return inner(s, 2); });
      case 6:
        if (sum(x * y) > c) return inner(s, 1);
        return {sin(y), x};
      case 7: {
        const auto [last, ys] = scan(
            [&](state t, var slice) {
              const state n = inner({tanh(t[0] + slice), t[1]}, 1);
              return std::pair<state, var>{{tanh(n[0]), tanh(n[1])}, sum(n[0]) + slice * t[1]};
            },
            s, outer(x, y), {.reverse = seed % 2 == 0, .recompute = seed % 3 == 0});
        return {last[0], last[1] + sum(ys, {0})};
      }
      case 8: {
        const int bound = seed % 2 ? 0 : 4;
        const auto [last, count] = while_loop(
            [&](const state& t, var n) { return logical_and(n < 3, sum(square(t[0])) < 4); },
            [&](const state& t, var n) {
              const state m = inner({tanh(t[0]) * 1.5, t[1]}, 1);
              return std::pair<state, var>{{m[0] + x, tanh(m[1])}, n + 1};
            },
            std::pair<state, var>{s, constant(*x.b, 0, {dtype::i64, {}})}, {.max_steps = bound});
        return {tanh(last[0]), last[1]};
      }
      case 9:
        return for_i(
            2,
            [&](var i, const state& t) {
              const state m = inner(t, 1);
              return state{tanh(m[0]) + c * cast(i, dtype::f64), tanh(m[1]) * y};
            },
            s);
      case 10:
        return {checkpoint([&](var t) { return inner({t, y}, 1)[0] * sin(t); })(x), tanh(y)};
      default:
        return {recursive(
                    [&](auto self, var t, var n) -> var {
                      return cond(
                          n > 0.5, [&] { return tanh(self(t * y, n - 1)) + x; },
                          [&] {
                            return inner({t, y}, 1)[1] * c;
                          });
                    },
                    {dtype::f64, {3}}, x, constant(*x.b, 2, {dtype::f64, {}})),
                y};
    }
  }

  std::uint64_t seed_;
};

}  // namespace cella::test
