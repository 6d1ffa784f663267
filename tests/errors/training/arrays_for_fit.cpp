// expect: fit takes samples and labels as one data set,
// expect: data::tensor_dataset(data::column<float>({n, 10}, x), data::column(y))
// expect-lines: 38
// fit is given vectors and no data set.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(std::vector<float>(100), std::vector<int>(10), {.epochs = 1});
}
