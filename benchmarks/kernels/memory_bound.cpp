#include "nets.hpp"

namespace cella::benchmark {

namespace {
/// A function of an array of parameters, so that it has a derivative to compute.
template <auto F, int... Extents>
struct of_parameter {
  parameter<Extents...> weight{initializer::normal()};
  constexpr var operator()(var x) const { return F(x + weight); }
};
constexpr auto soft = [](var x) { return softmax(x); };
constexpr auto dropped = [](var x) { return dropout(x, 0.1); };
constexpr auto bent = [](var x) { return gelu_tanh(x); };
constexpr auto turned = [](var x) { return transpose(x, {1, 0}); };
constexpr auto heads = [](var x) { return transpose(x, {0, 2, 1, 3}); };
constexpr auto same = [](var x) { return x; };
}  // namespace

std::span<const kernel_case> memory_bound() {
  static constexpr std::array cases{
      trained<of_parameter<soft, 1024>, tensor<dtype::f32, 1024, 1024>>("softmax", "1024 x 1024"),
      trained<of_parameter<same, 1024>, tensor<dtype::f32, 1024, 1024>, dtype::f32,
              cross_entropy_loss, tensor<dtype::i32, 1024>>("cross-entropy", "1024 x 1024 (gpt_8)"),
      trained<of_parameter<dropped, 1024>, tensor<dtype::f32, 1024, 1024>>("dropout",
                                                                           "1024 x 1024"),
      trained<nn::embedding<1024, 256>, tensor<dtype::i32, 1024>>("embedding",
                                                                  "1024 of 1024 x 256 (gpt_8)"),
      predicted<of_parameter<turned, 1024>, tensor<dtype::f32, 1024, 1024>>("transpose",
                                                                            "1024 x 1024"),
      predicted<of_parameter<heads, 64>, tensor<dtype::f32, 8, 128, 4, 64>>(
          "transpose", "8 x 128 x 4 x 64, heads (gpt_8)"),
      predicted<of_parameter<same, 4096>, tensor<dtype::f32, 1024, 4096>>("elementwise",
                                                                          "1024 x 4096, sum"),
      trained<of_parameter<bent, 1024>, tensor<dtype::f32, 1024, 1024>>(
          "elementwise", "1024 x 1024, gelu (gpt_8)"),
  };
  return cases;
}

}  // namespace cella::benchmark
