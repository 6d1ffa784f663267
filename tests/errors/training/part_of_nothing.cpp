// expect: optim::part: no parameter matches "*.biases"; this net begins with "fc.weight"
// expect-lines: 44
// A rule is for parameters that the net does not have.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/parts.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier =
    model<Net, features<10>, cross_entropy_loss{},
          optim::parts(optim::part<"*.biases">(optim::sgd{}), optim::rest(optim::adam{}))>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
