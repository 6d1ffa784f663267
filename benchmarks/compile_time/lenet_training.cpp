// LeNet-5's training step as a program of its own: what a user compiles. `compile_time.py` measures
// its compilation, its size and how long it takes from its start to the end of three steps.
//
// usage: lenet_training [STEPS]
#include <cella/models/lenet.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace cella;

using step_program =
    program<training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
            true, dtype::f32, tensor<dtype::f32, 32, 1, 28, 28>, tensor<dtype::i32, 32>>;

int main(int argc, char** argv) {
  models::lenet5 net;
  parameter_store store(net, 1);
  executable<step_program> train(store);
  train.scalar(step_program::scalar("learning_rate"), 0.01);
  std::vector<float> images(32 * 784);
  std::vector<std::int32_t> labels(32);
  generator random(7);
  for (float& pixel : images) pixel = random.normal();
  for (std::int32_t& label : labels) label = std::int32_t(random() % 10);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 3;
  for (int i = 0; i < steps; ++i) train(images, labels);
  std::printf("loss %g\n", double(train.result<0>()[0]));
}
