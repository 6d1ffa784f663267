#include <cella/models/gpt_decoder.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::gpt_decoder<50257, 768, 12, 12, 512>;
const workload gpt_decode =
    make_workload<net, inference_program<net, tensor<dtype::i32, 1, 1>, tensor<dtype::i32>>, 512,
                  50257>("gpt_decode");

}  // namespace cella::benchmark
