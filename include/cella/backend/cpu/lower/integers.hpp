// Products and convolutions of bytes, and numbers in a random order.
#pragma once

#include <cella/backend/cpu/convolution/integer_convolution.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/simd/permuted_numbers.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/random.hpp>

namespace cella::cpu {

/// Operand k and the zero that it has as operand k + 2.
zeroed_bytes bytes_of_operand(auto step, const memory& m, int k) {
  return {step.template in<const std::uint8_t>(m, k),
          step.template in<const std::uint8_t>(m, k + 2), int(step.operand(k + 2).size()),
          step.operand(k).element == dtype::i8};
}

struct integer_product_record : record_for<step_kind::integer_product> {
  /// Without addresses. A batch that shares its right matrix is more rows.
  static constexpr integer_product extents(auto step) {
    const tensor_type a = step.operand(0), b = step.operand(1);
    const int r = a.rank();
    integer_product p{1, a[r - 2], b[b.rank() - 1], a[r - 1]};
    const auto batch = int(a.shape.size(0, r - 2));
    (b.rank() > 2 ? p.batch : p.rows) *= batch;
    return p;
  }
  static constexpr int units(auto step, int) { return integer_product_units(extents(step)); }
  static constexpr std::int64_t scratch_bytes(auto step) {
    return integer_product_scratch(extents(step));
  }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte* scratch) {
    integer_product p = extents(step);
    p.a = bytes_of_operand(step, m, 0);
    p.b = bytes_of_operand(step, m, 1);
    p.c = step.template out<std::int32_t>(m, 0);
    multiply_integers(p, units, scratch);
  }
};

struct integer_convolution_record : record_for<step_kind::integer_convolution> {
  static constexpr integer_convolution extents(auto step) {
    const tensor_type x = step.operand(0), w = step.operand(1);
    const window walk = step.template options<convolution_options>().window;
    return {{x[0], w[1], x[2], x[3], w[0] / walk.groups, w[2], w[3], walk}};
  }
  static constexpr int units(auto step, int) { return integer_convolution_units(extents(step)); }
  static constexpr std::int64_t scratch_bytes(auto step) {
    return integer_convolution_scratch(extents(step));
  }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte* scratch) {
    integer_convolution c = extents(step);
    c.x = bytes_of_operand(step, m, 0);
    c.w = bytes_of_operand(step, m, 1);
    c.y = step.template out<std::int32_t>(m, 0);
    convolve_integers(c, units, scratch);
  }
};

struct random_permutation_record : record_for<step_kind::random_permutation> {
  static constexpr int units(auto step, int) { return permuted_units(step.anchor().type.size()); }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    const auto stream = step.template options<random_permutation_op::options>().stream;
    permuted_numbers(units, step.anchor().type.size(),
                     random_uniform_op::key_of(step.template in<const std::uint64_t>(m, 0), stream),
                     step.template out<std::int64_t>(m, 0));
  }
};

using integer_records =
    record_list<integer_product_record, integer_convolution_record, random_permutation_record>;

}  // namespace cella::cpu
