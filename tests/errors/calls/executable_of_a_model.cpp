// expect: is a model, not a program; a model M is run by its fit, evaluate and predict, and its
// expect: programs are M::engine_type::training and M::engine_type::inference<32>
// expect-lines: 11
// An executable is made of a model.
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
  executable<Classifier> run;
  run(std::vector<float>(320));
}
