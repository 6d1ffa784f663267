// expect: the values are a std::vector of the column's type; convert them:
// expect: std::vector<float>(x.begin(), x.end())
// expect-lines: 36
// expect-errors: 2
// A column of float is given doubles.
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
  const std::vector<double> x(100);
  m.fit(data::tensor_dataset(data::column<float>({10, 10}, x), data::column<int>({10}, {})),
        {.epochs = 1});
}
