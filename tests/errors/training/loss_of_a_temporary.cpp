// expect-gcc: loss_of_a_temporary.cpp:21:26: error: expression '<throw-expression>' is not a constant
// expect-gcc: expression
// expect-clang: the compiler cannot run the loss or the optimizer, which throws or calls what is
// expect-clang: not constexpr; for the place hand over data that are a variable
// expect-lines: 84
// A loss throws, and the data are a view.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, [](var p, var t) {
  if (p.extent(1) == 10) throw 1;
  return mean(square(p - t));
}>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, float> samples(data::column<float>({10, 10}, {}),
                                                   data::column<float>({10, 10}, {}));
  m.fit(samples.shuffle(1), {.epochs = 1});
}
