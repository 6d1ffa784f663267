// expect: TODO
// expect-lines: 14
#include "cells/inner_dimension.hpp"

#include <cella/runtime/executable.hpp>

float first_logit(cella::parameter_store& parameters, const float* x) {
  cella::executable<inner_dimension::program_of<inner_dimension::Wrong>> infer(parameters);
  infer(x);
  return infer.result<0>()[0];
}
