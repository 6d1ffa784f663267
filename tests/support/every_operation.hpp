// Applications of all operations, for tests of what each one's struct says about it.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/list.hpp>
#include <cella/ops/padding.hpp>
#include <source_location>
#include <utility>

namespace cella::test {

/// One application of each operation that is not pointwise, in shapes that tell its axes apart, and
/// of some that are.
inline void build_every_operation(builder& b) {
  auto input = [&](shape s, dtype e = dtype::f64) {
    return var{&b, b.input({e, s}, input_role::argument, "x")};
  };
  auto here = [] { return std::source_location::current(); };
  const var m = input({2, 3}), truth = m > 0.5;
  const var indices = input({2}, dtype::i64);
  // Pointwise operations of one to three operands.
  select(truth, m, m * m), clamp(m, 0.2, 0.6), pow(m, m), cast(m, dtype::f32);
  reshape(input({2, 3, 4}), {6, 2, 2}), reshape(input({2, 3}), {3, 2}),
      reshape(input({6, 1, 2}), {2, 3, 2});
  transpose(input({2, 3, 4}), {2, 0, 1});
  broadcast_to(input({3, 1}), {2, 3, 4});
  sum(input({2, 3, 4}), {1}), max(m, {0}), min(m, {1}), prod(m, {0}), argmax(m, 1), argmin(m, 0);
  matmul(input({2, 3, 4}), input({2, 4, 2}));
  const window odd{{2, 1}, {1, 0}, {0, 2}, {1, 2}, 1}, grouped{{1, 2}, {1, 1}, {1, 0}, {2, 1}, 2};
  const var image = input({2, 2, 5, 4}), filter = input({3, 2, 2, 2}), two = input({4, 1, 2, 2});
  for (const auto& [walk, w] : {std::pair{odd, filter}, std::pair{grouped, two}}) {
    const var y = conv2d(image, w, walk);
    emit<convolution_input_gradient_op>(convolution_options{walk, {5, 4}}, here(), y, w);
    emit<convolution_weight_gradient_op>(convolution_options{walk, {2, 2}}, here(), image, y);
  }
  const pooling_options pool{{{2, 1}, {1, 0}, {0, 1}, {1, 1}, 1}, {2, 3}, {5, 4}, 0};
  const node_id pooled = emit<max_pool_op>(pool, here(), image).id;
  const var largest{&b, b.get(pooled, 0)}, positions{&b, b.get(pooled, 1)};
  emit<unpool_op>(pool, here(), largest, positions);
  emit<pool_gather_op>(pool, here(), image, positions);
  emit<average_spread_op>(pool, here(), emit<average_pool_op>(pool, here(), image));
  const var square = input({2, 3, 3}), tall = input({2, 4, 3});
  cholesky(square), slogdet(square), lu(square), eigh(square), qr(tall), svd(tall);
  solve(square, input({2, 3, 2})), solve_triangular(square, input({2, 3, 2}), true, true);
  const var scale = input({2});
  const auto normal = detail::normalize_batch(image, scale, scale, 1e-5);
  emit<batch_norm_gradient_op>(batch_norm_options{}, here(), image, image, scale, normal.mean,
                               normal.variance);
  const var z = complex(m, m);
  fft(z, 0), emit<fft_op>(fft_op::options{1, 1}, here(), z), rfft(m, 1), irfft(z, 4), real(z), imag(z), conj(z), abs(z),
      angle(z);
  softmax(m, 1), log_softmax(m, 0), cross_entropy_per_sample(m, indices);
  cumsum(m, 0), cumsum(m, 1, true, true), linear_recurrence(m, m, 1);
  argsort(m, 0), argsort(m, 1, true), cummax(m, 1), cummin(m, 0, true);
  lgamma(m), polygamma(2, m), i0e(m), erfinv(m);
  const var bits = input({2, 3}, dtype::i32);
  bitwise_and(bits, bits), bitwise_or(bits, bits), bitwise_xor(bits, bits), bitwise_not(bits),
      left_shift(bits, bits), right_shift(bits, bits);
  one_hot(indices, 3, dtype::f64);
  const var picked = gather(input({3, 4, 2}), input({2, 2}, dtype::i64), 1);
  emit<scatter_op>(detail::indexing_options{1, 4, 2}, here(), picked, input({2, 2}, dtype::i64));
  put_rows(input({3, 4, 2}), input({2, 2}, dtype::i64), picked, 1);
  const var each = input({2, 3}, dtype::i32);
  gather_elements(input({4, 3}), each, 0);
  emit<scatter_elements_op>(scatter_elements_op::options{{4, 3}, 0}, here(), m, each);
  non_max_suppression(input({3, 4}), input({3}), 2), segment_max(m, indices, 3),
      segment_prod(m, indices, 3);
  const var entries = input({5}), columns = input({5}, dtype::i64), splits = input({5}, dtype::i64);
  emit<csr_product_op>(csr_product_op::options{4, 0}, here(), entries, columns, splits, m);
  emit<csr_product_op>(csr_product_op::options{3, 1}, here(), entries, columns, splits,
                       input({4, 2}));
  emit<csr_entries_op>({}, here(), input({4, 3}), columns, splits, m);
  slice(input({7, 2}), 0, 5, 0, -2), pad(m, {1, 0}, {0, 2});
  concat(std::array{m, input({2, 1}), m}, 1);
  const dtype byte = dtype::u8;
  matmul_integer(input({2, 2, 3}, byte), input({2, 3, 2}, dtype::i8), input({2}, byte), 0),
      conv2d_integer(input({1, 2, 3, 4}, byte), input({2, 1, 2, 2}, byte),
                     {{1, 1}, {1, 0}, {0, 0}, {1, 1}, 2}, 0, input({2}, byte));
  straight_through(m, m);
  random_uniform(m), random_gamma(m), emit<gamma_slope_op>({}, here(), m, m), random_poisson(m),
      random_permutation(m, 5);
  iota(b, {dtype::i64, {3}}, 0), constant(b, 2, {dtype::f64, {2}});
  constant(m, std::array{1.0, 2.0});
  (void)print(m, "m");
}

}  // namespace cella::test
