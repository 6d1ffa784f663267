// expect: rule_without_value.cpp:17: custom_vjp: the rule takes the arguments of the function, its
// expect: value and the cotangent of that: [](var x, var y, var dy) { return ...; }
// expect-lines: 20
// The rule of an own derivative does not take the value.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/custom.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const auto own =
        custom_vjp([](var a) { return a * a; }, [](var a, var dy) { return 2 * a * dy; });
    return own(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
