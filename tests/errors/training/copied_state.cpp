// expect: Patience: on_epoch_end takes a copy of train::fit_state, so that what it sets there, such
// expect: as stop, is lost; let it take train::fit_state&
// expect-lines: 36
// A callback takes the state of fit by value.
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
  void on_epoch_end(train::fit_state s) { s.stop = s.loss < 0.01; }
};

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 100}, Patience{});
}
