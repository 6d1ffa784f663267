// expect-gcc: model_without_step.cpp:25:5: error: 'using Classifier = class cella::model<Net,
// expect-gcc: cella::features<10> >' {aka 'class cella::model<Net, cella::features<10> >'} has
// expect-gcc: no member named 'zero_grad'
// expect-clang: model_without_step.cpp:25:5: error: no member named 'zero_grad' in
// expect-clang: 'cella::model<Net, cella::features<10>>'
// expect-lines: 10
// A model is trained as in PyTorch.
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
  m.zero_grad();
}
