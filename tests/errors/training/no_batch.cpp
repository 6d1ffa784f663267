// expect: model_options::batch is 0; give at least 1
// expect-lines: 21
// The batch of a model is 0.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier =
    model<Net, features<10>, cross_entropy_loss{}, optim::sgd{}, model_options{.batch = 0}>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
