// A fault in a body, a branch or a derivative ends constant evaluation with its sentence, not with
// an error of the evaluation.
#include <doctest/doctest.h>

#include <cella/graph/freeze.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cella/transform/trace.hpp>
#include <string>

using namespace cella;

namespace {

template <class Cell>
struct make {
  constexpr traced_graph operator()() const {
    builder b;
    Cell cell{};
    trace_into(b, cell, std::array{tensor_type{dtype::f32, {2}}, tensor_type{dtype::f32, {3}}});
    if (b.failed()) return {{}, b.fault()};
    return {std::move(b.g), {}};
  }
};
/// The sentence without the place, which is in this file.
template <class Cell>
std::string sentence() {
  constexpr text found = freeze_fault<make<Cell>>;
  const std::string s(found.view());
  const std::string file = "faults_in_the_compiler.cpp:";
  return s.starts_with(file) ? s.substr(s.find(": ") + 2) : "no place in this file: " + s;
}

struct mismatched_branches {
  constexpr var operator()(var x, var y) const {
    return cond(
        sum(x) > 0, [&] { return x; }, [&] { return y; });
  }
};
struct mismatched_paths {
  constexpr var operator()(var x, var y) const {
    if (sum(x) > 0) return x;
    return y;
  }
};
struct native_loop {
  constexpr var operator()(var x, var) const {
    while (sum(x) < 100) x = x * 2;
    return x;
  }
};
struct many_conditions {
  constexpr var operator()(var x, var) const {
    if (x > 0) return x;
    return -x;
  }
};
struct growing_state {
  constexpr var operator()(var x, var y) const {
    return sum(scan([](var s, var u) { return std::pair{concat({s, s}, 0), u}; }, x, y).first);
  }
};
struct fault_in_a_body_under_derivatives {
  constexpr var operator()(var x, var y) const {
    return vmap(grad([&](var t) {
      return while_loop([](var s) { return s < 3; }, [&](var s) { return s + sum(x + y); }, t);
    }))(x);
  }
};
struct fault_in_a_recursion {
  constexpr var operator()(var x, var y) const {
    return grad([&](var t) {
      return sum(recursive(
          [&](auto self, var s) -> var {
            if (sum(s) > 1) return self(s * t);
            return s + y;
          },
          {dtype::f32, {2}}, t));
    })(x);
  }
};
struct fault_in_a_jacobian {
  constexpr var operator()(var x, var y) const {
    return jacobian([&](var t) { return matmul(t, y); })(x);
  }
};
struct fault_in_a_rule {
  constexpr var operator()(var x, var y) const {
    return grad([&](var t) {
      return sum(custom_vjp([](var s) { return s; }, [&](var, var, var dy) { return dy + y; })(t));
    })(x);
  }
};

}  // namespace

TEST_CASE("faults in branches are sentences") {
  CHECK(sentence<mismatched_branches>() ==
        "cond: the result if the condition holds is f32[2], the other one is f32[3]; both branches "
        "must return the same types");
  CHECK(sentence<mismatched_paths>() ==
        "if: the function returns f32[2] on one path and f32[3] on another; all paths must return "
        "the same types");
  CHECK(sentence<native_loop>() ==
        "if: a function decides more than 64 times in a row on tensor values; use while_loop() for "
        "a loop, cond() for a branch");
  CHECK(sentence<many_conditions>() ==
        "if: the condition greater result is bool[2]; it must be one bool (compare with >, equal, "
        "...; any() or all() make one of many; select() and logical_and() go element by element)");
}

TEST_CASE("faults in loops are sentences") {
  CHECK(sentence<growing_state>() ==
        "scan: the state is f32[2], what the body makes of it is f32[4]; a loop keeps the types of "
        "its state");
  CHECK(sentence<fault_in_a_body_under_derivatives>() ==
        "add: shapes do not broadcast: x is [2], y is [3]");
  CHECK(sentence<fault_in_a_recursion>() ==
        "add: shapes do not broadcast: argument is [2], y is [3]");
}

TEST_CASE("faults in derivatives are sentences") {
  CHECK(sentence<fault_in_a_jacobian>() ==
        "matmul: inner dimensions differ: argument is [2], y is [3]");
  CHECK(sentence<fault_in_a_rule>() == "add: shapes do not broadcast: argument is [2], y is [3]");
}
