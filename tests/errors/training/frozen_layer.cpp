// expect: freeze: no parameter matches "fc"; for all of this layer write "fc.*"
// expect-lines: 44
// A layer is frozen by its name alone.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier =
    model<Net, features<10>, cross_entropy_loss{}, optim::freeze<"fc">(optim::adam{})>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
