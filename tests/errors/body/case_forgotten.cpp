// expect-gcc: case_forgotten.cpp:27:49: error: 'constexpr' call flows off the end of the function
// expect-clang: case_forgotten.cpp:27:14: error: call to consteval function
// expect-clang: 'cella::compile<cella::tensor<cella::dtype::f32, 32, 10>, Net>' is not a constant
// expect-clang: expression
// expect-lines: 86
// A switch has no case for what it is given.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

enum class kind { plain, residual };
struct Net {
  nn::dense<10, 10> fc;
  kind how = kind::residual;

  constexpr var operator()(var x) const {
    switch (how) {
      case kind::plain:
        return fc(x);
    }
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
