// expect: mode data: the mesh model=2 has no axis called data, along which samples are divided
// expect-lines: 30
// Samples are to be divided on a mesh without an axis for them.
#include <cella/nn/layers.hpp>
#include <cella/parallel/divided.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Program = program<training_step<Net, cross_entropy_loss, fixed<optim::sgd{}>>, true,
                        dtype::f32, tensor<dtype::f32, 32, 10>, tensor<dtype::i32, 32>>;
using Ranks = parallel::mesh<parallel::axis<"model", 2>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<parallel::divided<Program, Ranks, parallel::mode::data>> run(store);
}
