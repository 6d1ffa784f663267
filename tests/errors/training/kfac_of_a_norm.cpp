// expect: optim::kfac: "norm.weight" f32[10] is no weight of such a layer, nor a bias beside one:
// expect: its gradient is made by sum; the rule is for the weights and biases of dense layers and
// expect: convolutions: optim::parts(optim::part<"norm.*">(optim::adamw{}),
// expect: optim::rest(optim::kfac{}))
// expect-lines: 44
// K-FAC is to train a norm.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;
  nn::layer_norm<10> norm;

  constexpr var operator()(var x) const { return norm(fc(x)); }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, optim::kfac{}>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
