// expect: hand over a data set (see data/sample.hpp) or a loader of one
// expect-lines: 36
// fit is given a vector.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
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
  m.fit(std::vector<float>(100), {.epochs = 1});
}
