// expect: the batch is part of the model's type: model<Net, Input, cross_entropy_loss{},
// expect: optim::sgd{}, model_options{.batch = 64}>
// expect-lines: 26
// The batch is an option of fit.
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
  m.fit(samples, {.epochs = 1, .batch_size = 64});
}
