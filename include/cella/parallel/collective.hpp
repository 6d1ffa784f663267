// Operations whose operand lies on many ranks: linear maps of what all of them have, and so with
// transposes, which are collective operations again.
#pragma once

#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cella/parallel/communicator.hpp>
#include <cella/parallel/layout.hpp>

namespace cella {

/// Which ranks take part, and along which dimensions.
struct collective_options {
  std::int32_t mesh_axis{};  ///< ranks that differ along this axis of the mesh alone
  std::int32_t count = 1;    ///< how many they are
  std::int32_t dimension{};  ///< of the tensor
  std::int32_t other{};      ///< all_to_all: the dimension that is cut
  /// Of the result along `dimension` and `other`; 0: parts are equal, and it follows.
  std::int32_t extent{}, other_extent{};
};

namespace detail {

/// What all collective operations have in common.
template <class Op>
struct collective : linear<Op>, takes_complex {
  using options = collective_options;
  static constexpr int operands = 1;
  /// Every element may come from another rank: whoever cuts a loop has to exchange more than sums.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    iteration_space s(1);
    const int rank = in[0].rank();
    s.add(in[0].shape);
    for (iteration_space::factor& f : s.factors) f.whole = true;
    const auto a = o.as<options>();
    for (int d = 0; d < rank; ++d) {
      if (d == a.dimension || d == a.other) continue;
      s.along(0, d, d);
      s.along(s.result(), d, d);
    }
    return s;
  }
  /// Samples lie along a new first axis.
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    auto a = n.as<options>();
    ++a.dimension;
    ++a.other;
    return a;
  }
  /// Brings the extents of the operand back.
  template <class Transpose>
  static constexpr var transposed(node_ref n, options a, var dy) {
    const shape s = n.operand(0).shape();
    if (a.extent) {
      a.extent = s[a.dimension];
      a.other_extent = s[a.other];
    }
    return emit<Transpose>(a, std::source_location::current(), dy);
  }
  static constexpr tensor_type scaled(tensor_type t, const options& a, bool grows) {
    std::int32_t& extent = t.shape[a.dimension];
    extent = a.extent ? a.extent : grows ? extent * a.count : extent / a.count;
    return t;
  }
  static const communicator& ranks(const options& a) {
    return communicator_for(Op::name, a.mesh_axis, a.count);
  }
};

/// What operations have in common that start what goes on beside other steps. The result is a
/// number without a meaning, which the operation that finishes it reads: so that comes later.
template <class Op, class Options>
struct starts : opaque<Op>, not_differentiable {
  using options = Options;
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {in[0].element, {}};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    Op::start(communicator_for(Op::name, a.mesh_axis, a.count), a, in[0]);
    write_element(out[0], 0, 0);
  }
};

/// Copies a box of these extents from one tensor to another of the same element type; it begins at
/// `from` there and at `to` here.
inline void copy_box(const tensor_ref& x, const multi_index& from, const tensor_ref& y,
                     const multi_index& to, const shape& extents) {
  const auto size = std::int64_t(size_of(x.type.element));
  const auto step_x = row_major_strides(x.type.shape), step_y = row_major_strides(y.type.shape);
  std::int64_t first_x = 0, first_y = 0;
  for (std::size_t d = 0; d < std::size_t(extents.rank); ++d) {
    first_x += from[d] * step_x[d];
    first_y += to[d] * step_y[d];
  }
  // The last axes are in one piece as far as they are whole.
  int last = extents.rank;
  std::int64_t run = size;
  while (last > 0) {
    run *= extents[--last];
    if (extents[last] != x.type[last] || extents[last] != y.type[last]) break;
  }
  if (run == 0) return;
  shape loops = extents;
  loops.rank = last;
  for_each_index(loops, [&](std::int64_t, const multi_index& i) {
    std::int64_t a = first_x, b = first_y;
    for (std::size_t d = 0; d < std::size_t(last); ++d) {
      a += i[d] * step_x[d];
      b += i[d] * step_y[d];
    }
    std::memcpy(y.data + b * size, x.data + a * size, std::size_t(run));
  });
}
/// The place that is `first` along one dimension and 0 along all others.
inline multi_index place_along(int dimension, std::int64_t first) {
  multi_index i{};
  i[std::size_t(dimension)] = std::int32_t(first);
  return i;
}

}  // namespace detail

/// y = the sum of all ranks' x. Its transpose is itself.
struct all_reduce_op : detail::collective<all_reduce_op>, in_place_of_last_operand {
  static constexpr std::string_view name = "all_reduce";
  static constexpr std::string_view formula = "y = the sum of all ranks' x";
  static constexpr std::string_view torch = "torch.distributed.all_reduce";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    return transposed<all_reduce_op>(n, n.as<options>(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = ranks(a);
    c.all_reduce(c.self, a.mesh_axis, in[0], out[0]);
  }
};

/// y = all ranks' x, one behind the other. Its transpose is reduce_scatter.
struct all_gather_op : detail::collective<all_gather_op> {
  static constexpr std::string_view name = "all_gather";
  static constexpr std::string_view formula = "y = all ranks' x, one behind the other";
  static constexpr std::string_view torch = "torch.distributed.all_gather_into_tensor";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return scaled(in[0], o.as<options>(), true);
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = ranks(a);
    c.all_gather(c.self, a.mesh_axis, a.dimension, in[0], out[0]);
  }
};

/// y = this rank's part of the sum of all ranks' x. Its transpose is all_gather.
struct reduce_scatter_op : detail::collective<reduce_scatter_op> {
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr std::string_view formula = "y = this rank's part of the sum of all ranks' x";
  static constexpr std::string_view torch = "torch.distributed.reduce_scatter_tensor";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return scaled(in[0], o.as<options>(), false);
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    return transposed<all_gather_op>(n, n.as<options>(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = ranks(a);
    c.reduce_scatter(c.self, a.mesh_axis, a.dimension, in[0], out[0]);
  }
};

/// y = this rank's part along `other` of all ranks' x, one behind the other along `dimension`. Its
/// transpose exchanges the two.
struct all_to_all_op : detail::collective<all_to_all_op> {
  static constexpr std::string_view name = "all_to_all";
  static constexpr std::string_view formula =
      "y = this rank's part along one axis of all ranks' x, joined along another";
  static constexpr std::string_view torch = "torch.distributed.all_to_all_single";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t = scaled(in[0], a, true);
    t.shape[a.other] = a.extent ? a.other_extent : t.shape[a.other] / a.count;
    return t;
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    auto a = n.as<options>();
    std::swap(a.dimension, a.other);
    return transposed<all_to_all_op>(n, a, dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = ranks(a);
    c.all_to_all(c.self, a.mesh_axis, a.dimension, a.other, in[0], out[0]);
  }
};

/// y = this rank's part of x, which all ranks have.
struct own_part_op : detail::collective<own_part_op> {
  static constexpr std::string_view name = "own_part";
  static constexpr std::string_view formula = "y = this rank's part of x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return scaled(in[0], o.as<options>(), false);
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator::group group = ranks(a).groups[std::size_t(a.mesh_axis)];
    const auto first = detail::place_along(
        a.dimension,
        parallel::first_of_part(in[0].type[a.dimension], group.size, group.coordinate));
    detail::copy_box(in[0], first, out[0], {}, out[0].type.shape);
  }
};

/// Zeros, but this rank's part of y is x: the transpose of own_part.
struct own_part_gradient_op : detail::collective<own_part_gradient_op> {
  static constexpr std::string_view name = "own_part_gradient";
  static constexpr std::string_view formula = "zeros, but this rank's part of y is x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return scaled(in[0], o.as<options>(), true);
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    return transposed<own_part_op>(n, n.as<options>(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator::group group = ranks(a).groups[std::size_t(a.mesh_axis)];
    std::memset(out[0].data, 0, std::size_t(out[0].type.bytes()));
    const auto first = detail::place_along(
        a.dimension,
        parallel::first_of_part(out[0].type[a.dimension], group.size, group.coordinate));
    detail::copy_box(in[0], {}, out[0], first, in[0].type.shape);
  }
};

constexpr var all_gather_op::transpose(node_ref n, int, var dy) {
  return transposed<reduce_scatter_op>(n, n.as<options>(), dy);
}
constexpr var own_part_op::transpose(node_ref n, int, var dy) {
  return transposed<own_part_gradient_op>(n, n.as<options>(), dy);
}

/// Whether an operation is one of these.
constexpr bool is_collective(const op_info* op) {
  return op == &info_of<all_reduce_op> || op == &info_of<all_gather_op> ||
         op == &info_of<reduce_scatter_op> || op == &info_of<all_to_all_op> ||
         op == &info_of<own_part_op> || op == &info_of<own_part_gradient_op>;
}

}  // namespace cella
