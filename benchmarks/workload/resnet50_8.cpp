#include <cella/models/resnet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::resnet50<>;
const workload resnet50_8 = make_workload<net, training<net, 8, 3, 224, 224>, 1000>("resnet50_8");

}  // namespace cella::benchmark
