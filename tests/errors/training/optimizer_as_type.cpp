// expect-gcc: optimizer_as_type.cpp:22:78: error: type/value mismatch at argument 4 in
// expect-gcc: template parameter list for 'template<class Net, class Input, auto Loss, auto
// expect-gcc: Optimizer, cella::model_options Options>
// expect-clang: optimizer_as_type.cpp:22:67: error: template argument for non-type template
// expect-clang: parameter must be an expression
// expect-lines: 30
// expect-errors: 4
// An optimizer is a type and not a value.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, optim::adam>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
