// expect: optimizer: fc.weight is f32[10,10], but its new value is f32[]
// expect-lines: 40
// The rule of an optimizer makes a parameter of another shape.
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
    c.update_parameter(mean(c.parameter() - c.learning_rate() * gradient));
  }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, own_rule{}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
