// expect-gcc: input_as_a_tensor.cpp:22:56: error: template constraint failure for
// expect-gcc: 'template<class Net, class Input, auto Loss, auto Optimizer,
// expect-gcc: cella::model_options Options>  requires  model_inputs<Input> class
// expect-clang: input_as_a_tensor.cpp:22:20: error: constraints not satisfied for class
// expect-clang: template 'model'
// expect-lines: 40
// expect-errors: 4
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
