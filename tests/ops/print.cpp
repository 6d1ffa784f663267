#include <cella/ops/functions.hpp>
#include <cella/ops/print.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/gradient.hpp>

#include "support/traced.hpp"
#include "support/written.hpp"

using namespace cella;
using namespace cella::test;

namespace {

std::string shown(const valued_tensor& t) {
  bindings memory;
  return to_string(memory.store(t));
}

}  // namespace

TEST_SUITE("ops/print") {
  TEST_CASE("tensors are written with their type, rows under each other, long axes by their ends") {
    CHECK(shown(scalar(0.5)) == "f64[] 0.5");
    CHECK(shown(i64({2, 2}, {1, -2, 3, 4})) == "i64[2,2] {{1, -2},\n {3, 4}}");
    CHECK(shown(truths({2}, {1, 0})) == "bool[2] {true, false}");
    reals many;
    for (int i = 0; i < 13; ++i) many.push_back(i);
    CHECK(shown(f64({13}, many)) == "f64[13] {0, 1, 2, ..., 10, 11, 12}");
    CHECK(shown(f64({0}, {})) == "f64[0] {}");
  }
  TEST_CASE("print shows its operand in eager mode and in graphs, also when it is differentiated") {
    const auto f = [](const vars& x) { return vars{print(x[0] * 2, "twice") + 1}; };
    const std::vector<valued_tensor> in{f64({2}, {1, 2})};
    std::vector<valued_tensor> y;
    CHECK(written([&] { y = run_eagerly(f, in); }) == "twice: f64[2] {2, 4}\n");
    CHECK(y[0].values == reals{3, 5});
    CHECK(written([&] { y = run_traced(f, in); }) == "twice: f64[2] {2, 4}\n");
    valued_tensor g;
    CHECK(written([&] {
            g = eval([](var x) { return grad([](var t) { return sum(square(print(t))); })(x); },
                     in[0]);
          }) == "f64[2] {1, 2}\n");
    CHECK(g.values == reals{2, 4});
  }
}
