#include <cella/models/bert.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::bert_base;
const workload bert_base_1_infer =
    make_workload<net, inference_program<net, tensor<dtype::i32, 1, 128>>, 30522>(
        "bert_base_1_infer");

}  // namespace cella::benchmark
