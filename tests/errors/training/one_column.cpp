// expect: the data have 1 column, but the model takes 2: inputs, targets
// expect-lines: 36
// The data have no labels.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float>(data::column<float>({10, 10}, {})), {.epochs = 1});
}
