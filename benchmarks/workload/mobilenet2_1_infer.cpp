#include <cella/models/mobilenet.hpp>

#include "bound.hpp"

namespace cella::benchmark {

using net = models::mobilenet_v2<>;
const workload mobilenet2_1_infer =
    make_workload<net, inference<net, 1, 3, 224, 224>>("mobilenet2_1_infer");

}  // namespace cella::benchmark
