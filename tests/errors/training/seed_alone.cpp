// expect: int: a model is told in braces how it runs: {.seed = 1}
// expect-lines: 30
// A model is given its seed alone.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() { Classifier m(1); }
