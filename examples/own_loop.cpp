// Your own training loop, on compiled programs instead of a model: you decide what happens between
// two steps, where batches come from, and what is kept.
#include <CLI/CLI.hpp>
#include <cella/data/digits.hpp>
#include <cella/interop/file.hpp>
#include <cella/models/mlp.hpp>
#include <cella/optim/schedules.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace cella;

constexpr int batch = 32;
using pixels = tensor<dtype::f32, batch, 1, 28, 28>;
using labels = tensor<dtype::i32, batch>;

struct Net {
  models::mlp<784, 64, 10> layers;

  constexpr var operator()(var x) const { return layers(flatten(x)); }
};

// A training step is a cell like any other: forward, loss, gradients and updates in one graph.
using step_cell = training_step<Net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
using training = program<step_cell, true, dtype::f32, pixels, labels>;
using inference = inference_program<Net, pixels>;

int main(int argc, char** argv) try {
  std::string json;
  CLI::App app("Trains a small net in a loop of its own.");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  // Both programs work on the same parameters.
  step_cell cell;
  parameter_store parameters(cell.net, 1);
  executable<training> step(parameters);
  executable<inference> ask(parameters);
  constexpr int rate = training::scalar("learning_rate");

  constexpr int epochs = 4;
  const auto batches = data::digits(8000, 1).to_memory().shuffle(1).batch(batch);
  const auto schedule = optim::warmup(
      optim::steps(50), optim::cosine{.first = 0.05, .length = optim::epochs(epochs)});
  std::int64_t count = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    for (auto& b : batches.epoch(epoch)) {
      step.scalar(rate, schedule(count++, batches.batches()));
      step(b.column<0>(), b.column<1>());
      loss += double(step.result<0>()[0]);  // result<1>() would be the batch's logits
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << loss / double(batches.batches()) << '\n';
  }

  // A program takes full batches: 2,016 digits are 63 of them.
  const auto test = data::digits(63 * batch, 2).to_memory();
  std::int64_t right = 0;
  for (auto& b : test.batch(batch).epoch(0)) {
    ask(b.column<0>());
    const auto logits = ask.result();
    for (std::size_t i = 0; i < batch; ++i) {
      const auto scores = logits.subspan(10 * i, 10);
      right += std::ranges::max_element(scores) - scores.begin() == b.column<1>()[i];
    }
  }
  const double accuracy = double(right) / double(test.size());
  std::cout << "test accuracy " << accuracy << '\n';

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"test_accuracy", accuracy}, {"steps", count}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "own_loop: " << e.what() << '\n';
  return 2;
}
