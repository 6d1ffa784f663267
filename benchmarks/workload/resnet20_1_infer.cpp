#include <cella/models/resnet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::resnet20<>;
const workload resnet20_1_infer =
    make_workload<net, inference<net, 1, 3, 32, 32>>("resnet20_1_infer");

}  // namespace cella::benchmark
