// expect: the data's targets are numbers, but the model's are integers
// expect-lines: 36
// The labels of classes are floating-point numbers.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                           data::column<float>({10}, {})),
        {.epochs = 1});
}
