// expect: name what stands behind the first rate: {.first = 0.1, .length = optim::epochs(10)}
// expect-lines: 23
// Where a schedule ends is given by position.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/schedules.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m;
  data::tensor_dataset<float, int> d(data::column<float>({10, 10}, {}),
                                     data::column<int>({10}, {}));
  m.fit(d, {.epochs = 3, .learning_rate = optim::cosine{0.1, 100}});
}
