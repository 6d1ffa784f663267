#include <cella/models/lenet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::lenet5;
const workload lenet1_infer = make_workload<net, inference<net, 1, 1, 28, 28>>("lenet1_infer");

}  // namespace cella::benchmark
