// expect: model<cella::features<10>, Net>: the net comes first, then what it takes
// expect-lines: 20
// The net and what it takes are swapped.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Classifier = model<features<10>, Net>;

int main() { Classifier m({.seed = 1}); }
