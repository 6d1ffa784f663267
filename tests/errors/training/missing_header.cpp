// expect-gcc: error: 'huber_loss' was not declared in this scope
// expect-clang: error: use of undeclared identifier 'huber_loss'
// expect-lines: 24
// expect-errors: 5
// expect-alone
// A loss is used whose header is not included.
#include <cella/data/dataset.hpp>
#include <cella/nn/layers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, [](var p, var t) { return huber_loss(p, t); }>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                           data::column<float>({10, 10}, {})),
        {.epochs = 1});
}
