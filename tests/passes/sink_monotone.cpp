#include <cella/passes/simplify/dce.hpp>
#include <cella/passes/simplify/sink_monotone.hpp>

#include "expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr tensor_type image{dtype::f32, {2, 2, 6, 6}};

template <class F>
constexpr text hoisted(F f) {
  const graph g = sink_monotone(graph_of(f, image));
  return check(g).empty() ? formula(g) : check(g);
}
constexpr var channel(var x) {
  return reshape(slice(slice(slice(x, 0, 0, 1), 2, 0, 1), 3, 0, 1), {2, 1, 1});
}

constexpr auto pooled_relu = [](var x) { return max_pool(relu(x), 2); };
constexpr auto pooled_bias = [](var x, var y) { return max_pool(x + channel(y), 2); };
constexpr auto pooled_relu_bias = [](var x, var y) { return max_pool(relu(x + channel(y)), 2); };

static_assert(hoisted(pooled_relu).view() == "relu(get(max_pool(x)))");
static_assert(hoisted([](var x) { return max_pool(relu(max_pool(relu(x), 2)), 3); }).view() ==
              "relu(relu(get(max_pool(get(max_pool(x))))))");
// Nothing moves where somebody else needs the larger tensor, or where the sum varies in a window.
static_assert(hoisted([](var x) {
                const var y = relu(x);
                return max_pool(y, 2) * sum(y);
              }).view() == "mul(get(max_pool(relu(x))), broadcast(sum(relu(x))))");
static_assert(hoisted([](var x, var y) { return max_pool(x + y, 2); }).view() ==
              "get(max_pool(add(x, y)))");
static_assert(hoisted([](var x, var y) {
                return max_pool(x + sum(y, {0, 1, 2}), 2);
              }).view() == "get(max_pool(add(x, broadcast(sum(y)))))");

/// Value and gradients of sum(f * weights), with the pass before differentiation or without it.
template <class F>
graph trained(F f, bool hoist) {
  graph forward = graph_of(f, image);
  if (hoist) forward = dce(sink_monotone(std::move(forward)));
  builder b;
  std::vector<var> inputs;
  graph_importer imported(b, forward);
  ids renamed(forward.nodes.size(), no_node);
  for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
    inputs.push_back({&b, b.input(image, input_role::argument, "x")});
    renamed[std::size_t(forward.input(int(i)))] = inputs.back().id;
  }
  ids in;
  for (node_id n : forward.regions[0].nodes) {
    if (renamed[std::size_t(n)] >= 0) continue;
    in.clear();
    for (node_id o : forward.operands(n)) in.push_back(renamed[std::size_t(o)]);
    renamed[std::size_t(n)] = imported.copy(n, in);
  }
  const var y{&b, renamed[std::size_t(forward.regions[0].outputs[0])]};
  const var weights{&b, b.input(y.type(), input_role::argument, "weights")};
  ids out{y.id};
  for (const var& d : gradients(sum(y * weights), inputs)) out.push_back(d.id);
  b.end(out);
  b.g.outputs.assign(out.size(), {});
  return std::move(b.g);
}

}  // namespace

TEST_CASE("relu and a bias per channel move behind the pooling") {
  CHECK(std::string(hoisted(pooled_relu).view()) == "relu(get(max_pool(x)))");
  CHECK(std::string(hoisted(pooled_bias).view()).starts_with("add(get(max_pool(x)), broadcast("));
  CHECK(std::string(hoisted(pooled_relu_bias).view()).starts_with("relu(add(get(max_pool(x)), "));
}

TEST_CASE("nothing moves when somebody reads the positions") {
  const graph g = graph_of(
      [](var x) {
        const var values = max_pool(relu(x), 2);
        builder& b = *x.b;
        const var positions{&b, b.get(b.g.operand(values.id, 0), 1)};
        return values + cast(positions, dtype::f32);
      },
      image);
  CHECK(std::string(formula(sink_monotone(g)).view()) == std::string(formula(g).view()));
}

TEST_CASE("values and gradients are the same, windows without a positive element included") {
  auto overlapping = [](var x) { return max_pool(relu(x), 3, 1, 1); };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    CHECK(
        same_values(run(trained(pooled_relu, false), seed), run(trained(pooled_relu, true), seed)));
    CHECK(
        same_values(run(trained(pooled_bias, false), seed), run(trained(pooled_bias, true), seed)));
    CHECK(same_values(run(trained(pooled_relu_bias, false), seed),
                      run(trained(pooled_relu_bias, true), seed)));
    CHECK(
        same_values(run(trained(overlapping, false), seed), run(trained(overlapping, true), seed)));
  }
}
