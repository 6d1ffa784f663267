// expect: the data's inputs are integers, but the model's are numbers
// expect-lines: 36
// The columns of the data are swapped.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
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
  m.fit(data::tensor_dataset(data::column<int>({2}, {0, 1}),
                             data::column<float>({2, 10}, std::vector<float>(20))),
        {.epochs = 1});
}
