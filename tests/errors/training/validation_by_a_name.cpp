// expect: evaluate takes metrics; see train/metrics.hpp
// expect-lines: 40
// The metric of a validation is given by its name.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/callbacks.hpp>
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
  m.fit(samples, {.epochs = 1}, train::validation(samples, "accuracy"));
}
