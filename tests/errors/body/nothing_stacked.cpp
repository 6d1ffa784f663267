// expect-gcc: nothing_stacked.cpp:25:49: error: call to non-'constexpr' function
// expect-gcc: 'cella::no_place
// expect-gcc: cella::detail::nothing_is_concatenated_or_stacked_it_takes_at_least_one_var(std::source_location)'
// expect-clang: non-constexpr function
// expect-clang: 'nothing_is_concatenated_or_stacked_it_takes_at_least_one_var' cannot be used
// expect-clang: in a constant expre
// expect-lines: 77
// Nothing is stacked.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::vector<var> rows;
    return stack(rows, 0);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
