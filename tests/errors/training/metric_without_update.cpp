// expect: mine: has no update for predictions
// expect-lines: 20
// A metric is never told anything.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>
#include <string>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

struct mine {
  std::string name() const { return "mine"; }
  void reset() {}
  double value() const { return 0; }
};

using Classifier = model<Net, features<10>, squared_error_loss{}>;

int main() {
  Classifier m({.seed = 1});
  m.evaluate(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                                data::column<float>({10, 10}, {})),
             mine{});
}
