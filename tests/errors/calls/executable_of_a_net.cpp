// expect: Net is no program; the program of a net is inference_program<Net, tensor<dtype::f32, 32,
// expect: 10>>, and compile<tensor<dtype::f32, 32, 10>>(Net{}) makes it and runs it
// expect-lines: 11
// An executable is made of a net and not of a program.
#include <cella/data/dataset.hpp>
#include <cella/nn.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/model.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  executable<Net> run;
  run(std::vector<float>(320));
}
