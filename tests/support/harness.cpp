#include "support/harness.hpp"

namespace cella::test {

void compute_on_cpu(const op_info& op, const attributes& options, span<const tensor_ref> in,
                    span<const tensor_ref> out) {
  default_backend::compute<float, double>(op, options, in, out);
}

}  // namespace cella::test
