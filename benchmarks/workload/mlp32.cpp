#include <cella/models/mlp.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::mlp<784, 128, 10>;
const workload mlp32 = make_workload<net, training<net, 32, 784>>("mlp32");

}  // namespace cella::benchmark
