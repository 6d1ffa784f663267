// expect: optimizer: velocity.fc.weight is never given a value; hand it to update_slot,
// expect: behind the number that last_slot tells
// expect-lines: 40
// A rule does not keep its momentum.
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
    const var velocity = 0.9 * c.slot("velocity") + gradient;
    c.update_parameter(c.parameter() - c.learning_rate() * velocity);
  }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, own_rule{}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
