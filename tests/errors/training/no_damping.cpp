// expect: optim::kfac: damping is 0; it must be at least 1e-12, and finite
// expect-lines: 44
// The factors of K-FAC are not damped.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>, cross_entropy_loss{}, optim::kfac{.damping = 0}>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
