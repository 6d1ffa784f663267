// expect: a schedule is an object, such as optim::cosine{.first = 0.1}
// expect-lines: 23
// A schedule is given by its name.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
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
  m.fit(d, {.epochs = 3, .learning_rate = "cosine"});
}
