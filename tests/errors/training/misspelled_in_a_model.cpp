// expect-gcc: misspelled_in_a_model.cpp:16:50: error: 'rleu' was not declared in this scope
// expect-clang: misspelled_in_a_model.cpp:16:50: error: use of undeclared identifier 'rleu'
// expect-lines: 40
// expect-errors: 2
// An operation is misspelled in a model's net.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return rleu(fc(x)); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
