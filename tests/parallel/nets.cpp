// What nets need on ranks beside cuts of their tensors: statistics of all samples, and words that
// go to the ranks of their experts.
#include <doctest/doctest.h>

#include <cella/models/switch_gpt.hpp>
#include <cella/parallel/plan.hpp>
#include <cella/parallel/shared_statistics.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/train/step.hpp>

#include "on_ranks.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

namespace {

/// The bytes that the collective operations of a rank make, or, of one kind, how many there are.
std::int64_t made_by(const graph& g, std::string_view op, int* count = nullptr) {
  std::int64_t bytes = 0;
  for (node_id n : g.regions[0].nodes) {
    if (g.nodes[std::size_t(n)].op->name != op) continue;
    bytes += g.type(n).bytes();
    if (count) ++*count;
  }
  return bytes;
}

struct balanced_loss {
  constexpr var operator()(nn::mixed y, var next) const {
    return softmax_cross_entropy(reshape(y.value, {-1, 8}), next) + 0.01 * y.imbalance;
  }
};

}  // namespace

TEST_CASE("batch norms in sums are what they are in one, and ranks exchange sums only") {
  builder b;
  const auto input = [&](shape s) {
    const auto role = s.rank > 1 ? input_role::argument : input_role::parameter;
    return var{&b, b.input({dtype::f64, s}, role, "x")};
  };
  const var x = input({4, 3, 2, 5}), gamma = input({3}), beta = input({3}),
            dy = input({4, 3, 2, 5});
  const auto y = cella::detail::normalize_batch(x, gamma, beta, 1e-3);
  const node_id d =
      emit<batch_norm_gradient_op>(batch_norm_options{1e-3}, std::source_location::current(), dy, x,
                                   gamma, y.mean, y.variance)
          .id;
  ids out{y.value.id, y.mean.id, y.variance.id};
  for (int k = 0; k < 3; ++k) out.push_back(b.get(d, k));
  for (std::size_t k = 0; k < out.size(); ++k) b.g.outputs.push_back({});
  b.end(out);
  const graph in_sums = share_statistics(b.g);
  std::mt19937 random(3);
  std::vector<valued_tensor> values;
  for (std::size_t i = 0; i < b.g.inputs.size(); ++i)
    values.push_back(random_tensor(b.g.type(b.g.input(int(i))), random));
  const auto expected = run_graph(b.g, values);
  const parallel_plan p = plan_for(in_sums, parse_mesh("data=2"), {mode::semi_automatic});
  const auto ranks = run_on_ranks(in_sums, p.mesh, p.choices, values);
  for (const auto& found : ranks)
    for (std::size_t k = 0; k < expected.size(); ++k)
      for (std::size_t i = 0; i < expected[k].values.size(); ++i)
        CHECK(found[k].values[i] == doctest::Approx(expected[k].values[i]).epsilon(1e-12));
  CHECK(made_by(p.rank.graph, "all_gather") == 2 * 8 * x.shape().size());  // two results
  CHECK(made_by(p.rank.graph, "all_reduce") == 4 * 8 * 3);  // mean, variance and two gradients
}

TEST_CASE("words go to the ranks of their experts, whose gradients nobody else has") {
  training_step<models::switch_gpt<8, 8, 2, 1, 6, 4>, balanced_loss, optim::sgd> step;
  const std::array types{tensor_type{dtype::i32, {4, 6}}, tensor_type{dtype::i32, {24}}};
  const graph g = compiled_once::optimize(trace(step, types, {.training = true}));
  strategy s{mode::semi_automatic};
  for (const char* name : {"*.up", "*.up_bias", "*.down", "*.down_bias"})
    s.tensors.push_back({name, "data", 0});
  const parallel_plan experts = plan_for(g, parse_mesh("data=2"), s);
  const parallel_plan data = plan_for(g, parse_mesh("data=2"), {mode::data});
  int exchanges = 0;
  made_by(experts.rank.graph, "all_to_all", &exchanges);
  CHECK(exchanges == 4);  // to the experts and back, forward and backward
  // Both weights' gradients, [4,8,32], are sums over the samples of all ranks otherwise.
  const auto summed = [](const parallel_plan& p) {
    return made_by(p.rank.graph, "all_reduce") + made_by(p.rank.graph, "finish_all_reduce");
  };
  CHECK(summed(data) >= summed(experts) + 2 * 4 * 4 * 8 * 32);
  for (const parallel_plan* p : {&data, &experts})
    CHECK(made_by(p->rank.graph, "reduce_scatter") == 0);
}
