// A program that the compiler has divided among ranks, on threads.
#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/parallel/divided.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/parallel/topology.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <vector>

#include "known_mesh.hpp"
#include "machine.hpp"

using namespace cella;
using namespace cella::parallel;

namespace {

struct small_net {
  nn::dense<5, 8> hidden{};
  nn::dense<8, 3> out{};
  constexpr var operator()(var x) const { return out(relu(hidden(x))); }
};
using step = training_step<small_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
using whole = program<step, true, dtype::f32, tensor<dtype::f32, 8, 5>, tensor<dtype::i32, 8>>;
using half = divided<whole, mesh<axis<"data", 2>>, mode::data>;
using third = divided<whole, mesh<axis<"data", 3>>, mode::data>;

static_assert(half::argument_types[0] == tensor_type{dtype::f32, {4, 5}});
static_assert(half::signature == whole::signature);  // every rank has all parameters
static_assert(half::cost.seconds < 1e-3);
static_assert(!third::accepted);

using measured = divided<whole, measured_mesh<topology_of_machine, axis<"data", 2>>, mode::data>;

static_assert(measured::cost.seconds < 1e-4);
static_assert(measured::cost.seconds != half::cost.seconds);

std::vector<float> samples() {
  std::vector<float> x(40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 37 % 41) / 41.0f - 0.5f;
  return x;
}
constexpr std::array<std::int32_t, 8> labels{0, 2, 1, 1, 0, 2, 2, 0};

}  // namespace

TEST_CASE(
    "a program that the compiler divides has the losses and the parameters of the whole one") {
  const auto x = samples();
  std::vector<float> expected;
  small_net net;
  parameter_store one(net, 5);
  executable<whole> run(one);
  for (int s = 0; s < 5; ++s) {
    run.scalar(whole::scalar("learning_rate"), 0.1);
    run(x, labels);
    expected.push_back(run.result<0>()[0]);
  }
  CHECK(expected[4] < expected[0]);
  thread_ranks ranks(mesh<axis<"data", 2>>{});
  ranks.run([&](int r, const communicator& c) {
    const communicator_scope scope(c);
    small_net own;
    parameter_store store(own, 5);
    executable<half> part(store);
    for (std::size_t s = 0; s < expected.size(); ++s) {
      part.scalar(half::scalar("learning_rate"), 0.1);
      part.call_unchecked(x.data() + 20 * r, labels.data() + 4 * r);
      CHECK(part.result<0>()[0] == doctest::Approx(expected[s]).epsilon(1e-5));
    }
    for (const named_parameter& p : store.entries()) {
      const auto found = store.values<float>(p.name), wanted = one.values<float>(p.name);
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
    }
  });
}

TEST_CASE("the compiler counts with the numbers that a header has of a machine") {
  const device_mesh known = load_topology(CELLA_KNOWN_TOPOLOGY);
  CHECK(topology_to_json(topology_of_machine::value) == topology_to_json(test::known_mesh()));
  CHECK(topology_to_json(known) == topology_to_json(test::known_mesh()));
  const parallel_plan p =
      plan_for(thaw(whole::interface_graph), with_topology(parse_mesh("data=2"), known),
               {.mode = mode::data});
  CHECK(measured::cost.seconds == p.seconds());
  CHECK(measured::cost.bytes_on_device == p.bytes_on_device);
}
