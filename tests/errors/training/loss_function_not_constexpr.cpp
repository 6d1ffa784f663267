// expect-gcc: cella::fixed<own_loss>: the function is not constexpr, so that the compiler cannot
// expect-gcc: trace it; write constexpr in front of it
// expect-clang: note: non-constexpr function 'own_loss' cannot be used in a constant expression
// expect-lines: 84
// A loss is a function that is not constexpr.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

inline var own_loss(var predicted, var truth) { return mean(square(predicted - truth)); }

using Classifier = model<Net, features<10>, &own_loss>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, float> samples(data::column<float>({10, 10}, {}),
                                                   data::column<float>({10, 10}, {}));
  m.fit(samples, {.epochs = 1});
}
