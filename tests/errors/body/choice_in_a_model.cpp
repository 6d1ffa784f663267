// expect: choice_in_a_model.cpp:16: if: the condition greater result is bool[32,10]; it must be one
// expect: bool (compare with >, equal, ...; any() or all() make one of many; select() and
// expect: logical_and() go element by element)
// expect-lines: 21
// A model's net branches on many elements.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    if (x > 0) return x;
    return fc(x);
  }
};

using Classifier = model<Net, features<10>>;

int main() {
  Classifier m({.seed = 1});
  m.fit(data::tensor_dataset<float, int>(data::column<float>({10, 10}, {}),
                                         data::column<int>({10}, {})),
        {.epochs = 1});
}
