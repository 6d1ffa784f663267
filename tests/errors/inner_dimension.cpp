// expect: inner_dimension.hpp:19: matmul: inner dimensions differ: relu result is [32,120],
// expect: fc2.weight is [10,256] transposed
// expect-lines: 16
#include "cells/inner_dimension.hpp"

#include <cella/runtime/executable.hpp>

float first_logit(cella::parameter_store& parameters, const float* x) {
  cella::executable<inner_dimension::program_of<inner_dimension::Wrong>> infer(parameters);
  infer(x);
  return infer.result<0>()[0];
}
