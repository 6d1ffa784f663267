// Products that move out of loops: what is left inside, and the same values as before.
#include <cella/ops/functions.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "graph_values.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Inputs: xs [5,3,4], W [4,6], U [6,6], with the type of their elements.
const std::vector<tensor_type> types{
    {dtype::f64, {5, 3, 4}}, {dtype::f64, {4, 6}}, {dtype::f64, {6, 6}}};

/// h' = tanh(x W + h U), and the loss sum(h^2).
var network(const vars& in) {
  const auto step = [&](var h, var x) {
    h = tanh(matmul(x, in[1]) + matmul(h, in[2], false, true));
    return std::tuple{h, h};
  };
  const var start = constant(*in[0].b, 0, {in[0].element(), {3, 6}});
  return sum(square(std::get<1>(scan(step, start, in[0]))));
}
vars forward(const vars& in) { return {network(in)}; }
vars backward(const vars& in) { return gradients(network(in), in); }
/// The same with an accumulation that does not start at zero, whose loop goes backwards.
vars added_products(const vars& in) {
  const auto step = [&](var total, var x) {
    const var y = tanh(x);
    return std::tuple{total + matmul(x, y, true), y};
  };
  const var start = constant(*in[0].b, 3, {in[0].element(), {4, 4}});
  const auto result = scan(step, start, in[0], {.reverse = true});
  return {std::get<0>(result), std::get<1>(result)};
}
/// The running sum is read in the loop: it has to stay.
vars read_sum(const vars& in) {
  const auto step = [&](var total, var x) {
    return std::tuple{total + matmul(x, x, true), sum(total)};
  };
  const var start = constant(*in[0].b, 0, {in[0].element(), {4, 4}});
  const auto result = scan(step, start, in[0]);
  return {std::get<0>(result), std::get<1>(result)};
}

graph graph_of(vars (*f)(const vars&)) { return cse(fold(test::graph_of(f, types))); }
/// Matrix products in the bodies of loops.
constexpr int products_in_loops(const graph& g) {
  int count = 0;
  for (const node& n : live_part(g).nodes) count += n.region > 0 && is<matmul_op>(n);
  return count;
}
/// The products left in loops. Values must not change.
int left_in_loops(vars (*f)(const vars&)) {
  const graph before = graph_of(f);
  const graph after = move_loop_products(before);
  CHECK(check(after).view() == "");
  check_same_values(before, after);
  return products_in_loops(after);
}

/// What programs do, in the compiler: the gradient of a matrix that a scan multiplies with.
consteval int products_left_in_the_compiler() {
  builder b;
  const var x{&b, b.input({dtype::f32, {3, 2, 4}}, input_role::argument, "x")};
  const var w{&b, b.input({dtype::f32, {4, 4}}, input_role::parameter, "w")};
  const auto step = [&](var h, var row) {
    h = tanh(matmul(row, w) + h);
    return std::tuple{h, h};
  };
  const var start = constant(b, 0, {dtype::f32, {2, 4}});
  const var loss = sum(square(std::get<1>(scan(step, start, x))));
  const std::array results{gradients(loss, std::array{w})[0].id};
  b.end(results);
  b.g.outputs.resize(1);
  return products_in_loops(optimize(std::move(b.g)));
}
static_assert(products_left_in_the_compiler() == 0);

}  // namespace

TEST_CASE("a product of a slice and a constant is made before the loop") {
  CHECK(products_in_loops(graph_of(forward)) == 2);
  CHECK(left_in_loops(forward) == 1);
}
TEST_CASE("the gradient of a constant matrix is made behind the loop") {
  // Left are h U, dz U^T and, for the gradient of x, dz W^T.
  CHECK(products_in_loops(graph_of(backward)) == 6);
  CHECK(left_in_loops(backward) == 3);
}
TEST_CASE("a sum of products starts from any value, in either direction") {
  CHECK(products_in_loops(graph_of(added_products)) == 1);
  CHECK(left_in_loops(added_products) == 0);
}
TEST_CASE("a sum that the loop reads stays in it") { CHECK(left_in_loops(read_sum) == 1); }
TEST_CASE("moving twice changes nothing more") {
  const graph once = move_loop_products(graph_of(backward));
  const graph twice = move_loop_products(once);
  CHECK(live_part(once).nodes.size() == live_part(twice).nodes.size());
}
