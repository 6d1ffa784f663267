#include <cella/models/lenet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::lenet5;
const workload lenet256 = make_workload<net, training<net, 256, 1, 28, 28>>("lenet256");

}  // namespace cella::benchmark
