// Twelve steps to a first model, from data to a fine-tuned net that tells digits apart. After each
// step the program says what happened.
#include <CLI/CLI.hpp>
#include <cella/data/digits.hpp>
#include <cella/data/terminal_image.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace cella;

// Step 3 defines this net: a functor whose members are its layers. The compiler runs operator()
// once and keeps what it did as a graph; a wrong shape is a compile error with your line.
struct Net {
  nn::conv2d<1, 8, 5> conv1{.padding = 2};
  nn::conv2d<8, 16, 5> conv2;
  // Step 4: weights begin as PyTorch's do unless their layer says otherwise.
  nn::dense<16 * 5 * 5, 32> hidden{.weight = initializer::he_normal()};
  nn::dense<32, 10> out;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);  // [N,1,28,28] -> [N,8,14,14]
    x = max_pool(relu(conv2(x)), 2);  // [N,16,5,5]
    x = relu(hidden(flatten(x)));     // [N,32]
    return out(x);                    // [N,10]: a score for each digit
  }
};

// Steps 6 and 7 choose a loss and an optimizer: together with the net and the shape of one sample
// they make a model, whose training step is compiled as a whole.
using classifier = model<Net, image<1, 28, 28>, cross_entropy_loss{}, optim::adam{}>;

int main(int argc, char** argv) try {
  std::string json;
  CLI::App app("Twelve steps to a first model.");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  std::cout << std::fixed << std::setprecision(3);

  // 1. Load data: pictures [N,1,28,28] and labels [N]. Yours may come from files (data::read_mnist)
  //    or from arrays: data::tensor_dataset(data::column<float>({n, 1, 28, 28}, pixels), ...).
  const auto train = data::digits(6000, 1).to_memory();
  const auto test = data::digits(1000, 2).to_memory();
  const auto images = test.column<0>();
  const auto labels = test.column<1>();
  std::cout << " 1. " << train.size() << " digits to learn from, " << test.size() << " to test\n";

  // 2. Augment: nothing is computed here. Batches are drawn while training asks for them, in a new
  //    order and with new random changes in every epoch.
  const auto batches =
      train.shuffle(1).map<0>(data::random_shift{.fill = data::mnist_scaling.of(0)}).batch(32);
  std::cout << " 2. " << batches.batches() << " batches per epoch, shuffled and shifted\n";

  // 3., 4. Define the net (above) and initialize its weights: the same seed, the same weights.
  classifier m({.seed = 1});
  std::cout << " 3. " << m.parameters().trainable_count() << " parameters:";
  for (const auto& p : m.parameters().entries()) std::cout << ' ' << p.name;
  std::cout << "\n 4. out.bias begins with " << m.net().out.bias.values()[0] << '\n';

  // 5. Run it. It knows nothing yet, so that the answer is a guess.
  std::cout << " 5. the first digit is a " << labels[0] << "; the net says "
            << m.predict(images.row(0)).classes()[0] << '\n';

  // 6. Loss: how wrong the net is. Who guesses among ten digits has about ln 10 = 2.303.
  std::cout << " 6. loss before training " << m.evaluate(test)["loss"] << '\n';

  // 7. Optimizer: one step on the first 32 digits, with learning rate 0.001.
  const double first = m.train_step(train.column<0>().data(), train.column<1>().data(), 32, 0.001);
  const double second = m.train_step(train.column<0>().data(), train.column<1>().data(), 32, 0.001);
  std::cout << " 7. one step takes the loss of its batch from " << first << " to " << second
            << '\n';

  // 8. Train. Metrics and callbacks are handed over in any number; the rate falls in a cosine.
  std::cout << " 8. training\n";
  const optim::cosine rate{.first = 0.002, .length = optim::epochs(4)};
  const auto history = m.fit(batches, {.epochs = 4, .learning_rate = rate}, metrics::accuracy{},
                             train::progress_bar{});
  std::cout << "    loss " << history.front()["loss"] << " in the first epoch, "
            << history.back()["loss"] << " in the last\n";

  // 9. Evaluate on digits that training has not seen.
  metrics::confusion_matrix<10> table;
  const auto scores = m.evaluate(test, metrics::accuracy{}, table);
  std::cout << " 9. test accuracy " << scores["accuracy"] << "; of the fours, " << table(4, 9)
            << " were taken for nines\n";

  // 10. Save: parameters by name, in a format that many libraries read.
  const std::filesystem::path file = "twelve_steps.safetensors";
  m.save(file);
  std::cout << "10. saved in " << file.string() << '\n';

  // 11. Load into a new model, and predict.
  classifier loaded;
  loaded.load(file);
  const auto found = loaded.predict(images).classes();
  std::vector<std::string> captions;
  for (std::size_t i = 0; i < 4; ++i) {
    captions.push_back(data::prediction_caption(found[i], labels[i]));
  }
  std::cout << "11. loaded; the first digits and what the model says:\n";
  data::print_images(std::cout, images, captions);

  // 12. Fine-tune: it has never seen dark digits on white paper. A few hundred teach it, with the
  //     layers behind the convolutions as they are.
  const auto invert = [](data::image_view image) {
    for (float& x : image) x = data::mnist_scaling.of(1 - x);
  };
  const auto few = data::digits(640, 3, {.scaling = {}}).map<0>(invert).to_memory();
  const auto others = data::digits(1000, 4, {.scaling = {}}).map<0>(invert).to_memory();
  const double before = loaded.evaluate(others, metrics::accuracy{})["accuracy"];
  loaded.fit(few.shuffle(1),
             {.epochs = 10, .learning_rate = 0.002, .freeze = {"hidden.*", "out.*"}});
  const double after = loaded.evaluate(others, metrics::accuracy{})["accuracy"];
  std::cout << "12. accuracy on dark digits " << before << ", after fine-tuning " << after << '\n';

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"test_accuracy", scores["accuracy"]},
                                         {"dark_accuracy_before", before},
                                         {"dark_accuracy_after", after}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "twelve_steps: " << e.what() << '\n';
  return 2;
}
