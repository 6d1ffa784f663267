// The names of all operations, one line for each; list.hpp has the operations.
#pragma once

#include <array>
#include <cella/graph/op_info.hpp>
#include <cella/ops/op.hpp>

// clang-format off
#define CELLA_OPERATIONS(X) \
  /* constant */ \
  X(constant_op) \
  X(values_op) \
  /* array */ \
  X(iota_op) \
  X(reshape_op) \
  X(transpose_op) \
  X(cast_op) \
  /* complex */ \
  X(complex_op) \
  X(real_op) \
  X(imag_op) \
  X(conj_op) \
  /* elementwise */ \
  X(add_op) \
  X(sub_op) \
  X(mul_op) \
  X(div_op) \
  X(neg_op) \
  X(identity_op) \
  X(stop_gradient_op) \
  X(equal_op) \
  X(not_equal_op) \
  X(less_op) \
  X(less_equal_op) \
  X(greater_op) \
  X(greater_equal_op) \
  X(logical_and_op) \
  X(logical_or_op) \
  X(logical_not_op) \
  X(select_op) \
  X(maximum_op) \
  X(minimum_op) \
  X(clamp_op) \
  /* functions */ \
  X(square_op) \
  X(sqrt_op) \
  X(rsqrt_op) \
  X(exp_op) \
  X(expm1_op) \
  X(log_op) \
  X(log1p_op) \
  X(log2_op) \
  X(sin_op) \
  X(cos_op) \
  X(tan_op) \
  X(asin_op) \
  X(acos_op) \
  X(atan_op) \
  X(sinh_op) \
  X(cosh_op) \
  X(tanh_op) \
  X(asinh_op) \
  X(acosh_op) \
  X(atanh_op) \
  X(erf_op) \
  X(erfc_op) \
  X(abs_op) \
  X(sign_op) \
  X(floor_op) \
  X(ceil_op) \
  X(round_op) \
  X(trunc_op) \
  X(sigmoid_op) \
  X(pow_op) \
  X(atan2_op) \
  X(floor_div_op) \
  X(fmod_op) \
  /* quantization */ \
  X(straight_through_op) \
  /* bitwise */ \
  X(bitwise_and_op) \
  X(bitwise_or_op) \
  X(bitwise_xor_op) \
  X(bitwise_not_op) \
  X(left_shift_op) \
  X(right_shift_op) \
  /* special */ \
  X(lgamma_op) \
  X(polygamma_op) \
  X(bessel_ie_op) \
  X(erfinv_op) \
  /* polar */ \
  X(magnitude_op) \
  X(angle_op) \
  /* activation */ \
  X(relu_gradient_op) \
  X(relu_op) \
  X(softplus_op) \
  X(gelu_slope_op) \
  X(gelu_op) \
  X(gelu_tanh_slope_op) \
  X(gelu_tanh_op) \
  /* broadcast */ \
  X(broadcast_op) \
  X(sum_op) \
  /* reduction */ \
  X(max_op) \
  X(min_op) \
  X(prod_op) \
  X(argmax_op) \
  X(argmin_op) \
  /* matmul */ \
  X(matmul_op) \
  /* decompositions */ \
  X(cholesky_op) \
  X(triangular_solve_op) \
  X(solve_op) \
  X(slogdet_op) \
  X(lu_op) \
  X(qr_op) \
  X(eigh_op) \
  X(svd_op) \
  /* fourier */ \
  X(fft_op) \
  X(rfft_op) \
  X(irfft_op) \
  /* convolution */ \
  X(convolution_op) \
  X(convolution_input_gradient_op) \
  X(convolution_weight_gradient_op) \
  /* integer_products */ \
  X(matmul_integer_op) \
  X(convolution_integer_op) \
  /* pooling */ \
  X(max_pool_op) \
  X(unpool_op) \
  X(pool_gather_op) \
  X(average_pool_op) \
  X(average_spread_op) \
  /* batch_norm */ \
  X(batch_norm_op) \
  X(batch_norm_gradient_op) \
  /* softmax */ \
  X(softmax_op) \
  X(log_softmax_op) \
  X(cross_entropy_op) \
  /* cumulative */ \
  X(cumsum_op) \
  X(linear_recurrence_op) \
  /* sorting */ \
  X(argsort_op) \
  X(running_argmax_op) \
  /* one_hot */ \
  X(one_hot_op) \
  /* indexing */ \
  X(gather_op) \
  X(scatter_op) \
  X(gather_elements_op) \
  X(scatter_elements_op) \
  /* put_rows */ \
  X(put_rows_op) \
  /* segments */ \
  X(scatter_reduce_op) \
  /* sparse_product */ \
  X(csr_product_op) \
  X(csr_entries_op) \
  /* regions */ \
  X(non_max_suppression_op) \
  /* slicing */ \
  X(slice_op) \
  X(scatter_slice_op) \
  X(concat_op) \
  /* random */ \
  X(random_key_op) \
  X(random_uniform_op) \
  X(gamma_slope_op) \
  X(random_gamma_op) \
  X(random_poisson_op) \
  X(random_permutation_op) \
  /* print */ \
  X(print_op) \
  /* control */ \
  X(cond_op) \
  X(scan_op) \
  X(while_op) \
  X(call_op) \
  X(custom_op) \
  X(pack_op) \
  X(unpack_op)
// clang-format on

namespace cella {

#define CELLA_DECLARE(Op) struct Op;
CELLA_OPERATIONS(CELLA_DECLARE)
#undef CELLA_DECLARE

// The description of an operation leads to all its rules: where kernels.cpp has them, they are not
// compiled again.
#if defined(CELLA_KERNELS) && !defined(CELLA_COMPILES_KERNELS)
#define CELLA_DESCRIBE(Op) extern template const op_info info_of<Op>;
CELLA_OPERATIONS(CELLA_DESCRIBE)
#undef CELLA_DESCRIBE
#endif

/// Operations; what asks for their names only does not need their structs.
template <class... Ops>
struct operation_list {
  static constexpr std::size_t size = sizeof...(Ops);
  static constexpr bool contains(const op_info& op) { return (... || is<Ops>(op)); }
  /// Calls f.template operator()<Op>() for each.
  template <class F>
  static constexpr void for_each(F f) {
    (f.template operator()<Ops>(), ...);
  }
  /// The descriptions of all, in order.
  static constexpr std::array<const op_info*, size> infos{&info_of<Ops>...};
};

}  // namespace cella
