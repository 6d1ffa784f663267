// Runs one operation on plain row-major tensors: the reference that every kernel is held against,
// and what eager mode and loaded graphs fall back to.
#pragma once

#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>

namespace cella {

namespace detail {

/// Elementwise operations, in blocks: convert to `Number`, apply, convert back.
template <class Number, class Function>
void compute_blocks(Function f, const attributes& options, span<const tensor_ref> in,
                    const tensor_ref& out) {
  constexpr std::int64_t block = 256;
  std::array<std::array<Number, block>, 3> x{};
  const std::int64_t n = out.type.size();
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t count = std::min(block, n - first);
    for (std::size_t k = 0; k < in.size(); ++k) read_numbers(in[k], first, count, x[k].data());
    for (std::size_t j = 0; j < std::size_t(count); ++j)
      x[0][j] = f(options, x[0][j], x[1][j], x[2][j]);
    write_numbers(out, first, count, x[0].data());
  }
}

}  // namespace detail

/// Computes the results of `op`. All tensors are plain row-major; results do not overlap operands.
/// Integers stay integers where the operation has integer semantics.
inline void compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
                    span<const tensor_ref> out) {
  if (op.compute) return op.compute(options, in, out);
  bool integers = op.integral && !is_floating(out[0].type.element);
  bool without_sign = is_unsigned(out[0].type.element);
  bool complex = is_complex(out[0].type.element);
  for (const tensor_ref& x : in) {
    integers &= !is_floating(x.type.element);
    without_sign |= is_unsigned(x.type.element);
    complex |= is_complex(x.type.element);
  }
  if (complex && op.complex)
    detail::compute_blocks<std::complex<double>>(op.complex, options, in, out[0]);
  else if (integers && without_sign)
    detail::compute_blocks<std::uint64_t>(op.without_sign, options, in, out[0]);
  else if (integers)
    detail::compute_blocks<std::int64_t>(op.integer, options, in, out[0]);
  else if (op.scalar)
    detail::compute_blocks<double>(op.scalar, options, in, out[0]);
  else
    throw error(text() << op.name << ": this operation has no computation");
}

}  // namespace cella
