// expect: the compiler makes one program for all ranks, but the input x f32[32,10] does not divide
// expect: evenly on the mesh data=3; let the batch be a multiple, or use rank_program
// expect-lines: 30
// A compiled program is divided among ranks that do not divide the batch.
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
using Ranks = parallel::mesh<parallel::axis<"data", 3>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<parallel::divided<Program, Ranks, parallel::mode::data>> run(store);
}
