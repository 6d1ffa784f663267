#include <cella/models/vit.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/program.hpp>
#include <cella/train/step.hpp>

#include "planned_workload.hpp"

namespace cella::benchmark {

using net = models::vit<192, 3, 12>;
/// The compiler would take a minute and a half and 2.4 GB for its plan.
const workload vit_8 =
    make_planned_training<training_step<net, cross_entropy_loss, fixed<optim::adam{}>>, 1000,
                          tensor<dtype::f32, 8, 3, 224, 224>, tensor<dtype::i32, 8>>("vit_8");

}  // namespace cella::benchmark
