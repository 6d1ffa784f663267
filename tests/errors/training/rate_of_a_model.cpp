// expect: tell it to fit: m.fit(data, {.epochs = 3, .learning_rate = 0.1})
// expect-lines: 40
// A model is told its learning rate.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() { Classifier m({.seed = 1, .learning_rate = 0.1}); }
