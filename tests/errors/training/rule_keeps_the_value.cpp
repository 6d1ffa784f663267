// expect: optimizer: fc.weight keeps its value; hand the new one to update_parameter
// expect-lines: 40
// A rule computes a new value and does not hand it over.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

struct own_rule {
  constexpr void operator()(optim::context& c, var gradient) const {
    var w = c.parameter();
    w = w - c.learning_rate() * gradient;
  }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, own_rule{}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
