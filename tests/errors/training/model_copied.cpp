// expect-gcc: model_copied.cpp:25:22: error: use of deleted function 'cella::model<Net, Input,
// expect-gcc: Loss, Optimizer, Options>::model(const cella::model<Net, Input, Loss, Optimizer,
// expect-gcc: Options>&)
// expect-clang: model_copied.cpp:25:14: error: call to deleted constructor of 'Classifier'
// expect-clang: (aka 'model<Net, features<10>>')
// expect-lines: 14
// A model is copied.
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
  Classifier other = m;
  other.save("net.safetensors");
}
