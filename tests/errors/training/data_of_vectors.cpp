// expect: a data set is made of columns: data::tensor_dataset(data::column<float>({n, 10}, x),
// expect: data::column(y))
// expect-lines: 36
// expect-errors: 2
// A data set is made of vectors.
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
  const std::vector<float> x(100);
  const std::vector<int> y(10);
  m.fit(data::tensor_dataset(x, y), {.epochs = 1});
}
