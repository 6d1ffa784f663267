// expect: is a model, not a program
// expect-lines: 15
// A model is explained and not a program.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/train/model.hpp>
#include <iostream>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;
int main() {
  Classifier m({.seed = 1});
  explain(m, std::cout);
}
