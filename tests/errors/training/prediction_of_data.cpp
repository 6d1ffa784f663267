// expect: predict takes arrays; of a data set predict batch by batch: for (auto& b :
// expect: data.batch(32).epoch(0)) m.predict(b.column<0>())
// expect-lines: 32
// predict is given a data set.
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
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  const auto y = m.predict(samples);
}
