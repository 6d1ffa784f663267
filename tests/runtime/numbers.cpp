#include <doctest/doctest.h>

#include <cella/ops/print.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/control.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "support/written.hpp"

using namespace cella;
using cella::test::written;

namespace {

/// CELLA_DEBUG as `value` while it lives.
struct debugging {
  explicit debugging(const char* value) { ::setenv("CELLA_DEBUG", value, 1); }
  ~debugging() { ::unsetenv("CELLA_DEBUG"); }
};

/// What an exception says, or nothing.
template <class F>
std::string sentence_of(F f) {
  try {
    f();
  } catch (const number_error& e) { return e.what(); }
  return {};
}
bool contains(const std::string& all, std::string_view part) {
  return all.find(part) != std::string::npos;
}

struct log_of_product {
  constexpr var operator()(var x) const { return log(matmul(x, x)) + 1; }
};
/// Loops sum the product up and take the logarithm at once.
struct log_of_short_product {
  constexpr var operator()(var x) const {
    const var y = matmul(slice(x, 1, 0, 2), slice(x, 0, 0, 2));
    return log(y);
  }
};
struct root_in_a_loop {
  constexpr var operator()(var x) const {
    return for_i(
        5, [](var, var h) { return sqrt(h - 1); }, x);
  }
};
struct shown_loop {
  constexpr var operator()(var x) const {
    return for_i(
        2, [](var, var h) { return print(h * 2, "h"); }, x);
  }
};
struct masked {
  constexpr var operator()(var x) const {
    return softmax(select(x > 0.f, x, full_like(x, -std::numeric_limits<double>::infinity())), 1);
  }
};

struct masked_by_values {
  constexpr var operator()(var x) const {
    constexpr float none = std::numeric_limits<float>::infinity();
    return softmax(x + constant(x, {0.f, -none}), 1);
  }
};

template <class Cell>
void run_in_eager_mode(Cell cell, std::vector<float> x, const tensor_type& t) {
  eager_evaluator e;
  builder b;
  b.eager = &e;
  const node_id in = b.input(t, input_role::argument, "x");
  e.values.bind(in, {reinterpret_cast<std::byte*>(x.data()), t});
  cell(var{&b, in});
}

constexpr std::array fine{1.f, 2.f, 3.f, 4.f};

/// Eight different operations of one kernel, of which the last makes a NaN, in a cell of a cell.
struct many_operations {
  struct part {
    constexpr var operator()(var x) const {
      return log(sqrt(exp(square(abs(sqrt(x + 3) * 2) - 1))) - 1e9);
    }
  };
  part head{};
  constexpr var operator()(var x) const { return head(x); }
};

}  // namespace

TEST_SUITE("runtime/numbers") {
  TEST_CASE("a program stops at the first operation that makes a NaN and names it with its line") {
    const debugging on("nan");
    compiled<log_of_product, tensor<dtype::f32, 2, 2>> run;
    CHECK(sentence_of([&] { run(fine); }).empty());
    const std::string s = sentence_of([&] { run(std::array{1.f, -2.f, 1.f, 1.f}); });
    INFO(s);
    CHECK(contains(s, "log at numbers.cpp:37"));
    CHECK(contains(s, " made nan, at [0,0] of f32[2,2]"));
  }
  TEST_CASE("an infinity counts as well, and an infinite input does not") {
    const debugging on("nan");
    compiled<log_of_product, tensor<dtype::f32, 2, 2>> run;
    CHECK(contains(sentence_of([&] {
                     run(std::array{1.f, 0.f, 0.f, 1.f});
                   }),
                   "made inf, at [0,1]"));
    const float huge = std::numeric_limits<float>::infinity();
    CHECK(sentence_of([&] { run(std::array{huge, huge, huge, huge}); }).empty());
    CHECK(contains(sentence_of([&] {
                     run(std::array{1.f, 1.f, NAN, 1.f});
                   }),
                   "an input holds nan, at [1,0]"));
  }
  TEST_CASE("an operation of a fused loop is named, a product that it sums up, too") {
    const debugging on("nan");
    compiled<log_of_short_product, tensor<dtype::f32, 16, 16>> run;
    std::vector<float> x(256, 1.f);
    CHECK(sentence_of([&] { run(x); }).empty());
    x[16] = -2.f;
    CHECK(contains(sentence_of([&] { run(x); }), "log at numbers.cpp:43 made nan"));
    x[0] = x[16] = 1e30f;
    CHECK(contains(sentence_of([&] { run(x); }),
                   "matmul at numbers.cpp:42 or log at numbers.cpp:43 made inf, at [0,0]"));
  }
  TEST_CASE("the first six operations of a kernel are named, and how many there are") {
    const debugging on("nan");
    compiled<many_operations, tensor<dtype::f32, 2, 2>> run;
    const std::string s = sentence_of([&] { run(fine); });
    INFO(s);
    CHECK(contains(s, "sqrt at numbers.cpp:"));
    CHECK(contains(s, "square at numbers.cpp:"));
    CHECK(contains(s, " or another of the 8 operations in this kernel made nan, at [0,0] of f32"));
    CHECK(!contains(s, "log at"));
  }
  TEST_CASE("a mask of infinities is no fault") {
    const debugging on("nan");
    compiled<masked, tensor<dtype::f32, 2, 2>> run;
    const auto y = run(std::array{1.f, -1.f, 2.f, 2.f});
    CHECK(y[0] == 1.f);
    CHECK(y[1] == 0.f);
    compiled<masked_by_values, tensor<dtype::f32, 2, 2>> other;
    CHECK(other(std::array{1.f, -1.f, 2.f, 2.f})[1] == 0.f);
    const auto eagerly = [](auto cell) {
      return sentence_of([&] {
        run_in_eager_mode(cell, {1.f, -1.f, 2.f, 2.f}, {dtype::f32, {2, 2}});
      });
    };
    CHECK(eagerly(masked{}).empty());
    CHECK(eagerly(masked_by_values{}).empty());
  }
  TEST_CASE("an operation inside a loop is named") {
    const debugging on("nan");
    compiled<root_in_a_loop, tensor<dtype::f32, 2>> run;
    const std::string s = sentence_of([&] { run(std::array{3.f, 2.f}); });
    INFO(s);
    CHECK(contains(s, "sqrt at numbers.cpp:49"));
    CHECK(contains(s, "made nan"));
  }
  TEST_CASE("without the variable nothing is looked at; another value is refused") {
    compiled<log_of_product, tensor<dtype::f32, 2, 2>> run;
    CHECK(std::isnan(run(std::array{1.f, -2.f, 1.f, 1.f})[0]));
    const debugging on("inf");
    CHECK_THROWS_WITH_AS((compiled<log_of_product, tensor<dtype::f32, 2, 2>>{}),
                         doctest::Contains("CELLA_DEBUG is \"inf\"; set it to nan"), error);
  }
  TEST_CASE("eager mode names the operation alone, in loops as well") {
    const debugging on("nan");
    const std::string s = sentence_of([&] {
      run_in_eager_mode(log_of_product{}, {1.f, -2.f, 1.f, 1.f}, {dtype::f32, {2, 2}});
    });
    CHECK(contains(s, "log at numbers.cpp:37 made nan, at [0,0] of f32[2,2]"));
    const std::string loop = sentence_of([&] {
      run_in_eager_mode(root_in_a_loop{}, {3.f, 2.f}, {dtype::f32, {2}});
    });
    CHECK(contains(loop, "sqrt at numbers.cpp:49 made nan, at [0] of f32[2]"));
    CHECK(sentence_of([&] {
            run_in_eager_mode(log_of_product{}, {1.f, 2.f, 3.f, 4.f}, {dtype::f32, {2, 2}});
          }).empty());
  }
  TEST_CASE("print writes in each step of a loop, compiled or not") {
    const std::string both = "h: f32[2] {2, 4}\nh: f32[2] {4, 8}\n";
    compiled<shown_loop, tensor<dtype::f32, 2>> run;
    CHECK(written([&] { run(std::array{1.f, 2.f}); }) == both);
    CHECK(written([&] { run_in_eager_mode(shown_loop{}, {1.f, 2.f}, {dtype::f32, {2}}); }) == both);
  }
}
