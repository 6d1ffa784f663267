// expect: int: evaluate takes metrics; see train/metrics.hpp
// expect-lines: 16
// evaluate is given a number in place of a metric.
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
  m.evaluate(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                              data::column<int>({10}, {})),
             3);
}
