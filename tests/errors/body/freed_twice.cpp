// expect-gcc: freed_twice.cpp:18:12: error: deallocation of already deallocated storage
// expect-clang: freed_twice.cpp:18:5: note: delete of pointer that has already been deleted
// expect-lines: 84
// Memory is freed twice.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    int* p = new int(3);
    x = x * *p;
    delete p;
    delete p;
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
