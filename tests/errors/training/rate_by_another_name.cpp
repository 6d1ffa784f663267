// expect: write {.epochs = 3, .learning_rate = 0.1}
// expect-lines: 26
// The learning rate has the name that it has in PyTorch.
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
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 3, .lr = 0.1});
}
