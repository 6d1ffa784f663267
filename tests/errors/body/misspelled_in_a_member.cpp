// expect-gcc: misspelled_in_a_member.cpp:14:50: error: 'rleu' was not declared in this scope
// expect-clang: misspelled_in_a_member.cpp:14:50: error: use of undeclared identifier 'rleu'
// expect-lines: 28
// expect-errors: 2
// An operation is misspelled in a function that a class holds compiled.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return rleu(fc(x)); }
};

class Filter {
 public:
  float first(std::span<const float> x) { return run_(x)[0]; }

 private:
  compiled<Net, tensor<dtype::f32, 32, 10>> run_{};
};

int main() {
  Filter f;
  return int(f.first(std::array<float, 320>{}));
}
