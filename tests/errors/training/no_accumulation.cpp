// expect: optim::accumulate: an update is to be made of 0 batches; it needs at least one
// expect-lines: 44
// An update is made of no batch.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/accumulate.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier =
    model<Net, features<10>, squared_error_loss{}, optim::accumulate<0>(optim::sgd{})>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                           data::column<float>({10, 10}, {})),
        {.epochs = 1});
}
