// Folding of constant tensors: what is computed from them, or moves their elements.
#include <cella/ops/slicing.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <numeric>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr std::array<std::array<float, 3>, 2> grid{{{1, 2, 3}, {4, 5, 6}}};

/// The result of the folded graph of `f`, if that is a constant tensor or a constant; else nothing.
template <class F>
constexpr list<double> folded(F f) {
  const graph g = fold(graph_of(f));
  const node_id n = g.regions[0].outputs[0];
  list<double> all;
  const node& x = g.nodes[std::size_t(n)];
  if (is<constant_op>(x))
    all.assign(std::size_t(x.type.size()), x.attributes.as<constant_op::options>().value);
  if (!is<values_op>(x)) return all;
  with_element(x.type.element, [&]<class T>() {
    for_each_element<T>(g.values_of(n), std::size_t(x.type.size()),
                        [&](std::size_t, T v) { all.push_back(to_number<double>(v)); });
  });
  return all;
}
template <class F>
constexpr bool stays(F f) {
  return folded(f).empty();
}
using numbers = list<double>;

// clang-format off
static_assert(folded([](var x) { return slice(constant(x, grid), 1, 0, 3, 2); }) == numbers{1, 3, 4, 6});
static_assert(folded([](var x) { return slice(constant(x, grid), 0, 1, 2); }) == numbers{4, 5, 6});
static_assert(folded([](var x) { return transpose(constant(x, grid)); }) == numbers{1, 4, 2, 5, 3, 6});
static_assert(folded([](var x) { return reshape(constant(x, grid), {3, 2}); }) == numbers{1, 2, 3, 4, 5, 6});
static_assert(folded([](var x) { return cast(constant(x, {1.7f, -1.7f, 0.f}), dtype::i32); }) == numbers{1, -1, 0});
static_assert(folded([](var x) { return cast(constant(x, {2, 0}), dtype::boolean); }) == numbers{1, 0});
static_assert(folded([](var x) { return constant(x, {0.1, 0.2}, dtype::f32) + constant(x, {0.2, 0.1}, dtype::f32); }) == numbers{double(0.1f + 0.2f), double(0.2f + 0.1f)});
static_assert(folded([](var x) { return constant(x, grid) * 2 - 1; }) == numbers{1, 3, 5, 7, 9, 11});
static_assert(folded([](var x) { return constant(x, grid) * constant(x, {1.f, 0.f, 2.f}); }) == numbers{1, 0, 6, 4, 0, 12});
static_assert(folded([](var x) { return constant(x, {1, 2, 3}) > 2; }) == numbers{0, 0, 1});
static_assert(folded([](var x) { return square(constant(x, {1.f, -2.f})); }) == numbers{1, 4});
// A result whose elements are equal is one value again.
static_assert(folded([](var x) { return slice(constant(x, {1.f, 2.f, 2.f}), 0, 1, 3); }) == numbers{2, 2});
// What divides by zero, overflows or is not moderate stays.
static_assert(stays([](var x) { return 1 / constant(x, {1.f, 0.f}); }));
static_assert(stays([](var x) { return constant(x, {1e30f, 1.f}) * constant(x, {1e30f, 1.f}); }));
static_assert(stays([](var x) { return cast(constant(x, {1e30f, 1.f}), dtype::i32); }));
static_assert(stays([](var x) { return constant(x, {1.f, 2.f}) + slice(reshape(x, {6}), 0, 0, 2); }));
// clang-format on

template <std::size_t Count>
constexpr auto counted = [] {
  std::array<float, Count> all{};
  std::iota(all.begin(), all.end(), 0.f);
  return all;
}();
static_assert(folded([](var x) { return counted<4096>[4095] + constant(x, counted<4096>); })[1] ==
              4096);
static_assert(stays([](var x) { return 1 + constant(x, counted<4097>); }));

}  // namespace

TEST_CASE("folding constant tensors changes no result") {
  const auto f = [](var x) {
    const var t = transpose(constant(x, grid));
    const var u = slice(t * 0.1 + constant(x, {0.3f, 0.7f}), 0, 0, 3, 2);
    return matmul(x, t) * sum(exp(u));
  };
  CHECK(same_values(run(graph_of(f), 3), run(fold(graph_of(f)), 3)));
  CHECK(same_values(run(graph_of(f), 3), run(optimize(graph_of(f)), 3)));
}
TEST_CASE("equal constant tensors become one node, and unused ones leave the pool") {
  const auto f = [](var x) {
    return x * constant(x, {1.f, 2.f, 3.f}) + slice(constant(x, {1.f, 2.f, 3.f, 4.f}), 0, 0, 3);
  };
  const graph g = optimize(graph_of(f));
  int nodes = 0;
  for (const node& n : g.nodes) nodes += is<values_op>(n);
  CHECK(nodes == 1);
  CHECK(g.constants.tensors.size() == 1);
}
TEST_CASE("constant tensors in the body of a loop are folded, too") {
  const auto f = [](var x) {
    return scan(
        [](var s, var u) {
          return s * slice(constant(s, {1.f, 2.f, 3.f, 4.f}), 0, 1, 4) + u;
        },
        slice(reshape(x, {6}), 0, 0, 3), x);
  };
  const graph g = optimize(graph_of(f));
  REQUIRE(g.constants.tensors.size() == 1);
  CHECK(g.constants.tensors[0].type == tensor_type{dtype::f32, {3}});
  for (const node& n : g.nodes) {
    if (is<slice_op>(n)) CHECK(n.region == 0);  // of the argument
  }
}
