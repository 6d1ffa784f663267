// expect: Patience: on_epoch_end cannot be called with what fit tells it; let it take
// expect: train::fit_state&, or auto& to reach the model
// expect-lines: 36
// An event of a callback takes what is not the state of fit.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

struct Patience {
  void on_train_begin(train::fit_state&) {}
  void on_epoch_end(double& loss) { stop = loss < 0.01; }
  bool stop = false;
};

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 100}, Patience{});
}
