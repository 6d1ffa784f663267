#include <cella/models/resnet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::resnet50<>;
const workload resnet50_32_infer =
    make_workload<net, inference<net, 32, 3, 224, 224>>("resnet50_32_infer");

}  // namespace cella::benchmark
