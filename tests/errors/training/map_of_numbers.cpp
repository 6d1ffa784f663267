// expect: map: the function takes the sample (or, with map<I>, column I, counted from 0), which it
// expect: changes in place, and perhaps a generator&; it is called in several threads, so its call
// expect: operator is const
// expect-lines: 30
// A view of data maps numbers.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, squared_error_loss{}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, float> samples(data::column<float>({10, 10}, {}),
                                                   data::column<float>({10, 10}, {}));
  m.fit(samples.map([](float x) { return x / 255; }), {.epochs = 1});
}
