#include <cella/models/unet.hpp>
#include <cella/nn/losses.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::unet<3, 1, 32>;
/// Of each pixel.
struct mask_loss {
  constexpr var operator()(var logits, var mask) const {
    return sigmoid_cross_entropy(logits, mask);
  }
};
using step =
    program<training_step<net, mask_loss, fixed<optim::sgd{.momentum = 0.9}>>, true, dtype::f32,
            tensor<dtype::f32, 4, 3, 128, 128>, tensor<dtype::f32, 4, 1, 128, 128>>;
const workload unet_4 = make_workload<net, step>("unet_4");

}  // namespace cella::benchmark
