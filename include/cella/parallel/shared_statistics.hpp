// Batch norms as the sums that they are made of, so that ranks can divide the samples among them.
#pragma once

#include <array>
#include <cella/graph/copy.hpp>
#include <cella/ops/batch_norm.hpp>
#include <cella/passes/simplify/dce.hpp>

namespace cella::parallel {

/// The same graph with sums over samples in place of batch norms and their gradients. These are one
/// operation each for the sake of one device, but need all images at once: ranks would gather them.
/// Of sums each rank adds up its samples, and what is exchanged is two numbers for each channel.
/// Statistics are those of the whole batch, as on one device. To be called before a plan is made.
constexpr graph share_statistics(const graph& g);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// y, mean and variance of a batch norm.
constexpr std::array<var, 3> batch_norm_in_sums(var x, var gamma, var beta, double epsilon) {
  const double share = double(gamma.shape().size()) / double(x.shape().size());
  const auto along = [&](var v) { return cella::detail::along_channels(v, x.shape()); };
  const var mean = cella::detail::sum_to_channels(x) * share;
  const var centred = x - along(mean);
  const var variance = cella::detail::sum_to_channels(square(centred)) * share;
  return {centred * along(rsqrt(variance + epsilon) * gamma) + along(beta), mean, variance};
}
/// The gradients of x, gamma and beta.
constexpr std::array<var, 3> batch_norm_gradient_in_sums(var dy, var x, var gamma, var mean,
                                                         var variance, double epsilon) {
  const double share = double(gamma.shape().size()) / double(x.shape().size());
  const auto along = [&](var v) { return cella::detail::along_channels(v, x.shape()); };
  const var r = rsqrt(variance + epsilon);
  const var h = (x - along(mean)) * along(r);
  const var beta = cella::detail::sum_to_channels(dy);
  const var scale = cella::detail::sum_to_channels(dy * h);
  return {(dy - along(beta * share) - h * along(scale * share)) * along(r * gamma), scale, beta};
}

class statistics_sharer {
 public:
  constexpr explicit statistics_sharer(const graph& g)
      : g_(g), importer_(b_, g), here_(g.nodes.size(), no_node) {}

  constexpr graph run() {
    importer_.rewrite(here_, [&](node_id n) { add(n); });
    return dce(std::move(b_.g));
  }

 private:
  constexpr void add(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    ids in;
    for (node_id o : g_.operands(n)) in.push_back(here_[std::size_t(o)]);
    if (x.op == &get_info_of) {
      for (const in_sums& s : made_) {
        if (s.n != g_.operand(n, 0)) continue;
        const auto k = std::size_t(x.attributes.as<get_attributes>().result);
        here_[std::size_t(n)] = s.results[k].id;
        return;
      }
    }
    if (is<batch_norm_op>(x) || is<batch_norm_gradient_op>(x)) {
      b_.current_cell(b_.g.intern(g_.view(x.cell)));
      const auto v = [&](std::size_t k) { return var{&b_, in[k]}; };
      const double epsilon = x.attributes.as<batch_norm_options>().epsilon;
      if (is<batch_norm_op>(x))
        made_.push_back({n, batch_norm_in_sums(v(0), v(1), v(2), epsilon)});
      else
        made_.push_back({n, batch_norm_gradient_in_sums(v(0), v(1), v(2), v(3), v(4), epsilon)});
      return;
    }
    here_[std::size_t(n)] = importer_.copy(n, in);
  }

  struct in_sums {
    node_id n{};
    std::array<var, 3> results;
  };

  const graph& g_;
  builder b_;
  graph_importer importer_;
  ids here_;  ///< by old node
  list<in_sums> made_;
};

}  // namespace detail

constexpr graph share_statistics(const graph& g) { return detail::statistics_sharer(g).run(); }

}  // namespace cella::parallel
