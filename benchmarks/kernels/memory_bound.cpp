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
constexpr auto log_soft = [](var x) { return log_softmax(x); };
constexpr auto dropped = [](var x) { return dropout(x, 0.1); };
constexpr auto bent = [](var x) { return gelu_tanh(x); };
constexpr auto turned = [](var x) { return transpose(x, {1, 0}); };
constexpr auto heads = [](var x) { return transpose(x, {0, 2, 1, 3}); };
constexpr auto same = [](var x) { return x; };
constexpr auto column_sum = [](var x) { return sum(x, {0}); };
constexpr auto column_top = [](var x) { return max(x, {0}); };
constexpr auto row_sum = [](var x) { return sum(x, {1}); };
constexpr auto row_top = [](var x) { return max(x, {1}); };
/// A function without parameters.
template <auto F>
struct over_axis {
  constexpr var operator()(var x) const { return F(x); }
};
}  // namespace

std::span<const kernel_case> memory_bound() {
  static constexpr std::array cases{
      trained<of_parameter<soft, 4096>, tensor<dtype::f32, 4096, 4096>>("softmax", "4096 x 4096"),
      predicted<of_parameter<log_soft, 4096>, tensor<dtype::f32, 4096, 4096>>(
          "softmax", "4096 x 4096, its logarithm"),
      trained<of_parameter<same, 1024>, tensor<dtype::f32, 1024, 1024>, dtype::f32,
              cross_entropy_loss, tensor<dtype::i32, 1024>>("cross-entropy", "1024 x 1024 (gpt_8)"),
      trained<of_parameter<dropped, 4096>, tensor<dtype::f32, 4096, 4096>>("dropout",
                                                                           "4096 x 4096"),
      trained<nn::embedding<1024, 256>, tensor<dtype::i32, 1024>>("embedding",
                                                                  "1024 of 1024 x 256 (gpt_8)"),
      trained<nn::embedding<32768, 512>, tensor<dtype::i32, 16384>>("embedding",
                                                                    "16384 of 32768 x 512"),
      predicted<of_parameter<turned, 4096>, tensor<dtype::f32, 4096, 4096>>("transpose",
                                                                            "4096 x 4096"),
      predicted<of_parameter<turned, 2048>, tensor<dtype::f64, 4096, 2048>, dtype::f64>(
          "transpose", "4096 x 2048, f64"),
      predicted<of_parameter<heads, 64>, tensor<dtype::f32, 8, 128, 4, 64>>(
          "transpose", "8 x 128 x 4 x 64, heads (gpt_8)"),
      predicted<of_parameter<heads, 64>, tensor<dtype::f32, 64, 512, 8, 64>>(
          "transpose", "64 x 512 x 8 x 64, heads"),
      predicted<of_parameter<same, 4096>, tensor<dtype::f32, 4096, 4096>>("elementwise",
                                                                          "4096 x 4096, sum"),
      trained<of_parameter<bent, 4096>, tensor<dtype::f32, 4096, 4096>>("elementwise",
                                                                        "4096 x 4096, gelu"),
      predicted<over_axis<column_sum>, tensor<dtype::f32, 16384, 1024>>("reduction",
                                                                        "16384 x 1024, columns"),
      predicted<over_axis<column_top>, tensor<dtype::f32, 16384, 1024>>(
          "reduction", "16384 x 1024, largest of columns"),
      predicted<over_axis<row_sum>, tensor<dtype::f32, 16384, 1024>>("reduction",
                                                                     "16384 x 1024, rows"),
      predicted<over_axis<row_top>, tensor<dtype::f32, 16384, 1024>>(
          "reduction", "16384 x 1024, largest of rows"),
  };
  return cases;
}

}  // namespace cella::benchmark
