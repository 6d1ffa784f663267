// expect: a schedule is a function of (std::int64_t step, std::int64_t steps_per_epoch) that
// expect: returns the rate; see optim/schedules.hpp
// expect-lines: 40
// A schedule is a function of the epoch.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  m.fit(samples, {.learning_rate = [](int epoch) { return 0.1 / (1 + epoch); }});
}
