// expect-gcc: member_of_a_union.cpp:27:49: error: accessing 'Net::operator()(cella::var)
// expect-gcc: const::<unnamed union>::f' member instead of initialized
// expect-gcc: 'Net::operator()(cella::var) const::<unnamed union>::i' member in
// expect-clang: member_of_a_union.cpp:22:16: note: read of member 'f' of union with active
// expect-clang: member 'i' is not allowed in a constant expression
// expect-lines: 84
// A union is read as another type.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    union {
      int i;
      float f;
    } u{.i = 3};
    return x * u.f;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
