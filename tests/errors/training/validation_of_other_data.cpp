// expect: the data's targets are numbers, but the model's are integers
// expect-lines: 40
// fit is to validate on data of another kind.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  const data::tensor_dataset<float, float> others(data::column<float>({10, 10}, {}),
                                                  data::column<float>({10}, {}));
  m.fit(samples, {.epochs = 1}, train::validation(others));
}
