// expect: watcher: fit has no event on_epoch_start; it tells of on_train_begin, on_epoch_begin,
// expect: on_batch_end, on_epoch_end and on_train_end
// expect-lines: 36
// One of a callback's events has the name that another framework gives it.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

struct watcher {
  void on_epoch_start(train::fit_state&) {}
  void on_epoch_end(auto&) {}
};

int main() {
  Classifier m({.seed = 1});
  const data::tensor_dataset<float, int> samples(data::column<float>({10, 10}, {}),
                                                 data::column<int>({10}, {}));
  watcher w;
  m.fit(samples, {.epochs = 3}, w);
}
