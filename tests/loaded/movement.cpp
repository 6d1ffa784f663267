// What cuts, joins, pads and repeats tensors, which is moved in boxes, beside the interpreter.
#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/graph/random.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/passes/pass.hpp>
#include <random>
#include <vector>

#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Element i of operand k: a number of its own.
valued_tensor numbered(const tensor_type& t, int k) {
  valued_tensor x{t, {}};
  for (std::int64_t i = 0; i < t.size(); ++i)
    x.values.push_back(t.element == dtype::boolean ? double((i + k) % 3 == 0)
                                                   : double((i + 1 + 7 * k) % 120));
  return x;
}

struct movement_result {
  int wrong = 0;  ///< elements that differ from the interpreter's
  int boxes = 0;  ///< steps that move one
  int others = 0;
};
movement_result run(const vars_function& f, const std::vector<tensor_type>& types,
                    dtype element = dtype::f32) {
  std::vector<valued_tensor> in;
  for (const tensor_type& t : types) in.push_back(numbered(t, int(in.size())));
  const traced_function traced(f, types);
  const auto expected = traced(in);
  movement_result r;
  for (int threads : {1, 2}) {
    const auto found = run_planned(traced.b.g, in, threads, element);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      for (std::size_t i = 0; i < found[k].values.size(); ++i)
        r.wrong += found[k].values[i] != expected[k].values[i];
    }
  }
  const graph g = optimize(traced.b.g);
  const planner<cpu::loaded_planning> p(g, {element});
  for (const plan_step& s : p.result().steps) ++(s.kind == step_kind::move ? r.boxes : r.others);
  return r;
}

/// A random movement of `x`, which keeps tensors small.
var moved_somehow(var x, std::mt19937& random) {
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  const int axis = below(x.rank()), n = x.extent(axis);
  switch (below(8)) {
    case 0:
      return concat({x, x}, axis);
    case 1: {
      const int first = below(n), last = first + 1 + below(n - first);
      return slice(x, axis, first, last);
    }
    case 2:
      return n < 2 ? x : slice(x, axis, below(2), n, 2);
    case 3:
      return reverse(x, axis);
    case 4: {
      std::vector<int> before(std::size_t(x.rank())), after = before;
      for (int& k : before) k = below(3);
      for (int& k : after) k = below(2);
      return pad(x, before, after);
    }
    case 5:
      return x.rank() < 5 ? expand_dims(x, axis) : x;
    case 6: {
      if (x.rank() > 4) return x;
      shape wide = x.shape();
      wide.insert(0, 1 + below(3));
      return broadcast_to(x, wide);
    }
    default:
      return n < 2 ? x : concat({slice(x, axis, n / 2, n), x, slice(x, axis, 0, n / 2)}, axis);
  }
}

}  // namespace

TEST_CASE("several movements are one: each element is copied once") {
  const tensor_type matrix{dtype::f32, {19, 37}}, image{dtype::f32, {2, 3, 9, 11}};
  const auto check = [](const movement_result& r, int boxes) {
    CHECK(r.wrong == 0);
    CHECK(r.boxes == boxes);
    CHECK(r.others == 0);
  };
  check(run([](const vars& x) { return vars{roll(x[0], 3, 1)}; }, {matrix}), 2);
  check(run([](const vars& x) { return vars{pad(x[0], {2, 1}, {0, 3})}; }, {matrix}), 4);
  check(run([](const vars& x) { return vars{stack({x[0], x[1]}, 1)}; }, {matrix, matrix}), 2);
  check(run([](const vars& x) { return vars{reverse(x[0], {0, 1})}; }, {matrix}), 1);
  const auto two = [](int k) { return std::vector{0, 0, k, k}; };
  check(run([&](const vars& x) { return vars{pad_reflect(x[0], two(2), two(1))}; }, {image}), 9);
  check(run([&](const vars& x) { return vars{pad_replicate(x[0], two(2), two(1))}; }, {image}), 9);
  check(run([&](const vars& x) { return vars{pad_wrap(x[0], two(2), two(1))}; }, {image}), 9);
}

TEST_CASE("elements of any type are moved") {
  for (dtype t :
       {dtype::boolean, dtype::i8, dtype::u16, dtype::f16, dtype::i32, dtype::i64, dtype::f64}) {
    CAPTURE(name(t));
    const movement_result r = run(
        [](const vars& x) {
          return vars{concat({reverse(x[0], 1), x[1], slice(x[0], 1, 1, 4)}, 1)};
        },
        {{t, {3, 5}}, {t, {3, 2}}});
    CHECK(r.wrong == 0);
    CHECK(r.boxes == 3);
  }
}

TEST_CASE("what others read, too, is computed once, and boxes of what is computed are read there") {
  const tensor_type t{dtype::f32, {6, 8}};
  const movement_result shared = run(
      [](const vars& x) {
        const var both = concat({x[0], x[1]}, 0), twice = concat({both, both}, 1);
        return vars{twice, sum(both, {0}), pad(exp(x[0]) * 0 + x[1], {1, 1}, {1, 1})};
      },
      {t, t});
  CHECK(shared.wrong == 0);
  CHECK(shared.boxes > 0);
}

TEST_CASE("slices and repeated tensors that are results are moved as boxes; others are read so") {
  const tensor_type matrix{dtype::f32, {40, 50}};
  const auto part = [](const vars& x) { return slice(x[0], 1, 3, 47); };
  const movement_result alone = run([&](const vars& x) { return vars{part(x)}; }, {matrix});
  CHECK(alone.wrong == 0);
  CHECK(alone.boxes == 1);
  CHECK(alone.others == 0);
  const movement_result repeated = run(
      [](const vars& x) {
        return vars{broadcast_to(x[0], {40, 50}), broadcast_to(x[1], {40, 50})};
      },
      {{dtype::f32, {50}}, {dtype::f32, {40, 1}}});
  CHECK(repeated.wrong == 0);
  CHECK(repeated.boxes == 2);
  CHECK(repeated.others == 0);
  const movement_result read = run([&](const vars& x) { return vars{-part(x)}; }, {matrix});
  CHECK(read.wrong == 0);
  CHECK(read.boxes == 0);
  CHECK(read.others == 1);
}

TEST_CASE("elements are put in order in one step, unless others read where they lie") {
  const auto check = [](int steps, const vars_function& f, const tensor_type& t, dtype element) {
    CAPTURE(t);
    const movement_result r = run(f, {t}, element);
    CHECK(r.wrong == 0);
    CHECK(r.others == steps);
  };
  for (const shape s : {shape{7, 20}, shape{3, 300}, shape{2, 20000}}) {
    for (const dtype t : {dtype::f32, dtype::f64, dtype::i32, dtype::i64}) {
      const dtype element = t == dtype::f64 ? t : dtype::f32;
      check(
          1, [](const vars& x) { return vars{sort(x[0], 1)}; }, {t, s}, element);
      check(
          1, [](const vars& x) { return vars{sort(x[0], 1, true)}; }, {t, s}, element);
      check(
          1, [](const vars& x) { return vars{sort(x[0], 0)}; }, {t, s}, element);
      check(
          1, [](const vars& x) { return vars{top_k(x[0], 5, 1).values}; }, {t, s}, element);
    }
  }
  const tensor_type square{dtype::f32, {12, 12}};
  const auto with_places = [](const vars& x) {
    const top_k_result best = top_k(x[0], 3);
    return vars{best.values, best.indices};
  };
  check(2, with_places, square, dtype::f32);
  const auto across = [](const vars& x) {
    return vars{gather_elements(x[0], argsort(x[0], 0), 1)};
  };
  check(2, across, square, dtype::f32);
}

TEST_CASE("random movements agree with the interpreter") {
  std::mt19937 random(11);
  int boxes = 0;
  for (int trial = 0; trial < 150; ++trial) {
    CAPTURE(trial);
    const unsigned seed = unsigned(random());
    const auto f = [&](const vars& x) {
      std::mt19937 choices(seed);
      list<var> parts(x.begin(), x.end());
      for (int k = 0; k < 5; ++k) {
        var& p = parts[choices() % parts.size()];
        const var y = moved_somehow(p, choices);
        if (y.shape().size() <= 4000) choices() % 3 == 0 ? parts.push_back(y) : void(p = y);
      }
      return parts;
    };
    const movement_result r = run(f, {{dtype::f32, {4, 5}}, {dtype::f32, {2, 3, 4}}});
    CHECK(r.wrong == 0);
    boxes += r.boxes;
  }
  CHECK(boxes > 300);
}
