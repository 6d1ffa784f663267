#include <cella/models/gpt.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::gpt<1024, 256, 4, 4, 128>;
const workload gpt_1_infer =
    make_workload<net, inference_program<net, tensor<dtype::i32, 1, 128>>, 1024>("gpt_1_infer");

}  // namespace cella::benchmark
