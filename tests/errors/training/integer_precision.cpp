// expect: model_options::precision is i32; a model's parameters are floating-point numbers, f32 or
// expect: f64
// expect-lines: 21
// The parameters of a model are to be integers.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, optim::sgd{},
                         model_options{.precision = dtype::i32}>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
