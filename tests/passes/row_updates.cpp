#include <cella/nn/embedding_bag.hpp>
#include <cella/train/step.hpp>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct net {
  nn::embedding_bag<50, 18> words;
  nn::dense<18, 3> out;

  constexpr var operator()(var bags) const { return out(words(bags)); }
};
template <auto Rule>
using training = program<training_step<net, cross_entropy_loss, fixed<Rule>>, true, dtype::f64,
                         tensor<dtype::i32, 4, 3>, tensor<dtype::i32, 4>>;
using plain = training<optim::sgd{}>;

/// Steps of this kind, and how many of them work in place.
template <class P>
constexpr std::array<int, 2> count(step_kind kind) {
  std::array<int, 2> found{};
  for (const plan_step& s : P::plan.steps) {
    found[0] += s.kind == kind;
    found[1] += s.kind == kind && s.in[0] == s.outputs[0].at;
  }
  return found;
}

}  // namespace

TEST_CASE("a step of SGD changes the rows of a table that have a gradient, in their place") {
  CHECK(count<plain>(step_kind::put_rows) == std::array{1, 1});
  CHECK(count<plain>(step_kind::scatter) == std::array{0, 0});
  // Words that occur twice, in one bag and in two.
  const reals bags{7, 7, 0, 49, 3, 7, 12, 13, 14, 3, 3, 3};
  const std::vector<reals> batch{bags, {0, 2, 1, 0}};
  const ways<plain> all(7, {0.5});
  const outcome after = all.check(batch, 3, 1e-12);
  const parameter_store before = all.make_store();
  const auto* first = reinterpret_cast<const double*>(before.data());
  int changed = 0;
  for (std::size_t row = 0; row < 50; ++row) {
    bool same = true;
    for (std::size_t i = row * 18; i < row * 18 + 18; ++i) same &= after.parameters[i] == first[i];
    changed += !same;
  }
  CHECK(changed == 7);
}

TEST_CASE("a rule that changes all rows stays what it is") {
  const graph g = optimize(training<optim::sgd{.weight_decay = 0.1}>::traced());
  for (node_id n : g.regions[0].nodes) CHECK_FALSE(is<put_rows_op>(g.nodes[std::size_t(n)]));
}
