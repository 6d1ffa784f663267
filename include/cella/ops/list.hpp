// Every operation, one line for each: what tests, documents and files walk over.
#pragma once

#include <cella/ops/activation.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/batch_norm.hpp>
#include <cella/ops/bitwise.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/constant.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/decompositions.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/print.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/regions.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/ops/special.hpp>
#include <tuple>

namespace cella {

template <class... Ops>
struct operation_list {
  static constexpr std::size_t size = sizeof...(Ops);
  /// Calls f.template operator()<Op>() for each.
  template <class F>
  static constexpr void for_each(F f) {
    (f.template operator()<Ops>(), ...);
  }
  /// The descriptions of all, in order.
  static constexpr std::array<const op_info*, size> infos{&info_of<Ops>...};
};

// clang-format off
using all_operations = operation_list<
    // constant
    constant_op,
    values_op,
    // array
    iota_op,
    reshape_op,
    transpose_op,
    cast_op,
    // complex
    complex_op,
    real_op,
    imag_op,
    conj_op,
    // elementwise
    add_op,
    sub_op,
    mul_op,
    div_op,
    neg_op,
    identity_op,
    stop_gradient_op,
    equal_op,
    not_equal_op,
    less_op,
    less_equal_op,
    greater_op,
    greater_equal_op,
    logical_and_op,
    logical_or_op,
    logical_not_op,
    select_op,
    maximum_op,
    minimum_op,
    clamp_op,
    // functions
    square_op,
    sqrt_op,
    rsqrt_op,
    exp_op,
    expm1_op,
    log_op,
    log1p_op,
    log2_op,
    sin_op,
    cos_op,
    tan_op,
    asin_op,
    acos_op,
    atan_op,
    sinh_op,
    cosh_op,
    tanh_op,
    asinh_op,
    acosh_op,
    atanh_op,
    erf_op,
    erfc_op,
    abs_op,
    sign_op,
    floor_op,
    ceil_op,
    round_op,
    trunc_op,
    sigmoid_op,
    pow_op,
    atan2_op,
    floor_div_op,
    // bitwise
    bitwise_and_op,
    bitwise_or_op,
    bitwise_xor_op,
    bitwise_not_op,
    left_shift_op,
    right_shift_op,
    // special
    lgamma_op,
    polygamma_op,
    bessel_ie_op,
    erfinv_op,
    // polar
    magnitude_op,
    angle_op,
    // activation
    relu_gradient_op,
    relu_op,
    softplus_op,
    gelu_tanh_slope_op,
    gelu_tanh_op,
    // broadcast
    broadcast_op,
    sum_op,
    // reduction
    max_op,
    min_op,
    prod_op,
    argmax_op,
    argmin_op,
    // matmul
    matmul_op,
    // decompositions
    cholesky_op,
    triangular_solve_op,
    solve_op,
    slogdet_op,
    lu_op,
    qr_op,
    eigh_op,
    svd_op,
    // fourier
    fft_op,
    // convolution
    convolution_op,
    convolution_input_gradient_op,
    convolution_weight_gradient_op,
    // pooling
    max_pool_op,
    unpool_op,
    pool_gather_op,
    average_pool_op,
    average_spread_op,
    // batch_norm
    batch_norm_op,
    batch_norm_gradient_op,
    // softmax
    softmax_op,
    log_softmax_op,
    cross_entropy_op,
    // cumulative
    cumsum_op,
    linear_recurrence_op,
    // sorting
    argsort_op,
    running_argmax_op,
    // one_hot
    one_hot_op,
    // indexing
    gather_op,
    scatter_op,
    gather_elements_op,
    scatter_elements_op,
    // segments
    scatter_reduce_op,
    // regions
    non_max_suppression_op,
    // slicing
    slice_op,
    scatter_slice_op,
    concat_op,
    // random
    random_key_op,
    random_uniform_op,
    gamma_slope_op,
    random_gamma_op,
    random_poisson_op,
    random_permutation_op,
    // print
    print_op,
    // control
    cond_op,
    scan_op,
    while_op,
    call_op,
    custom_op,
    pack_op,
    unpack_op>;
// clang-format on

}  // namespace cella
