// Which values of a program lie in blocks of channels: chains of convolutions and of what is done
// to images pixel by pixel, whose channels fill whole vectors. Such a chain reorders at its edges
// only.
#pragma once

#include <cella/backend/cpu/plan/convolution_cost.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/batch_norm.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/pooling.hpp>

namespace cella {

namespace detail {

/// Whether there are kernels in blocks for convolution `n`, or a gradient of one.
constexpr bool has_blocked_kernel(const graph& g, node_id n, int lanes) {
  const node& x = g.nodes[std::size_t(n)];
  if (is_storage_only(x.type.element)) return false;
  return has_kernel(convolution_algorithm::direct,
                    shape_of_convolution(g, n, x.type.element, lanes), pass_of(x));
}

/// Answers for one graph and one number of lanes.
class block_finder {
 public:
  constexpr block_finder(const graph& g, int lanes, const flags& blocked)
      : g_(g), lanes_(lanes), blocked_(blocked) {}

  /// An image whose channels are whole blocks.
  constexpr bool fits(const tensor_type& t) const {
    return t.rank() == 4 && t[1] % lanes_ == 0 && is_floating(t.element);
  }
  constexpr bool is_blocked(node_id n) const { return blocked_[std::size_t(n)] != 0; }

  /// A value that loops over blocks can read: an image in blocks, a constant, or something repeated
  /// along whole axes.
  constexpr bool readable(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    return is_blocked(n) || is<constant_op>(x) || (is<broadcast_op>(x) && repeats_blocks(x));
  }

  /// Whether node n yields an image in blocks.
  constexpr bool yields_blocks(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (is<convolution_op>(x)) return fits(x.type) && has_blocked_kernel(g_, n, lanes_);
    if (is<convolution_input_gradient_op>(x))
      return fits(x.type) && fits(g_.type(g_.operand(n, 0))) && has_blocked_kernel(g_, n, lanes_);
    if (is<max_pool_op>(x) || is<batch_norm_op>(x)) return is_blocked(g_.operand(n, 0));
    // A cotangent that comes from a plain kernel is brought into blocks here, and its chain goes
    // on.
    if (is<batch_norm_gradient_op>(x)) return is_blocked(g_.operand(n, 1));
    if (x.op == &get_info_of) {
      const node_id from = g_.operand(n, 0);
      const bool image = is<max_pool_op>(g_.nodes[std::size_t(from)]) ||
                         x.attributes.as<get_attributes>().result == 0;
      return image && is_blocked(from);
    }
    if (is<unpool_op>(x)) return is_blocked(g_.operand(n, 0)) && is_blocked(g_.operand(n, 1));
    if (x.op->traits.alias)
      return is_blocked(g_.operand(n, 0)) && g_.type(g_.operand(n, 0)).shape == x.type.shape;
    if (is<cast_op>(x))
      return is_floating(x.type.element) && is_floating(g_.type(g_.operand(n, 0)).element) &&
             is_blocked(g_.operand(n, 0));
    if (!x.op->pointwise || x.operand_count == 0) return false;
    bool any = false;
    for (node_id o : g_.operands(n)) {
      if (!readable(o)) return false;
      any |= is_blocked(o);
    }
    return any;
  }

 private:
  /// Repeated along pixels, or a value for each channel of each sample, or for each pixel.
  constexpr bool repeats_blocks(const node& x) const {
    const tensor_type from = g_.type(g_.operand_pool[std::size_t(x.first_operand)]);
    const auto axes = x.attributes.as<broadcast_op::options>().axes;
    bool channels = false, pixels = false;
    for (std::size_t i = 0; i < std::size_t(from.rank()); ++i) {
      channels |= axes[i] == 1;
      pixels |= axes[i] >= 2;
    }
    return !channels || (!pixels && from[from.rank() - 1] % lanes_ == 0);
  }

  const graph& g_;
  int lanes_;
  const flags& blocked_;
};

}  // namespace detail

/// For each node: whether its value is an image in blocks of `lanes` channels.
constexpr flags blocked_values(const graph& g, int lanes) {
  flags blocked(g.nodes.size(), 0);
  const detail::block_finder find(g, lanes, blocked);
  for (node_id n : g.regions[0].nodes) blocked[std::size_t(n)] = find.yields_blocks(n);
  // Positions of maxima have a form of their own, which only the un-pooling of blocks reads.
  bool dropped = false;
  for (node_id n : g.regions[0].nodes) {
    for (node_id o : g.operands(n)) {
      const node& x = g.nodes[std::size_t(o)];
      const bool positions = x.op == &get_info_of && blocked[std::size_t(o)] &&
                             x.attributes.as<get_attributes>().result == 1;
      dropped |= positions && !(is<unpool_op>(g.nodes[std::size_t(n)]) && blocked[std::size_t(n)]);
    }
  }
  for (node_id o : g.regions[0].outputs) {
    const node& x = g.nodes[std::size_t(o)];
    dropped |= x.op == &get_info_of && blocked[std::size_t(o)] &&
               x.attributes.as<get_attributes>().result == 1;
  }
  if (dropped) blocked.assign(g.nodes.size(), 0);
  return blocked;
}

/// Whether a program is worth it: it convolves images whose channels are whole blocks.
constexpr bool wants_blocks(const graph& g, int lanes) {
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<convolution_op>(x) || is_storage_only(x.type.element)) continue;
    const convolution_shape s = shape_of_convolution(g, n, x.type.element, lanes);
    if (s.channels % lanes == 0 && has_kernel(convolution_algorithm::direct, s)) return true;
  }
  return false;
}

}  // namespace cella
