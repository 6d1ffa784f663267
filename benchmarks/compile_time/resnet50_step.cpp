#include <cella/models/resnet.hpp>

#include "first_step.hpp"

int main() {
  using namespace cella;
  return first_step<model<models::resnet50<1000>, image<3, 224, 224>, cross_entropy_loss{},
                          optim::sgd{.momentum = 0.9}, model_options{.batch = 4}>>(3 * 224 * 224);
}
