// expect-gcc: out_of_range.cpp:25:49: error: array subscript value '2' is outside the bounds of
// expect-gcc: array
// expect-clang: out_of_range.cpp:20:16: note: read of dereferenced one-past-the-end pointer is not
// expect-clang: allowed
// expect-lines: 80
// An array is read behind its end.
#include <array>
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::array<int, 2> a{1, 2};
    std::size_t i = 2;
    return x * a[i];
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
