// expect-gcc: var_of_a_number.cpp:18:13: error: conversion from 'double' to non-scalar type
// expect-gcc: 'cella::var' requested
// expect-clang: var_of_a_number.cpp:18:9: error: no viable conversion from 'double' to 'var'
// expect-lines: 37
// expect-errors: 2
// expect-place: library
// A var begins as a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    var s = 0.5;
    return s * x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
