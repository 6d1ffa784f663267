#include <cella/ops/broadcast.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr gradient_case cases[] = {
    {"broadcast_to, new axes",
     [](var x) {
       return broadcast_to(x, {2, 3, 4});
     },
     {{.extents = {4}}}},
    {"broadcast_to, inner axis",
     [](var x) {
       return broadcast_to(x, {2, 3, 4});
     },
     {{.extents = {2, 1, 4}}}},
    {"broadcast_to of a scalar",
     [](var x) {
       return broadcast_to(x, {2, 2});
     },
     {{}}},
    {"broadcast_to of ones",
     [](var x) {
       return broadcast_to(x, {3, 2});
     },
     {{.extents = {1, 1}}}},
    {"broadcast_to, rank 8",
     [](var x) {
       return broadcast_to(x, {2, 1, 2, 3, 1, 2, 1, 2});
     },
     {{.extents = {3, 1, 1, 1, 2}}}},
    {"sum_axes",
     [](var x) { return sum_axes(x, 0b101, std::source_location::current()); },
     {{.extents = {2, 3, 4}}}},
    {"sum_axes of none",
     [](var x) { return sum_axes(x, 0, std::source_location::current()); },
     {{.extents = {2, 3}}}},
};

}  // namespace

TEST_CASE("repeating and its transpose: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("broadcast_to aligns axes from the last one") {
  const auto y = eval([](var x) { return broadcast_to(x, {2, 2, 3}); }, f64({2, 1}, {1, 2}));
  CHECK(y.values == reals{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("broadcast_to the same shape adds no node") {
  eager_session s;
  const var x = s(f64({2}, {1, 2}));
  CHECK(broadcast_to(x, {2}).id == x.id);
}

TEST_CASE("elements of any type are repeated bit by bit") {
  const auto big = i64({1}, {9007199254740992.0});
  CHECK(eval([](var x) { return broadcast_to(x, {2}); }, big).values ==
        reals{9007199254740992.0, 9007199254740992.0});
  CHECK(eval([](var x) { return broadcast_to(x, {2}); }, truths({}, {1})).values == reals{1, 1});
}

TEST_CASE("a shape that does not repeat to the target is refused") {
  const tensor_type x{dtype::f64, {2, 3}};
  CHECK(fault(
            [](const vars& v) {
              return broadcast_to(v[0], {2, 4});
            },
            {x}) == "broadcast_to: x0 is [2,3], which does not repeat to [2,4]");
  CHECK(fault([](const vars& v) { return broadcast_to(v[0], {3}); }, {x}) ==
        "broadcast_to: x0 is [2,3], which does not repeat to [3]");
}
