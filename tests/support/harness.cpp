#include "support/harness.hpp"

#include <cella/ops/list.hpp>
#include <cella/passes/pass.hpp>

namespace cella::test {

void compute_on_cpu(const op_info& op, const attributes& options, span<const tensor_ref> in,
                    span<const tensor_ref> out) {
  default_backend::compute<float, double>(op, options, in, out);
}

planned_graph plan_at_run_time(const graph& g, dtype element) {
  planned_graph p{optimize(g), {}};
  if (loaded_program::refusal(p.optimized, element).empty())
    p.program.emplace(p.optimized, element);
  return p;
}

}  // namespace cella::test
