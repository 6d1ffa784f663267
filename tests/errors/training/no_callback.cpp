// expect: fit takes metrics and callbacks; a callback has a member on_train_begin, on_epoch_begin,
// expect: on_batch_end, on_epoch_end or on_train_end
// expect-lines: 36
// fit is given a number in place of a metric.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1}, 3);
}
