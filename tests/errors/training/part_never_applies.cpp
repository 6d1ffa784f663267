// expect: optim::parts: the part "*.bias" never applies: the part "*" before it takes "fc.bias"; put
// expect: the narrower pattern first, and optim::rest last
// expect-lines: 44
// The rule of the biases stands behind that of all parameters.
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
          optim::parts(optim::rest(optim::adam{}), optim::part<"*.bias">(optim::sgd{}))>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
