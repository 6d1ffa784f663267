// expect-gcc: many_axes.cpp:22:65: error: template constraint failure for
// expect-gcc: 'template<cella::dtype Element, int ...Extents>  requires  sizeof ... ((Extents
// expect-gcc: ...)) <= cella::max_rank struct cella::tensor'
// expect-clang: many_axes.cpp:22:22: error: constraints not satisfied for class template
// expect-clang: 'tensor'
// expect-lines: 47
// expect-errors: 5
// A tensor has more axes than there are.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 1, 1, 1, 1, 1, 1, 1, 1, 10>>(Net{});
  run(std::vector<float>(10));
}
