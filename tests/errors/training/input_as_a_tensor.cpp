// expect: a model's input is features<10>, image<1, 28, 28>, tokens<32>, or a struct of such
// expect-lines: 24
// The input of a model is a whole batch.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, tensor<dtype::f32, 32, 10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
