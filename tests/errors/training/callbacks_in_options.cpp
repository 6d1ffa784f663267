// expect: metrics and callbacks stand behind the options: m.fit(data, {.epochs = 3},
// expect: metrics::accuracy{}, stop)
// expect-lines: 26
// Callbacks are an option of fit.
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
  train::early_stop stop;
  m.fit(samples, {.epochs = 3, .callbacks = {stop}});
}
