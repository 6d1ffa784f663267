// Rules of the table in fold.hpp for tensors of constants: what is computed from them, or moves
// their elements, is a constant, too. Beside them, which numbers may be folded at all.
#pragma once

#include <array>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace fold_rules {

// ---- numbers

/// Folding stays within these magnitudes, so that no intermediate result overflows or vanishes.
constexpr bool is_moderate(double v) {
  const double m = v < 0 ? -v : v;
  return m == 0 || (m >= 1e-100 && m <= 1e100);
}

/// Whether a tensor of type `t` can hold `v`, other than as an infinity or a subnormal number. Of
/// integers those that doubles hold, which folding computes in, and their neighbours.
constexpr bool fits(dtype t, double v) {
  const double m = v < 0 ? -v : v;
  switch (t) {
    case dtype::f64:
      return is_moderate(v);
    case dtype::f32:
    case dtype::bf16:
      return m == 0 || (m >= 1.2e-38 && m <= 3.3e38);
    case dtype::f16:
      return m == 0 || (m >= 6.2e-5 && m <= 65504);
    case dtype::boolean:
      return v == 0 || v == 1;
    default:
      return is_integer(t) && m < 0x1p53 && v >= least_integer(t) && v < beyond_integers(t) &&
             double(std::int64_t(v)) == v;
  }
}

/// What reading an element of type `t` yields after `v` was written. Precondition: it fits.
constexpr double stored(dtype t, double v) {
  switch (t) {
    case dtype::f32:
      return double(float(v));
    case dtype::f16:
      return double(float(float16(float(v))));
    case dtype::bf16:
      return double(float(bfloat16(float(v))));
    default:
      return v;
  }
}
/// Converts `v` as a cast to `t` does; false if the result is not exact enough to be folded.
constexpr bool converts(double& v, dtype t) {
  if (!is_moderate(v)) return false;
  if (t == dtype::boolean)
    v = double(v != 0);
  else if (is_integer(t) && (v < 0 ? -v : v) < 0x1p53)
    v = double(std::int64_t(v));
  return fits(t, v);
}

// ---- tensors

/// Elements of the largest tensor that is computed by the compiler.
inline constexpr std::int64_t most_folded_elements = 4096;

constexpr bool is_small(const rewriter& r, node_id n) {
  return r.type(n).size() <= most_folded_elements;
}
constexpr bool are_values(const rewriter& r, node_id n) {
  return r.is<values_op>(n) || (r.is<broadcast_op>(n) && r.is<values_op>(r.operand(n, 0)));
}
/// The elements of a constant, or of a tensor of values that may be repeated, if all can be folded;
/// else none.
constexpr list<double> numbers_of(const rewriter& r, node_id n) {
  const tensor_type t = r.type(n);
  list<double> all;
  if (r.is_constant(n)) {
    const double v = r.value(n);
    if (fits(t.element, v)) all.assign(std::size_t(t.size()), stored(t.element, v));
    return all;
  }
  const node_id x = r.is<values_op>(n) ? n : r.operand(n, 0);
  const auto count = std::size_t(r.type(x).size());
  all.reserve(count);
  const span<const std::uint64_t> words = r.g().values_of(x);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(detail::number_of_bits(t.element, element_at(words, i, size_of(t.element))));
    if (!fits(t.element, all.back())) return {};
  }
  if (x == n) return all;
  const auto axes = r.as<broadcast_op::options>(n).axes;
  const auto own = row_major_strides(r.shape_of(x));
  list<double> repeated;
  repeated.reserve(std::size_t(t.size()));
  for_each_index(t.shape, [&](std::int64_t, const multi_index& i) {
    std::int64_t p = 0;
    for (std::size_t d = 0; d < std::size_t(r.shape_of(x).rank); ++d)
      p += own[d] * i[std::size_t(axes[d])];
    repeated.push_back(all[std::size_t(p)]);
  });
  return repeated;
}
/// The tensor of these elements, each of which fits.
constexpr node_id tensor_of(rewriter& r, const list<double>& all, const tensor_type& t) {
  element_packer packer(size_of(t.element));
  for (double v : all) packer.put(detail::bits_of_number(t.element, v));
  return r.values(t, packer.words());
}

/// f(v1, v2, ...) = v for arithmetic on constants, of which one has the shape of the result
constexpr node_id all_values(rewriter& r, node_id n) {
  const op_info& op = r.op(n);
  const int count = r.operand_count(n);
  if (!op.traits.foldable || count > 3 || !is_small(r, n)) return no_node;
  bool varies = false;
  for (int i = 0; i < count; ++i) {
    const node_id x = r.operand(n, i);
    if (!are_values(r, x) && !r.is_constant(x)) return no_node;
    varies |= r.is<values_op>(x);
  }
  if (!varies) return no_node;
  const tensor_type t = r.type(n);
  std::array<list<double>, 3> in;
  for (int i = 0; i < count; ++i) {
    in[std::size_t(i)] = numbers_of(r, r.operand(n, i));
    if (in[std::size_t(i)].empty()) return no_node;
  }
  const attributes options = r.g().nodes[std::size_t(n)].attributes;
  list<double> all;
  for (std::size_t i = 0; i < std::size_t(t.size()); ++i) {
    std::array<double, 3> x{};
    for (std::size_t k = 0; k < std::size_t(count); ++k) {
      x[k] = in[k][i];
      if (!is_moderate(x[k])) return no_node;
    }
    if (is<div_op>(op) && x[1] == 0) return no_node;
    const double y = op.scalar(options, x[0], x[1], x[2]);
    if (!fits(t.element, y)) return no_node;
    all.push_back(y);
  }
  return tensor_of(r, all, t);
}
/// cast(v) = v, truncated if the result is an integer
constexpr node_id cast_values(rewriter& r, node_id n) {
  const node_id x = r.operand_if<values_op>(n, 0);
  if (x < 0 || !is_small(r, n)) return no_node;
  const tensor_type t = r.type(n);
  list<double> all = numbers_of(r, x);
  if (all.empty()) return no_node;
  for (double& v : all) {
    if (!converts(v, t.element)) return no_node;
  }
  return tensor_of(r, all, t);
}

/// Element i of the result is element origin + sum_d step[d] i[d] of the values.
constexpr node_id picked(rewriter& r, node_id n, std::int64_t origin, const stride_list& step) {
  const node_id x = r.operand_if<values_op>(n, 0);
  if (x < 0 || !is_small(r, n)) return no_node;
  const tensor_type t = r.type(n);
  const span<const std::uint64_t> words = r.g().values_of(x);
  const std::size_t parts = t.element == dtype::c128 ? 2 : 1;  // of at most eight bytes
  const std::size_t bytes = size_of(t.element) / parts;
  element_packer packer(bytes);
  for_each_index(t.shape, [&](std::int64_t, const multi_index& i) {
    std::int64_t p = origin;
    for (std::size_t d = 0; d < std::size_t(t.rank()); ++d) p += step[d] * i[d];
    for (std::size_t k = 0; k < parts; ++k)
      packer.put(element_at(words, std::size_t(p) * parts + k, bytes));
  });
  return r.values(t, packer.words());
}
/// reshape(v) = v
constexpr node_id reshaped_values(rewriter& r, node_id n) {
  return picked(r, n, 0, row_major_strides(r.shape_of(n)));
}
/// transpose(v) = v in the result's order
constexpr node_id transposed_values(rewriter& r, node_id n) {
  const auto own = row_major_strides(r.shape_of(r.operand(n, 0)));
  const auto p = r.as<transpose_op::options>(n).permutation;
  stride_list step{};
  for (std::size_t d = 0; d < std::size_t(r.type(n).rank()); ++d) step[d] = own[std::size_t(p[d])];
  return picked(r, n, 0, step);
}
/// slice(v) = the part of v
constexpr node_id sliced_values(rewriter& r, node_id n) {
  const auto own = row_major_strides(r.shape_of(r.operand(n, 0)));
  const auto o = r.as<slice_op::options>(n);
  std::int64_t origin = 0;
  stride_list step{};
  for (std::size_t d = 0; d < std::size_t(o.shape.rank); ++d) {
    origin += o.start[d] * own[d];
    step[d] = o.step[d] * own[d];
  }
  return picked(r, n, origin, step);
}

}  // namespace fold_rules

}  // namespace cella
