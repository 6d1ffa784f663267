// expect: TODO
// expect-lines: 14
#include "cells/loss_in_a_step.hpp"

#include <cella/runtime/executable.hpp>

double last_loss(cella::parameter_store& parameters, const float* x, const int* y) {
  cella::executable<loss_in_a_step::program_of<loss_in_a_step::Wrong>> step(parameters);
  step(x, y);
  return step.result<0>()[0];
}
