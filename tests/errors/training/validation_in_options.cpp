// expect: split the data, and hand over train::validation(others, metrics::accuracy{}) behind the
// expect: options; see train/callbacks.hpp
// expect-lines: 26
// A share of the data is to be held back by fit.
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
  m.fit(samples, {.epochs = 3, .validation_split = 0.2});
}
