// Prints what the compiler made of LeNet-5: its parameters, its graphs, the steps of its program
// and where they keep their values.
//
// usage: explain [training|inference] [--graphs]
#include <cella/models/lenet.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/train/step.hpp>
#include <cstring>
#include <iostream>

using namespace cella;

using step_cell = training_step<models::lenet5, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}>;
using training =
    program<step_cell, true, dtype::f32, tensor<dtype::f32, 32, 1, 28, 28>, tensor<dtype::i32, 32>>;
using inference = inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>;

int main(int argc, char** argv) {
  bool infers = false;
  explain_options options{.graphs = false};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--graphs") == 0) {
      options.graphs = true;
    } else if (std::strcmp(argv[i], "inference") == 0) {
      infers = true;
    } else if (std::strcmp(argv[i], "training") != 0) {
      std::cerr << "usage: explain [training|inference] [--graphs]\n";
      return 1;
    }
  }
  summarize(std::cout, models::lenet5{});
  std::cout << "\n";
  if (infers)
    explain<inference>(std::cout, options);
  else
    explain<training>(std::cout, options);
}
