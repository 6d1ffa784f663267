// expect-gcc: unknown_fit_option.cpp:27:8: error: no matching function for call to
// expect-gcc: 'cella::model<Net, cella::features<10> >::fit(const
// expect-gcc: cella::data::tensor_dataset<float, int>&, <brace-enclosed initializer list>)'
// expect-clang: unknown_fit_option.cpp:27:5: error: no matching member function for call to
// expect-clang: 'fit'
// expect-lines: 70
// An option of fit is misspelled.
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
  m.fit(samples, {.epocs = 3});
}
