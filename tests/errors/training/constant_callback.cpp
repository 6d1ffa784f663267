// expect: cella::train::early_stop: it is const, but remembers what it is told; leave const out
// expect-lines: 44
// A callback is const.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, squared_error_loss{}>;

int main() {
  Classifier m({.seed = 1});
  const train::early_stop stop;
  m.fit(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                           data::column<float>({10, 10}, {})),
        {.epochs = 1}, stop);
}
