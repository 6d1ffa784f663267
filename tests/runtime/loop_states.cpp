// States that the bodies of loops, branches and functions assign: afterwards they are what the same
// body leaves behind when its steps are written out.
#include <cella/graph/check.hpp>
#include <cella/nn/layers.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cmath>

#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr var slice_of(var xs, int i) { return detail::leading_slice(xs, i); }

constexpr int steps = 4;
using batches = f64<steps, 6, 3>;

reals inputs(std::size_t count) {
  reals x;
  for (std::size_t i = 0; i < count; ++i) x.push_back(std::sin(1.7 * double(i) + 0.3) * 2);
  return x;
}

// ---- batch norm in the body of a loop

struct in_scan {
  nn::batch_norm<3> norm;
  constexpr var run(var x) const {
    const auto body = [&](var h, var batch) {
      const var y = tanh(norm(batch + h));
      return std::tuple{h * 0.5 + y, sum(square(y))};
    };
    const auto [h, losses] = scan(body, slice_of(x, 0) * 0, x);
    return sum(h) + sum(losses);
  }
};
struct in_unrolled {
  nn::batch_norm<3> norm;
  constexpr var run(var x) const {
    var h = slice_of(x, 0) * 0;
    var total = number(x, 0);
    for (int i = 0; i < steps; ++i) {
      const var y = tanh(norm(slice_of(x, i) + h));
      h = h * 0.5 + y;
      total = total + sum(square(y));
    }
    return sum(h) + total;
  }
};
struct in_while {
  nn::batch_norm<3> norm;
  constexpr var run(var x) const {
    const auto goes_on = [](var i, var, var) { return i < steps; };
    const auto body = [&](var i, var h, var total) {
      const var here = equal(iota(*x.b, x.type(), 0), i);
      const var batch = sum(select(here, x, 0), {0});
      const var y = tanh(norm(batch + h));
      return std::tuple{i + 1, h * 0.5 + y, total + sum(square(y))};
    };
    const auto r =
        while_loop(goes_on, body, std::tuple{number(x, 0), slice_of(x, 0) * 0, number(x, 0)});
    return sum(std::get<1>(r)) + std::get<2>(r);
  }
};
struct in_checkpoints {
  nn::batch_norm<3> norm;
  constexpr var run(var x) const {
    const auto step = checkpoint([&](var h, var batch) { return tanh(norm(batch + h)); });
    const auto body = [&](var h, var batch) {
      const var y = step(h, batch);
      return std::tuple{h * 0.5 + y, sum(square(y))};
    };
    const auto [h, losses] = scan(body, slice_of(x, 0) * 0, x);
    return sum(h) + sum(losses);
  }
};

/// The value and the gradients by x and the layer's weight.
template <class Net>
struct with_gradients : Net {
  constexpr std::array<var, 3> operator()(var x) const {
    const var start = x * 1;
    const var y = this->run(start);
    const auto g = gradients(y, std::array{start, operand(this->norm.weight).in(*x.b)});
    return {y, g[0], g[1]};
  }
};

void check_close(const reals& found, const reals& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-10));
}

}  // namespace

TEST_CASE("running statistics by hand: each step starts from what the step before left") {
  // One channel of the first call: mean 0.9 m + 0.1 mean(x_t), four times, where h is not added.
  struct plain {
    nn::batch_norm<3> norm;
    constexpr var operator()(var x) const {
      return map([&](var batch) { return norm(batch); }, x);
    }
  };
  const reals x = inputs(72);
  const auto o = check_cell<plain, batches>({x}, 1, 1e-12);
  double mean = 0;
  double variance = 1;
  for (std::size_t t = 0; t < steps; ++t) {
    double sum = 0;
    double squares = 0;
    for (std::size_t n = 0; n < 6; ++n) {
      sum += x[t * 18 + n * 3];
      squares += x[t * 18 + n * 3] * x[t * 18 + n * 3];
    }
    mean = 0.9 * mean + 0.1 * sum / 6;
    variance = 0.9 * variance + 0.1 * (squares - sum * sum / 6) / 5;
  }
  // weight, bias, running_mean, running_var
  CHECK(o.parameters[6] == doctest::Approx(mean).epsilon(1e-12));
  CHECK(o.parameters[9] == doctest::Approx(variance).epsilon(1e-12));
}
TEST_CASE_TEMPLATE("running statistics after a loop are those of the steps written out", Net,
                   in_scan, in_while, in_checkpoints) {
  const reals x = inputs(72);
  const auto wanted = check_cell<with_gradients<in_unrolled>, batches>({x}, 2, 1e-10);
  const auto found = check_cell<with_gradients<Net>, batches>({x}, 2, 1e-10);
  check_close(found.parameters, wanted.parameters);
  REQUIRE(found.results.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) check_close(found.results[k], wanted.results[k]);
}

// ---- what else assigns

namespace {

struct read_after_assign : counter {
  constexpr std::array<var, 2> operator()(var x) const {
    set(x, value(x) * 2 + sum(x));
    const var first = value(x);
    set(x, value(x) * 2);
    return {first, value(x)};
  }
};
struct nested_loops : counter {
  constexpr var operator()(var x) const {
    const auto inner = [&](var i, var s) {
      set(x, value(x) * 1.5 + cast(i, dtype::f64));
      return s + value(x);
    };
    const auto outer = [&](var, var s) {
      const var before = value(x);
      return for_i(3, inner, s) + before;
    };
    const var y = for_i(2, outer, number(x, 0));
    return y + value(x);
  }
};
struct nested_loops_written_out : counter {
  constexpr var operator()(var x) const {
    var s = number(x, 0);
    for (int k = 0; k < 2; ++k) {
      const var before = value(x);
      for (int i = 0; i < 3; ++i) {
        set(x, value(x) * 1.5 + i);
        s = s + value(x);
      }
      s = s + before;
    }
    return s + value(x);
  }
};
/// The body sees the value that was read before the loop beside the one that changes.
struct value_before : counter {
  constexpr var operator()(var x) const {
    const var before = value(x);
    const auto body = [&](var, var s) {
      set(x, value(x) + before * 10);
      return s + value(x) + before;
    };
    return for_i(3, body, number(x, 0));
  }
};
/// The same of a state that only changes afterwards, in a loop of either kind and in a branch.
struct value_twice : counter {
  constexpr var operator()(var x) const {
    const var before = value(x);
    const auto body = [&](var, var s) { return s + value(x) + before * 10; };
    const var y = cond(
        before > 0, [&] { return for_i(3, body, number(x, 0)); }, [&] { return before; });
    const auto goes_on = [&](var s) { return s < value(x) * 99 + before; };
    const auto next = [&](var s) { return s + value(x) * 30 + before * 3; };
    const var z = while_loop(goes_on, next, y);
    set(x, z);
    return z;
  }
};
struct assigned_without_reading : counter {
  constexpr var operator()(var x) const {
    return map(
        [&](var v) {
          set(x, v * 3);
          return v + 1;
        },
        x);
  }
};
struct read_without_assigning : counter {
  constexpr var operator()(var x) const {
    const var y = map([&](var v) { return v * value(x); }, x);
    set(x, number(x, 5));
    return y + map([&](var v) { return v * value(x); }, x);
  }
};
/// Branches of both kinds, in a loop, of which one way alone assigns.
struct in_branches : counter {
  constexpr var operator()(var x) const {
    const auto body = [&](var v) {
      if (v > 1) set(x, value(x) + v);
      return cond(
          v < 0,
          [&] {
            set(x, value(x) * 3);
            return value(x);
          },
          [&] { return v; });
    };
    const var y = map(body, x);
    return y + value(x);
  }
};
struct in_a_branch : counter {
  constexpr var operator()(var x) const {
    const var y = cond(
        sum(x) > 0, [&] { return x; },
        [&] {
          set(x, value(x) + 7);
          return x * value(x);
        });
    return y + value(x);
  }
};
/// Counts its calls, of which there are 2^(n+1) - 1.
struct in_recursion : counter {
  constexpr var operator()(var x) const {
    const auto f = [&](auto self, var n) -> var {
      set(x, value(x) + 1);
      if (n < 0.5) return n + value(x) * 0;
      const var first = self(n - 1);
      return first + self(n - 1);
    };
    const var y = recursive(f, tensor_type{dtype::f64, {}}, x);
    return y + value(x);
  }
};
struct in_forward_mode : counter {
  constexpr std::array<var, 2> operator()(var x) const {
    const auto f = [&](var v) {
      return for_i(
          3,
          [&](var, var s) {
            set(x, value(x) + sum(s));
            return s * v + value(x);
          },
          v);
    };
    const auto [y, dy] = jvp(f, x, x * 0 + 1);
    return {y, dy};
  }
};
struct in_forward_mode_written_out : counter {
  constexpr std::array<var, 2> operator()(var x) const {
    const auto f = [&](var v) {
      var s = v;
      for (int i = 0; i < 3; ++i) {
        set(x, value(x) + sum(s));
        s = s * v + value(x);
      }
      return s;
    };
    const var y = f(x);
    set(x, number(x, 1));
    const auto g = grad([&](var v) { return f(v); })(x);
    return {y, g};
  }
};

}  // namespace

TEST_CASE("a state that was assigned has its new value for what follows") {
  const auto o = check_cell<read_after_assign, f64<2>>({{3, 4}});
  CHECK(o.results == std::vector<reals>{{9}, {18}});
  CHECK(o.parameters == reals{18});
}
TEST_CASE("nested loops hand a state on") {
  const auto o = check_cell<nested_loops, f64<2>>({{0, 0}}, 2);
  const auto wanted = check_cell<nested_loops_written_out, f64<2>>({{0, 0}}, 2);
  CHECK(o.results == wanted.results);
  CHECK(o.parameters == wanted.parameters);
}
TEST_CASE("a value that was read before a loop stays what it was") {
  const auto o = check_cell<value_before, f64<2>>({{0, 0}});
  CHECK(o.results[0] == reals{11 + 21 + 31 + 3});
  CHECK(o.parameters == reals{31});
  CHECK(check_cell<value_twice, f64<2>>({{0, 0}}).results[0] == reals{33 + 66 + 33});
}
TEST_CASE("states that are only written, or only read, in a loop") {
  const auto written = check_cell<assigned_without_reading, f64<3>>({{1, 2, 4}});
  CHECK(written.results[0] == reals{2, 3, 5});
  CHECK(written.parameters == reals{12});
  const auto read = check_cell<read_without_assigning, f64<3>>({{1, 2, 4}});
  CHECK(read.results[0] == reals{6, 12, 24});
  CHECK(read.parameters == reals{5});
}
TEST_CASE("branches in a loop, of which one way assigns") {
  // 1 -> 3 (x3) -> 5 (+2) -> 5 -> 15 (x3)
  const auto o = check_cell<in_branches, f64<4>>({{-1, 2, 0.5, -3}});
  CHECK(o.results[0] == reals{3 + 15, 2 + 15, 0.5 + 15, 15 + 15});
  CHECK(o.parameters == reals{15});
}
TEST_CASE("a branch hands a state on, whichever way is taken") {
  const ways_of_cell<in_a_branch, f64<2>> run;
  CHECK(run.check({{1, 2}}).results[0] == reals{2, 3});
  CHECK(run.check({{1, 2}}).parameters == reals{1});
  CHECK(run.check({{1, -2}}).results[0] == reals{16, -8});
  CHECK(run.check({{1, -2}}).parameters == reals{8});
}
TEST_CASE("a recursion hands a state from call to call") {
  const auto o = check_cell<in_recursion, f64<>>({{3}});
  CHECK(o.results[0] == reals{16});
  CHECK(o.parameters == reals{16});
}
TEST_CASE("forward mode assigns, too, and its derivative goes through the state") {
  const auto o = check_cell<in_forward_mode, f64<>>({{1.5}}, 1, 1e-12);
  const auto wanted = check_cell<in_forward_mode_written_out, f64<>>({{1.5}}, 1, 1e-12);
  check_close(o.results[0], wanted.results[0]);
  check_close(o.results[1], wanted.results[1]);
  check_close(o.parameters, wanted.parameters);
}

// ---- what is refused

namespace {

struct trained_in_a_loop {
  parameter<2> weight;
  constexpr var operator()(var x) const {
    const auto body = [&](var, var s) {
      assign(x, weight, s);
      return s * 2;
    };
    return for_i(3, body, x);
  }
};
struct in_a_condition : counter {
  constexpr var operator()(var x) const {
    const auto goes_on = [&](var v) {
      set(x, sum(v));
      return sum(v) < 9;
    };
    return while_loop(
        goes_on, [](var v) { return v * 2; }, x);
  }
};

}  // namespace

TEST_CASE("states that cannot be assigned are refused in words, in each way to run") {
  CHECK(refusal<trained_in_a_loop>("loop_states.cpp") ==
        "assign: weight is a trained parameter, which the body of a loop or of a recursion cannot "
        "assign; make it a state, or carry it in the state of the loop");
  CHECK(refusal<in_a_condition>("loop_states.cpp") ==
        "assign: count is assigned in the condition of a loop, which cannot hand its new value "
        "on; return the value instead");
}
