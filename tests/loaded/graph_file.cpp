#include <doctest/doctest.h>
#include <unistd.h>

#include <cella/interop/graph_file.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/train/step.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_directory.hpp"

using namespace cella;
using test::scratch_directory;

namespace {

using buffers = std::vector<std::vector<std::byte>>;

/// Values for all inputs, none of them special: small numbers, and indices from 0 to 4.
buffers values_for(const graph& g) {
  buffers all;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const tensor_type t = g.type(g.input(int(i)));
    all.emplace_back(std::size_t(t.bytes()));
    for (std::int64_t k = 0; k < t.size(); ++k) {
      const double u = double((k * 7919 + std::int64_t(i) * 131 + 13) % 101) / 101;
      write_element({all.back().data(), t}, k, is_floating(t.element) ? u - 0.4 : double(k % 5));
    }
  }
  return all;
}
/// What two runs of the graph leave: results, and inputs with their new values.
buffers run_interpreted(const graph& g, buffers memory) {
  buffers left;
  for (int time = 0; time < 2; ++time) {
    value_store values;
    for (std::size_t i = 0; i < memory.size(); ++i)
      values.bind(g.input(int(i)), {memory[i].data(), g.type(g.input(int(i)))});
    interpret(g, values, &compiled_once::compute);
    buffers outputs;
    for (node_id n : g.regions[0].outputs) {
      const tensor_ref v = values.value(n);
      outputs.emplace_back(v.data, v.data + v.type.bytes());
    }
    left = outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (g.outputs[k].updates >= 0) memory[std::size_t(g.outputs[k].updates)] = outputs[k];
  }
  return left;
}
buffers run_planned(const graph& g, buffers memory) {
  loaded_program run(compiled_once::optimize(g), dtype::f32);
  for (std::size_t i = 0; i < memory.size(); ++i) run.bind(int(i), memory[i].data());
  run();
  run();
  int results = 0;
  for (const output_info& o : g.outputs) {
    if (o.updates >= 0) continue;
    const tensor_ref r = run.result(results++);
    memory.emplace_back(r.data, r.data + r.type.bytes());
  }
  return memory;
}
void check_same_bits(const buffers& a, const buffers& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].size() == b[i].size());
    CHECK(std::memcmp(a[i].data(), b[i].data(), a[i].size()) == 0);
  }
}
/// A traced graph, and what both forms make of it, compute the same bits: interpreted and planned.
void check_runs(const graph& g) {
  const buffers in = values_for(g);
  const graph from_json = graph_from_json(graph_to_json(g));
  const graph from_bytes = graph_from_bytes(graph_to_bytes(g));
  check_same_bits(run_interpreted(from_json, in), run_interpreted(g, in));
  const buffers planned = run_planned(g, in);
  check_same_bits(run_planned(from_json, in), planned);
  check_same_bits(run_planned(from_bytes, in), planned);
  int changed = 0;
  for (const output_info& o : g.outputs)
    if (o.updates >= 0) changed += planned[std::size_t(o.updates)] != in[std::size_t(o.updates)];
  CHECK(changed > 8);  // the step has trained
}

/// Words to the words that follow.
struct next_word_loss {
  static constexpr tensor_type target(const tensor_type& prediction) {
    return {dtype::i32, {prediction[0] * prediction[1]}};
  }
  constexpr var operator()(var logits, var words) const {
    return softmax_cross_entropy(reshape(logits, {logits.extent(0) * logits.extent(1), 5}), words);
  }
};

struct sequence_reader {
  nn::lstm<3, 16> memory{};
  nn::dense<16, 5> out{};
  constexpr var operator()(var x) const { return out(memory(x).hidden); }
};

}  // namespace

TEST_CASE("LeNet-5's training step runs from a file bit for bit as it was traced") {
  training_step<models::lenet5, cross_entropy_loss, fixed<optim::adam{}>> step;
  const std::array types{tensor_type{dtype::f32, {4, 1, 28, 28}}, tensor_type{dtype::i32, {4}}};
  check_runs(trace(step, types, {.training = true}));
}

TEST_CASE("GPT's training step runs from a file bit for bit as it was traced") {
  training_step<models::gpt<5, 16, 2, 2, 6>, next_word_loss, fixed<optim::sgd{.momentum = 0.9}>>
      step;
  const std::array types{tensor_type{dtype::i32, {3, 6}}, tensor_type{dtype::i32, {18}}};
  check_runs(trace(step, types, {.training = true}));
}

TEST_CASE("a recurrent net's training step, which has loops, runs from a file bit for bit, too") {
  training_step<sequence_reader, cross_entropy_loss, fixed<optim::adam{}>> step;
  const std::array types{tensor_type{dtype::f32, {4, 6, 3}}, tensor_type{dtype::i32, {4}}};
  check_runs(trace(step, types, {.training = true}));
}

TEST_CASE("a net is traced and saved by one program, and run by another") {
  const scratch_directory folder("plans");
  const auto path = folder / "net.cgraph";
  // The page about graphs on disk shows this.
  {
    models::lenet5 net;
    save_graph(trace(net, std::array{tensor_type{dtype::f32, {1, 1, 28, 28}}}), path);
  }

  const graph g = load_graph(path);
  loaded_program run(compiled_once::optimize(g), dtype::f32);
  std::vector<std::vector<float>> memory;
  for (int i = 0; i < int(g.inputs.size()); ++i) {
    memory.emplace_back(std::size_t(g.type(g.input(i)).size()));
    run.bind(i, reinterpret_cast<std::byte*>(memory.back().data()));
  }
  run();
  const tensor_ref logits = run.result(0);
  CHECK(logits.type == tensor_type{dtype::f32, {1, 10}});
}
