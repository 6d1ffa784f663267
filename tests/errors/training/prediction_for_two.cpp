// expect: predict: hand over one array for each input, 1 instead of 2
// expect-lines: 24
// predict is given more arrays than the model has inputs.
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
  auto ask = m.predictor();
  ask.predict(std::vector<float>(10), std::vector<float>(10));
}
