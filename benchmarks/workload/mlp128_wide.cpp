#include <cella/models/mlp.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::mlp<784, 1024, 1024, 10>;
const workload mlp128_wide = make_workload<net, training<net, 128, 784>>("mlp128_wide");

}  // namespace cella::benchmark
