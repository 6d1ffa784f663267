// Prints what the compiler made of LeNet-5: its parameters and cells, its graphs, the steps of its program
// and where they keep their values.
//
// usage: explain [training|inference] [--graphs]
#include <cella/models/lenet.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/summary.hpp>
#include <cella/train/model.hpp>
#include <cstring>
#include <iostream>

using namespace cella;

using lenet = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{},
                    optim::sgd{.momentum = 0.9}, model_options{.batch = 32}>;
using training = lenet::engine_type::training;
using inference = lenet::engine_type::inference<1>;

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
  summarize<tensor<dtype::f32, 1, 1, 28, 28>>(std::cout, models::lenet5{});
  std::cout << "\n";
  if (infers)
    explain<inference>(std::cout, options);
  else
    explain<training>(std::cout, options);
}
