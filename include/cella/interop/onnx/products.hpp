// Matrix products and determinants.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/linear_algebra.hpp>

namespace cella::interop {

/// NumPy's product: leading axes are broadcast.
inline var broadcast_product(const onnx_node& n, var x, var y) {
  if (x.rank() < 3 || y.rank() < 3) return matmul(x, y);
  shape a = x.shape(), b = y.shape();
  shape batch;
  const int most = std::max(a.rank, b.rank) - 2;
  for (int d = 0; d < most; ++d) {
    const int p = d - (most - (a.rank - 2)), q = d - (most - (b.rank - 2));
    const int left = p < 0 ? 1 : a[p], right = q < 0 ? 1 : b[q];
    if (left != right && left != 1 && right != 1) n.refuse("has batches that cannot be broadcast");
    batch.push_back(left == 1 ? right : left);
  }
  auto with_batch = [&](var v) {
    shape s = batch;
    s.push_back(v.extent(-2));
    s.push_back(v.extent(-1));
    return broadcast_to(v, s);
  };
  return matmul(with_batch(x), with_batch(y));
}
inline list<var> matmul_rule(onnx_node& n) { return {broadcast_product(n, n.in(0), n.in(1))}; }
inline list<var> gemm_rule(onnx_node& n) {
  const double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  var y = matmul(n.in(0), n.in(1), n.integer("transA", 0) != 0, n.integer("transB", 0) != 0);
  if (alpha != 1) y = y * alpha;
  if (n.has(2)) y = y + (beta == 1 ? n.in(2) : n.in(2) * beta);
  return {y};
}
inline list<var> determinant_rule(onnx_node& n) { return {det(n.in(0, 2))}; }

inline constexpr named_onnx_rule product_rules[] = {
    {"Det", determinant_rule},
    {"Gemm", gemm_rule},
    {"MatMul", matmul_rule},
};

}  // namespace cella::interop
