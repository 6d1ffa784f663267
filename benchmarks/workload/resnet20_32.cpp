#include <cella/models/resnet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::resnet20<>;
const workload resnet20_32 = make_workload<net, training<net, 32, 3, 32, 32>>("resnet20_32");

}  // namespace cella::benchmark
