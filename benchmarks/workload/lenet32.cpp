#include <cella/models/lenet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::lenet5;
const workload lenet32 = make_workload<net, training<net, 32, 1, 28, 28>>("lenet32");

}  // namespace cella::benchmark
