// expect: loss_of_many.cpp:17: the loss is f32[32,10]; it must be one floating-point number (mean
// expect: it)
// expect-lines: 36
// A loss returns a loss for each sample.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, [](var p, var t) { return (p - t) * (p - t); }>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, float>(data::column<float>({10, 10}, {}),
                                           data::column<float>({10, 10}, {})),
        {.epochs = 1});
}
