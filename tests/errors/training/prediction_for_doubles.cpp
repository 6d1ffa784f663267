// expect: predict: the elements of the array are double, but the model takes float; convert them
// expect-lines: 23
// predict is given numbers of another type.
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
  m.predict(std::vector<double>(10));
}
