#include <cella/models/mlp.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::mlp<784, 128, 10>;
const workload mlp1_infer = make_workload<net, inference<net, 1, 784>>("mlp1_infer");

}  // namespace cella::benchmark
