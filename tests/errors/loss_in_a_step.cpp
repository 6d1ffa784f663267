// expect: loss_in_a_step.hpp:20: sub: element types differ: add result of fc is f32[32,10], y is
// expect: i32[32]; convert one with cast()
// expect-lines: 16
#include "cells/loss_in_a_step.hpp"

#include <cella/runtime/executable.hpp>

double last_loss(cella::parameter_store& parameters, const float* x, const int* y) {
  cella::executable<loss_in_a_step::program_of<loss_in_a_step::Wrong>> step(parameters);
  step(x, y);
  return step.result<0>()[0];
}
