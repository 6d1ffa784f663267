#include <cella/models/resnet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::resnet50<>;
const workload resnet50_1_infer =
    make_workload<net, inference<net, 1, 3, 224, 224>>("resnet50_1_infer");

}  // namespace cella::benchmark
