#include <cella/models/gpt.hpp>
#include <cella/nn/losses.hpp>

#include "first_step.hpp"

int main() {
  using namespace cella;
  return first_step<model<models::gpt<1024, 256, 4, 4, 128>, tokens<128>, nn::token_cross_entropy{},
                          optim::adam{}, model_options{.batch = 8}>>(128, 128);
}
