#include <cella/models/gpt.hpp>
#include <cella/nn/losses.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::gpt<1024, 256, 4, 4, 128>;
using step = program<training_step<net, nn::token_cross_entropy, fixed<optim::adam{}>>, true,
                     dtype::f32, tensor<dtype::i32, 8, 128>, tensor<dtype::i32, 8 * 128>>;
const workload gpt_8 = make_workload<net, step, 1024>("gpt_8");

}  // namespace cella::benchmark
