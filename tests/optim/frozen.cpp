#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <set>
#include <string>

using namespace cella;

namespace {

struct net {
  nn::dense<6, 8> first{};
  nn::dense<8, 8> second{};
  nn::dense<8, 3> last{};
  constexpr var operator()(var x) const { return last(relu(second(relu(first(x))))); }
};
constexpr optim::sgd sgd_rule{.momentum = 0.9};
template <auto Rule>
using step_of = training_step<net, cross_entropy_loss, fixed<Rule>>;
constexpr auto two_fixed = optim::freeze<"first.*", "*.bias">(sgd_rule);
constexpr std::array arguments{tensor_type{dtype::f32, {4, 6}}, tensor_type{dtype::i32, {4}}};

template <auto Rule>
graph step_graph() {
  step_of<Rule> step;
  return optimize(trace(step, arguments, {.training = true}));
}
std::set<std::string> names(const graph& g, input_role role) {
  std::set<std::string> all;
  for (const input_info& in : g.inputs) {
    if (in.role == role) all.emplace(g.view(in.name));
  }
  return all;
}
int products(const graph& g) {
  int n = 0;
  for (node_id id : g.regions[0].nodes) n += is<matmul_op>(g.nodes[std::size_t(id)]);
  return n;
}

/// The weights after two steps, all in a row.
template <auto Rule>
std::vector<float> trained() {
  using step =
      program<step_of<Rule>, true, dtype::f32, tensor<dtype::f32, 4, 6>, tensor<dtype::i32, 4>>;
  net cell;
  parameter_store store(cell, 3);
  executable<step> run(store);
  run.scalar(step::scalar("learning_rate"), 0.1);
  std::array<float, 24> x;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) - 3.f;
  const std::array y{0, 1, 2, 1};
  for (int i = 0; i < 2; ++i) run(x, y);
  std::vector<float> all;
  for_each_parameter(cell, [&](std::string_view path, const parameter_base& p) {
    if (!path.ends_with("weight")) return;
    const auto* const v = reinterpret_cast<const float*>(p.data);
    all.insert(all.end(), v, v + p.extents.size());
  });
  return all;
}

}  // namespace

TEST_CASE("frozen parameters get no slots, no updates, and nothing is computed for them") {
  const graph all = step_graph<sgd_rule>();
  const graph some = step_graph<two_fixed>();
  CHECK(names(all, input_role::slot).size() == 6);
  CHECK(names(some, input_role::slot) ==
        std::set<std::string>{"momentum.second.weight", "momentum.last.weight"});
  CHECK(names(some, input_role::parameter).size() == 6);
  int updates = 0;
  for (const output_info& o : some.outputs) updates += o.updates >= 0;
  CHECK(updates == 4);
  // Three forward, two to inner values and three to weights; the first layer needs neither.
  CHECK(products(all) == 8);
  CHECK(products(some) == 6);
}

TEST_CASE("what is not frozen learns as long as the frozen ones would not have changed it") {
  const std::vector<float> before = [] {
    net cell;
    const parameter_store store(cell, 3);
    const auto v = cell.first.weight.values();
    return std::vector<float>(v.begin(), v.end());
  }();
  const std::vector<float> some = trained<optim::freeze<"first.*">(sgd_rule)>();
  const std::vector<float> all = trained<sgd_rule>();
  REQUIRE(some.size() == all.size());
  CHECK(std::equal(before.begin(), before.end(), some.begin()));
  CHECK_FALSE(std::equal(before.begin(), before.end(), all.begin()));
  CHECK_FALSE(std::equal(some.begin() + 48, some.end(), all.begin() + 48));
}

TEST_CASE("a pattern that matches nothing is a fault that names it") {
  CHECK_THROWS_WITH_AS(step_graph<optim::freeze<"fc9.*">(sgd_rule)>(),
                       "freeze: no parameter matches \"fc9.*\"; this net begins with "
                       "\"first.weight\"",
                       model_error);
}

TEST_CASE("gradients are taken by the parameters that a pattern names") {
  struct slopes {
    net inner{};
    std::vector<var> operator()(var x) const {
      const var y = sum(inner(x));
      const auto by = parameters_of(y, "*.weight");
      CHECK(by.size() == 3);
      CHECK(parameters_of(y).size() == 6);
      return gradients(y, by);
    }
  };
  slopes cell;
  builder b;
  bind_cell(b, cell);
  const var x{&b, b.input(arguments[0], input_role::argument, "x")};
  const auto g = cell(x);
  REQUIRE(g.size() == 3);
  CHECK(g[0].shape() == shape{8, 6});
  CHECK(g[2].shape() == shape{3, 8});
}
