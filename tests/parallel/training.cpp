// Training steps on ranks that share nothing: the same losses as on one device, in every mode.
#include <doctest/doctest.h>

#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/parallel/plan_json.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/step.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::parallel;

namespace {

/// Values of the inputs of a step, whole.
struct whole_inputs {
  std::vector<aligned_buffer> memory;
  std::vector<tensor_ref> values;
};

/// A training step, its graph and the first values of its inputs.
struct trained_net {
  graph step;
  whole_inputs first;
};

template <class Net, class Optimizer>
trained_net make_net(const tensor_type& x, const tensor_type& y, int classes,
                     Optimizer optimizer) {
  training_step<Net, cross_entropy_loss, Optimizer> step;
  step.optimizer = optimizer;
  const std::array<tensor_type, 2> types{x, y};
  trained_net t{compiled_once::optimize(trace(step, types, {.training = true})), {}};
  Net net;
  const parameter_store store(net, 3);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < t.step.inputs.size(); ++i) {
    const input_info& in = t.step.inputs[i];
    const std::string_view label = t.step.view(in.name);
    const tensor_type type = t.step.type(t.step.input(int(i)));
    t.first.memory.emplace_back(std::size_t(type.bytes()));
    const tensor_ref v{t.first.memory.back().data(), type};
    t.first.values.push_back(v);
    for (std::int64_t k = 0; k < type.size(); ++k) {
      if (const named_parameter* p = store.find(label))
        write_element(v, k, read_element(store.value(*p), k));
      else if (in.role == input_role::argument)
        write_element(v, k,
                      is_integer(type.element) ? double(random() % unsigned(classes))
                                               : std::uniform_real_distribution(-1.0, 1.0)(random));
      else
        write_element(v, k, label == "learning_rate" ? 0.05 : label == "step" ? 1 : 0);
    }
  }
  return t;
}

std::vector<double> losses_on_one_device(const trained_net& t, int steps) {
  whole_inputs own;
  loaded_program run(t.step, dtype::f32);
  for (std::size_t i = 0; i < t.first.values.size(); ++i) {
    const tensor_ref& v = t.first.values[i];
    own.memory.emplace_back(std::size_t(v.type.bytes()));
    std::memcpy(own.memory.back().data(), v.data, std::size_t(v.type.bytes()));
    run.bind(int(i), own.memory.back().data());
  }
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s) {
    run();
    losses.push_back(read_element(run.result(0), 0));
  }
  return losses;
}

std::vector<double> losses_on_ranks(const trained_net& t, const parallel_plan& p, int steps) {
  thread_ranks ranks(p.mesh);
  std::vector<std::vector<double>> losses(std::size_t(p.mesh.ranks()));
  ranks.run([&](int r, const communicator& c) {
    rank_program run(p.rank, p.mesh, r, c);
    for (std::size_t i = 0; i < t.first.values.size(); ++i) run.set(int(i), t.first.values[i]);
    for (int s = 0; s < steps; ++s) {
      run();
      losses[std::size_t(r)].push_back(read_element(run.result(0), 0));
    }
  });
  for (const auto& l : losses) CHECK(l == losses[0]);
  return losses[0];
}

/// The logits of all words, one behind the other, as the loss takes them.
struct small_gpt {
  models::gpt<32, 32, 4, 2, 16> net{};
  constexpr var operator()(var words) const { return reshape(net(words), {-1, 32}); }
};

}  // namespace

TEST_CASE("LeNet-5 has the same losses on two and four ranks as on one") {
  const trained_net t = make_net<models::lenet5>({dtype::f32, {16, 1, 28, 28}}, {dtype::i32, {16}},
                                                 10, optim::sgd{.momentum = 0.9});
  const auto expected = losses_on_one_device(t, 4);
  CHECK(expected[0] != doctest::Approx(expected[3]));
  for (const char* line : {"data=2", "data=4"}) {
    const parallel_plan p = plan_for(t.step, parse_mesh(line), {.mode = mode::data});
    const auto found = losses_on_ranks(t, p, 4);
    for (std::size_t s = 0; s < expected.size(); ++s)
      CHECK(found[s] == doctest::Approx(expected[s]).epsilon(1e-5));
  }
}

TEST_CASE("scratch") {
  const trained_net t = make_net<models::lenet5>({dtype::f32, {16, 1, 28, 28}}, {dtype::i32, {16}},
                                                 10, optim::sgd{.momentum = 0.9});
  const trained_net u = make_net<small_gpt>({dtype::i32, {8, 16}}, {dtype::i32, {128}}, 32, optim::adam{});
  int which = 0;
  for (const trained_net* n : {&t, &u}) {
    const auto expected = losses_on_one_device(*n, 4);
    for (const char* line : {"data=2", "data=4", "data=2,model=2"}) {
      for (mode m : {mode::serial, mode::data, mode::zero1, mode::automatic}) {
        const auto begin = std::chrono::steady_clock::now();
        const parallel_plan p = plan_for(n->step, parse_mesh(line), {.mode = m});
        const auto end = std::chrono::steady_clock::now();
        std::cout << (which ? "gpt " : "lenet ") << line << " " << mode_name(m) << ": nodes " << n->step.nodes.size() << " rank nodes " << p.rank.graph.nodes.size()
                  << " plan " << std::chrono::duration<double>(end - begin).count() << " s, forced " << p.forced << ", step " << p.seconds() * 1e3
                  << " ms, bytes " << p.bytes_on_device << std::endl;
        std::map<std::string_view, int> count;
        for (node_id k : p.rank.graph.regions[0].nodes) { const auto* op = p.rank.graph.nodes[std::size_t(k)].op; if (is_collective(op)) ++count[op->name]; }
        for (auto& [name, c] : count) std::cout << "  " << name << " " << c;
        std::cout << "\n";
        print_plan(std::cout, n->step, p);
        const parallel_plan q = plan_from_json(n->step, plan_to_json(n->step, p));
        CHECK(q.choices == p.choices);
        const auto found = losses_on_ranks(*n, p, 4);
        for (std::size_t s = 0; s < expected.size(); ++s)
          CHECK(found[s] == doctest::Approx(expected[s]).epsilon(1e-5));
      }
    }
    ++which;
  }
}
