// expect: float: predict takes an array of samples, such as a std::vector or a std::span
// expect-lines: 32
// predict is given a number.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  const auto y = m.predict(1.f);
}
