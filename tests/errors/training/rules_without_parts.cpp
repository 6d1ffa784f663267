// expect: optim::parts takes parts: optim::part<"*.bias">(rule), and optim::rest(rule) as
// expect: the last
// expect-lines: 60
// expect-errors: 9
// Rules do not say for which parameters they are.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/parts.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier =
    model<Net, features<10>, cross_entropy_loss{}, optim::parts(optim::adam{}, optim::sgd{})>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
