// expect-gcc: thread.cpp:20:17: error: variable 't' of non-literal type 'std::thread' in
// expect-gcc: 'constexpr' function only available with '-std=c++2b' or '-std=gnu++2b'
// expect-clang: thread.cpp:20:17: error: variable of non-literal type 'std::thread' cannot be
// expect-clang: defined in a constexpr function before C++23
// expect-lines: 52
// expect-errors: 2
// expect-place: library
// A call operator starts a thread.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <thread>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::thread t([] {});
    t.join();
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
