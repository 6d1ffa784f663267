// expect-gcc: score_as_a_number.cpp:26:30: error: cannot convert 'cella::train::scores' to
// expect-gcc: 'const double' in initialization
// expect-clang: score_as_a_number.cpp:26:16: error: no viable conversion from 'train::scores'
// expect-clang: to 'const double'
// expect-lines: 12
// Scores are taken as a number.
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
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  const double a = m.evaluate(samples, metrics::accuracy{});
  return int(a);
}
