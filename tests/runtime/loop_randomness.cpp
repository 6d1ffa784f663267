// Random numbers in the bodies of loops, branches and recursions: fresh in each step, and the same
// in each way to run.
#include <algorithm>
#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cmath>
#include <set>

#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int rows = 12;
constexpr int width = 64;

/// Rows that are all different, of one result.
void check_fresh(const reals& all, std::size_t each) {
  REQUIRE(all.size() % each == 0);
  std::set<reals> seen;
  for (std::size_t i = 0; i < all.size(); i += each)
    seen.insert(reals(all.begin() + std::ptrdiff_t(i), all.begin() + std::ptrdiff_t(i + each)));
  CHECK(seen.size() == all.size() / each);
}
/// Of ones that are dropped at a rate of one quarter; within five standard deviations.
void check_dropped(const reals& all) {
  const auto zeros = double(std::count(all.begin(), all.end(), 0.0));
  const auto kept = std::count(all.begin(), all.end(), 1 / 0.75);
  CHECK(std::size_t(zeros) + std::size_t(kept) == all.size());
  const auto n = double(all.size());
  CHECK(std::abs(zeros - n / 4) < 5 * std::sqrt(n * 3 / 16));
}

struct in_scan {
  constexpr var operator()(var x) const {
    const auto body = [](var sum, var row) {
      const var y = dropout(row, 0.25);
      return std::tuple{sum + y, y};
    };
    return std::get<1>(scan(body, zeros(x, {width}), x));
  }
};
struct in_reverse_scan {
  constexpr var operator()(var x) const {
    const auto body = [](var sum, var row) { return std::tuple{sum, dropout(row, 0.25)}; };
    return std::get<1>(scan(body, number(x, 0), x, {.reverse = true}));
  }
};
struct in_map {
  constexpr var operator()(var x) const {
    return map([](var row) { return dropout(row, 0.25); }, x);
  }
};
struct in_vmap {
  constexpr var operator()(var x) const {
    return vmap([](var row) { return dropout(row, 0.25); })(x);
  }
};
struct in_nested_vmap {
  constexpr var operator()(var x) const {
    const auto inner = vmap([](var v) { return dropout(v, 0.25); });
    return vmap(inner)(reshape(x, {rows, 4, width / 4}));
  }
};
/// Each sample goes along a loop of its own.
struct scan_in_vmap {
  constexpr var operator()(var x) const {
    return vmap([](var sample) { return in_map{}(sample); })(reshape(x, {3, rows / 3, width}));
  }
};
struct vmap_in_scan {
  constexpr var operator()(var x) const {
    return map([](var sample) { return in_vmap{}(sample); }, reshape(x, {3, rows / 3, width}));
  }
};
struct in_nested_maps {
  constexpr var operator()(var x) const {
    const auto outer = [](var block) { return in_map{}(block); };
    return map(outer, reshape(x, {3, rows / 3, width}));
  }
};
/// Row i of the state is dropped in step i.
struct in_for_i {
  constexpr var operator()(var x) const {
    const auto body = [](var i, var all) {
      const var here = equal(iota(*all.b, {dtype::i64, {rows, width}}, 0), i);
      return select(here, dropout(all, 0.25), all);
    };
    return for_i(rows, body, x);
  }
};
struct in_while {
  constexpr var operator()(var x) const {
    const auto goes_on = [](var i, var) { return i < rows; };
    const auto body = [](var i, var all) {
      const var here = equal(iota(*all.b, all.type(), 0), i);
      return std::tuple{i + 1, select(here, dropout(all, 0.25), all)};
    };
    return std::get<1>(while_loop(goes_on, body, std::tuple{number(x, 0), x}));
  }
};
/// f(n, all) drops row n and calls itself for the rows in front.
struct in_recursion {
  constexpr var operator()(var x) const {
    const auto f = [](auto self, var n, var all) -> var {
      const var here = equal(iota(*all.b, all.type(), 0), n);
      const var y = select(here, dropout(all, 0.25), all);
      if (n > 0.5) return self(n - 1, y);
      return y;
    };
    return recursive(f, x.type(), number(x, rows - 1), x);
  }
};
/// A tree: each call calls itself twice, one level down, and drops the leaf's number.
struct in_a_tree {
  constexpr var operator()(var x) const {
    const auto f = [](auto self, var depth, var leaf, var all) -> var {
      if (depth > 0.5) return self(depth - 1, leaf * 2 + 1, self(depth - 1, leaf * 2, all));
      return select(equal(iota(*all.b, all.type(), 0), leaf), dropout(all, 0.25), all);
    };
    return recursive(f, x.type(), number(x, 3), number(x, 0), x);
  }
};
constexpr var drop_rows(var all, var n) {
  const var here = equal(iota(*all.b, all.type(), 0), n);
  const var y = select(here, dropout(all, 0.25), all);
  if (n > 0.5) return call<drop_rows>(y, n - 1);
  return y;
}
struct by_name {
  constexpr var operator()(var x) const { return call<drop_rows>(x, number(x, rows - 1)); }
};
/// Two functions in turn, of which one draws; it calls the other before that is known.
constexpr var drop_even(var all, var n);
constexpr var drop_odd(var all, var n) {
  return cond(
      n > 0.5, [&] { return call<drop_even>(all, n - 1); }, [&] { return all; });
}
constexpr var drop_even(var all, var n) {
  const var rest = call<drop_odd>(all, n - 1);
  return select(equal(iota(*all.b, all.type(), 0), floor(n / 2)), dropout(rest, 0.25), rest);
}
struct by_two_names {
  constexpr var operator()(var x) const { return call<drop_even>(x, number(x, 2 * rows - 2)); }
};
/// Each call of a function that does not call itself.
constexpr var drop(var x) { return dropout(x, 0.25); }
struct by_name_in_loops {
  constexpr var operator()(var x) const {
    const var half = slice(x, 0, 0, rows / 2);
    const var first = map([](var row) { return call<drop>(row); }, half);
    return concat({first, vmap([](var row) { return call<drop>(row); })(half)}, 0);
  }
};
/// A branch of either kind in the body of a loop.
struct in_branches {
  constexpr var operator()(var x) const {
    const auto body = [](var i, var row) {
      var y = row;
      if (i > 3)
        y = cond(
            i > 7, [row] { return dropout(row, 0.25); },
            [row] { return dropout(dropout(row, 0), 0.25); });
      else
        y = dropout(y, 0.25);
      return std::tuple{i + 1, y};
    };
    return std::get<1>(scan(body, number(x, 0), x));
  }
};

template <class Cell>
void check_masks() {
  const ways_of_cell<Cell, f64<rows, width>> run;
  const std::vector<reals> ones{reals(std::size_t(rows * width), 1.0)};
  const reals first = run.check(ones).results[0];
  check_fresh(first, std::size_t(width));
  check_dropped(first);
  // The next call draws others; the same seed draws the same.
  CHECK(run.check(ones, 2).results[0] != first);
  CHECK(run.check(ones).results[0] == first);
  CHECK(check_cell<Cell, f64<rows, width>>(ones, 1, 0, 8).results[0] != first);
}

}  // namespace

TEST_CASE_TEMPLATE("each step draws its own numbers, in eager mode as in programs", Cell, in_scan,
                   in_reverse_scan, in_map, in_for_i, in_while, in_branches) {
  check_masks<Cell>();
}
TEST_CASE_TEMPLATE("each step of nested loops draws its own numbers", Cell, in_nested_maps,
                   scan_in_vmap, vmap_in_scan) {
  check_masks<Cell>();
}
TEST_CASE_TEMPLATE("each sample of vmap draws its own numbers", Cell, in_vmap, in_nested_vmap) {
  check_masks<Cell>();
}
TEST_CASE("each level of a recursion draws its own numbers") { check_masks<in_recursion>(); }
TEST_CASE_TEMPLATE("each call of a function by name draws its own numbers", Cell, by_name,
                   by_two_names, by_name_in_loops) {
  check_masks<Cell>();
}
TEST_CASE("a function by name draws what the same function draws that is called by itself") {
  const std::vector<reals> ones{reals(std::size_t(rows * width), 1.0)};
  CHECK(check_cell<by_name, f64<rows, width>>(ones).results ==
        check_cell<in_recursion, f64<rows, width>>(ones).results);
}
TEST_CASE("each call of a branching recursion draws its own numbers") {
  // Eight leaves: the other rows stay.
  const ways_of_cell<in_a_tree, f64<8, width>> run;
  const reals all = run.check({reals(std::size_t(8 * width), 1.0)}).results[0];
  check_fresh(all, std::size_t(width));
  check_dropped(all);
}

namespace {

/// Two loops and draws before and behind them: none see the numbers of another.
struct around {
  constexpr std::array<var, 4> operator()(var x) const {
    const var before = dropout(x, 0.25);
    const var first = in_map{}(x);
    const var second = in_map{}(x);
    return {before, first, second, dropout(x, 0.25)};
  }
};
/// The numbers of a function that is drawn from more often behind a branch are the same whichever
/// way is taken.
struct behind_a_branch {
  constexpr var operator()(var x) const {
    const auto body = [](var row) {
      if (sum(row) > 0) return dropout(dropout(row, 0.25), 0.25);
      return row;
    };
    const var y = map(body, x);
    return dropout(x, 0.25) + 0 * y;
  }
};

}  // namespace

TEST_CASE("loops and what stands round them draw different numbers") {
  const ways_of_cell<around, f64<rows, width>> run;
  reals all;
  for (const reals& r : run.check({reals(std::size_t(rows * width), 1.0)}).results)
    all.insert(all.end(), r.begin(), r.end());
  check_fresh(all, std::size_t(width));
  check_dropped(all);
}
TEST_CASE("draws behind a branch do not depend on the way that was taken") {
  const ways_of_cell<behind_a_branch, f64<rows, width>> run;
  const reals up = run.check({reals(std::size_t(rows * width), 1.0)}).results[0];
  reals down = run.check({reals(std::size_t(rows * width), -1.0)}).results[0];
  for (double& v : down) v = -v;
  CHECK(up == down);
}

// ---- an LSTM

namespace {

/// Recurrent dropout: the hidden state is dropped in each step.
struct dropped_lstm {
  parameter<16, 4> ih{initializer::uniform(-0.5, 0.5)};
  parameter<16, 4> hh{initializer::uniform(-0.5, 0.5)};
  constexpr var run(var x) const {
    const auto step = [&](std::tuple<var, var> state, var input) {
      const var h = dropout(std::get<0>(state), 0.5);
      const auto gates = split(matmul(input, ih, false, true) + matmul(h, hh, false, true), 4, 1);
      const var c = sigmoid(gates[1]) * std::get<1>(state) + sigmoid(gates[0]) * tanh(gates[2]);
      return std::tuple{std::tuple{sigmoid(gates[3]) * tanh(c), c}, h};
    };
    const var zero = zeros(x, {2, 4});
    const auto [state, dropped] = scan(step, std::tuple{zero, zero}, x);
    return sum(square(std::get<0>(state))) + sum(dropped);
  }
  constexpr std::array<var, 2> operator()(var x) const {
    const var y = run(x);
    return {y, gradients(y, std::array{operand(hh).in(*x.b)})[0]};
  }
};

}  // namespace

TEST_CASE("dropout between the steps of an LSTM, whatever the threads") {
  const ways_of_cell<dropped_lstm, f64<6, 2, 4>> run;
  reals x;
  for (int i = 0; i < 48; ++i) x.push_back(std::cos(i));
  const auto one = run.check({x}, 2, 1e-12);
  thread_pool threads(3);
  const auto many = run.compiled({x}, 2, &threads);
  CHECK(one.results == many.results);
  CHECK(one.step == 2);
}
