// One image at a time: a convolution with the maxima of its result, whose image may need a border.
#include <cella/backend/host/threads.hpp>
#include <cella/models/lenet.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Image [1,2,13,9] and filters [Filters,2,3,3] from one vector.
template <int Filters, int Before, int After>
struct pooled_convolution {
  static constexpr int pixels = 2 * 13 * 9, weights = Filters * 18;
  constexpr var operator()(var x) const {
    const var image = reshape(slice(x, 0, 0, pixels), {1, 2, 13, 9});
    const var filters = reshape(slice(x, 0, pixels, pixels + weights), {Filters, 2, 3, 3});
    const window walk{.before = {Before, Before}, .after = {After, After}};
    return relu(max_pool(conv2d(image, filters, walk), 2));
  }
};
template <int Filters, int Before, int After>
void check() {
  using cell = pooled_convolution<Filters, Before, After>;
  constexpr int size = cell::pixels + cell::weights;
  run_compiled<cell, size>(some_numbers(size));
  CHECK(steps_of_kind<cell, size>(step_kind::convolution_pool) == (Before == After));
}

}  // namespace

TEST_CASE("borders of any width, or none, with few channels and with many") {
  // Where the sides differ there are two kernels.
  check<3, 0, 0>();
  check<3, 1, 1>();
  check<3, 0, 2>();
  check<16, 0, 0>();
  check<16, 2, 1>();
  check<17, 0, 3>();
}
TEST_CASE("threads share an image and agree") {
  using program = inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>;
  models::lenet5 net;
  parameter_store store(net, 5);
  thread_pool pool(2);
  executable<program> alone(store), shared(store, &pool);
  std::vector<float> x(784);
  for (int call = 0; call < 300; ++call) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = float((i * 37 + std::size_t(call) * 11) % 101) * 0.01f - 0.5f;
    alone(x);
    shared(x);
    const auto one = alone.result<0>(), two = shared.result<0>();
    CHECK(std::equal(one.begin(), one.end(), two.begin()));
  }
}
