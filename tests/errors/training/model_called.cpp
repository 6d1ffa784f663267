// expect-gcc: model_called.cpp:26:4: error: no match for call to '(Classifier {aka
// expect-gcc: cella::model<Net, cella::features<10> >}) (std::vector<float,
// expect-gcc: std::allocator<float> >)'
// expect-clang: model_called.cpp:26:3: error: type 'Classifier' (aka 'model<Net,
// expect-clang: features<10>>') does not provide a call operator
// expect-lines: 10
// A model is called like a function.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m(std::vector<float>(10));
}
