// A first model: trained on generated digits in a few seconds, asked, and saved.
#include <cella/data/digits.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/train/model.hpp>
#include <iostream>

using namespace cella;

struct Net {
  nn::conv2d<1, 8, 5> conv1{.padding = 2};
  nn::conv2d<8, 16, 5> conv2;
  nn::dense<16 * 5 * 5, 64> hidden;
  nn::dense<64, 10> out;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    x = max_pool(relu(conv2(x)), 2);
    return out(relu(hidden(flatten(x))));
  }
};
using Classifier = model<Net, image<1, 28, 28>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}>;

int main() {
  const auto train = data::digits(4000, 1).to_memory();
  const auto test = data::digits(1000, 2).to_memory();

  Classifier m({.seed = 1});  // eager mode: {.seed = 1, .mode = execution::eager}
  m.fit(train.shuffle(1), {.epochs = 2, .learning_rate = 0.02});
  std::cout << "accuracy " << m.evaluate(test, metrics::accuracy{})["accuracy"] << "\n";
  m.save("digits.safetensors");
}
