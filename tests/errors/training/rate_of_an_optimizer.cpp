// expect-gcc: rate_of_an_optimizer.cpp:21:87: error: 'cella::optim::sgd' has no non-static
// expect-gcc: data member named 'lr'
// expect-clang: rate_of_an_optimizer.cpp:21:79: error: field designator 'lr' does not refer to
// expect-clang: any field in type 'optim::sgd'
// expect-lines: 32
// expect-errors: 5
// The learning rate is told to the optimizer.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, optim::sgd{.lr = 0.1}>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
