// expect: Net is no program
// expect-lines: 21
// A net is explained and not a program.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/train/model.hpp>
#include <iostream>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() { explain<Net>(std::cout); }
