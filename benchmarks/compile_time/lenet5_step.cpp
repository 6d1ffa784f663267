#include <cella/models/lenet.hpp>

#include "first_step.hpp"

int main() {
  using namespace cella;
  return first_step<
      model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}>>(
      28 * 28);
}
