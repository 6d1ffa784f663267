// expect: and behind those metrics and callbacks, such as train::validation(data)
// expect-lines: 40
// Data for validation stand before the options.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m;
  data::tensor_dataset<float, int> d(data::column<float>({10, 10}, {}),
                                     data::column<int>({10}, {}));
  m.fit(d, d, {.epochs = 3});
}
