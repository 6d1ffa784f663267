// expect: float: predict takes an array of samples for each input, such as a std::vector, or
// expect: addresses of samples and the number of rows
// expect-lines: 32
// predict is given the numbers of a sample one by one.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<2, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<2>>;

int main() {
  Classifier m({.seed = 1});
  const auto y = m.predict(1.5f, 2.5f);
}
