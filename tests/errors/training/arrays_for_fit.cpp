// expect-gcc: arrays_for_fit.cpp:25:8: error: no matching function for call to
// expect-gcc: 'cella::model<Net, cella::features<10> >::fit(std::vector<float,
// expect-gcc: std::allocator<float> >, std::vector<int, std::allocator<int> >,
// expect-clang: arrays_for_fit.cpp:25:5: error: no matching member function for call to 'fit'
// expect-lines: 29
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
