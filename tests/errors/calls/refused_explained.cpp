// expect: refused_explained.cpp:12: matmul: inner dimensions differ: x is [32,10], fc.weight is
// expect: [12,20]
// A program that was refused is explained.
#include <cella/nn.hpp>
#include <cella/runtime/explain.hpp>
#include <iostream>

using namespace cella;

struct Net {
  nn::dense<20, 12> fc;
  constexpr var operator()(var x) const { return fc(x); }
};

int main() { explain<inference_program<Net, tensor<dtype::f32, 32, 10>>>(std::cout); }
