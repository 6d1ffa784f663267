// expect-gcc: printed_by_cout.cpp:21:18: error: call to non-'constexpr' function
// expect-gcc: 'std::basic_ostream<char, _Traits>& std::operator<<(basic_ostream<char,
// expect-gcc: _Traits>&, const char*)
// expect-clang: printed_by_cout.cpp:20:17: fatal error: constexpr function never produces a
// expect-clang: constant expression [-Winvalid-constexpr]
// expect-lines: 45
// expect-errors: 2
// expect-place: library
// A call operator prints a word.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <iostream>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::cout << "here\n";
    return fc(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
