// expect-gcc: own_rule: its call operator is not constexpr, so that the compiler cannot trace it;
// expect-gcc: write constexpr in front of it
// expect-clang: note: non-constexpr function 'operator()' cannot be used in a constant expression
// expect-lines: 84
// The rule of an optimizer is not constexpr.
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
  void operator()(optim::context& c, var gradient) const {
    c.update_parameter(c.parameter() - c.learning_rate() * gradient);
  }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, own_rule{}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.epochs = 1});
}
