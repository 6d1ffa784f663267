// Steps by the curvature of layers: inverses of Kronecker factors.
#pragma once

#include <cella/ops/attention.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cella/ops/rounding.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/optim/layer_gradient.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/update.hpp>
#include <cella/transform/control.hpp>

namespace cella::optim {

/// For a layer with input x and gradient dy of what it yields, of N samples over which the loss is
/// a mean:
///
///   A = mean of x x^T,  G = N sum of dy dy^T       moving averages, decay min(1 - 1/k, decay)
///   A += pi sqrt(damping) I,  G += sqrt(damping) / pi I,  pi^2 = (tr A / In) / (tr G / Out)
///   u = G^-1 dW A^-1                               by Cholesky decompositions
///   m = momentum m + min(1, sqrt(kl_clip / (rate^2 sum over layers of <u, dW>))) u
///   w -= rate (m + weight_decay w)
///
/// x and dy are read off the graph of the gradients, so that any `nn::dense`, `nn::conv2d` or
/// product of one's own is a layer. A bias is one more column of dW, and 1 one more element of x:
/// so the mean of x counts, which G alone, preconditioning the bias by itself, would leave out.
/// For a convolution x are the patches that the filter sees; A is their mean over all places. Each
/// row of a dense layer's input counts as a sample, the words of a text too. G is of the labels of
/// the batch, not of ones that the net draws (the empirical Fisher matrix), as in THOR. Behind
/// `accumulate` the factors see the last of the batches. Other parameters need another rule:
/// `optim::parts(part<"norm.*">(adamw{}), rest(kfac{}))`.
/// Martens and Grosse 2015; for convolutions Grosse and Martens 2016; THOR: Chen et al. 2021
struct kfac {
  named_options by_name{};
  double decay = 0.95;
  double damping = 1e-3;
  double kl_clip = 1e-3;  ///< how far a step may go, in the metric of the factors; 0: anywhere
  double momentum = 0.9;
  double weight_decay = 0;
  int every = 1;  ///< steps from one renewal of the factors and their inverses to the next

  /// Its slots follow from the graph of the step, not from the parameters alone.
  static constexpr bool reads_graph = true;

  constexpr void update(const gradient_list& g) const {
    if (g.all.empty()) return;
    builder& b = *g.b;
    const context any(b, g.all[0].parameter, g.pace);
    if (!detail::fit(any, "kfac",
                     {{"decay", decay, 0, 1},
                      {"damping", damping, 1e-12},
                      {"kl_clip", kl_clip},
                      {"momentum", momentum, 0, 1},
                      {"weight_decay", weight_decay},
                      {"every", double(every), 1}}))
      return;
    const list<detail::layer_gradient> layers = detail::layer_gradients("kfac", g);
    if (b.failed()) return;
    list<var> steps;
    var slope{};  // <u, dW> of all layers
    for (const detail::layer_gradient& l : layers) {
      const var d = matrix_of(g, l);
      steps.push_back(preconditioned(g, l, d));
      const var part = cast(sum(d * steps.back()), computed_in(b.precision));
      slope = slope.b ? slope + part : part;
    }
    var factor{};
    if (kl_clip != 0) {
      const var length = square(cast(any.learning_rate(), slope.element())) * slope;
      factor = minimum(sqrt(kl_clip / maximum(length, least)), 1);
    }
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const detail::layer_gradient& l = layers[k];
      const var u = factor.b ? steps[k] * cast(factor, steps[k].element()) : steps[k];
      const bool biased = l.bias != l.none;
      go(g, g.all[l.weight], l.like_weight(biased ? slice(u, 1, 0, l.inputs) : u));
      if (biased) go(g, g.all[l.bias], slice(u, 1, l.inputs, l.inputs + 1));
    }
  }

 private:
  static constexpr double least = 1e-30;  ///< in the place of 0 below a fraction's line

  static constexpr dtype computed_in(dtype t) { return is_storage_only(t) ? dtype::f32 : t; }
  /// dW, and db as its last column: [Out, In] or [Out, In + 1].
  static constexpr var matrix_of(const gradient_list& g, const detail::layer_gradient& l) {
    const var w = g.all[l.weight].gradient;
    const dtype element = computed_in(w.element());
    const var d = l.matrix(cast(w, element));
    if (l.bias == l.none) return d;
    return concat({d, reshape(cast(g.all[l.bias].gradient, element), {l.outputs, 1})}, 1);
  }
  /// One step of a parameter along -u.
  constexpr void go(const gradient_list& g, const parameter_gradient& p, var u) const {
    context c(*g.b, p.parameter, g.pace);
    const var w = c.parameter();
    u = cast(reshape(u, w.shape()), w.element());
    if (momentum != 0) u = detail::decayed_slot(c, "kfac_m", momentum, u);
    if (weight_decay != 0 && p.decays) u = u + w * weight_decay;
    c.update_parameter(w - u * cast(c.learning_rate(), w.element()));
  }

  /// Of a layer: the averages, and what solves with them, the triangles of Cholesky or inverses.
  struct factors {
    var a, g, of_a, of_g;
  };
  constexpr var preconditioned(const gradient_list& g, const detail::layer_gradient& l,
                               var d) const {
    context c(*g.b, g.all[l.weight].parameter, g.pace);
    const auto slot = [&](std::string_view name, int extent) {
      const var v = c.slot(name, {d.element(), {extent, extent}});
      return std::pair{v, c.last_slot()};
    };
    const auto [a, slot_a] = slot("kfac_a", d.extent(1));
    const auto [s, slot_g] = slot("kfac_g", d.extent(0));
    if (every == 1) {
      const factors f = renewed(c, l, a, s, g.all[l.weight].loss_scale);
      c.update_slot(slot_a, f.a);
      c.update_slot(slot_g, f.g);
      const var left = solved(cholesky(f.of_g), d);
      return cella::detail::transposed(solved(cholesky(f.of_a), cella::detail::transposed(left)));
    }
    const auto [of_a, slot_of_a] = slot("kfac_a_inverse", d.extent(1));
    const auto [of_g, slot_of_g] = slot("kfac_g_inverse", d.extent(0));
    // Behind `accumulate` a step may be a fraction; nothing is kept of it then.
    const var due = equal(mod(round(c.step()) - 1, every), 0);
    const factors old{a, s, of_a, of_g};
    const factors f = cond(
        due,
        [&] {
          factors next = renewed(c, l, old.a, old.g, g.all[l.weight].loss_scale);
          for (var* v : {&next.of_a, &next.of_g})
            *v = solved(cholesky(*v), cella::detail::eye_like(*v));
          return next;
        },
        [&] { return old; });
    c.update_slot(slot_a, f.a);
    c.update_slot(slot_g, f.g);
    c.update_slot(slot_of_a, f.of_a);
    c.update_slot(slot_of_g, f.of_g);
    return matmul(matmul(f.of_g, d), f.of_a);
  }
  /// The averages with this step's moments, and the same with damping.
  constexpr factors renewed(const context& c, const detail::layer_gradient& l, var a, var g,
                            var loss_scale) const {
    const auto moments = l.in(a.element());
    var now = moments.inputs / l.rows();
    if (l.bias != l.none) {
      const var mean = moments.input / l.rows();
      const var column = reshape(mean, {l.inputs, 1});
      const var corner = cella::constant(*a.b, 1, {a.element(), {1, 1}});
      now =
          concat({concat({now, column}, 1), concat({reshape(mean, {1, l.inputs}), corner}, 1)}, 0);
    }
    var then = moments.outputs * l.samples();
    if (loss_scale.b) then = then * square(1 / cast(loss_scale, g.element()));
    const var count = (round(c.step()) - 1) / every + 1;
    const var keeps = cast(minimum(1 - 1 / count, decay), a.element());
    factors f;
    f.a = a * keeps + now * (1 - keeps);
    f.g = g * keeps + then * (1 - keeps);
    const auto size = [](var m) { return maximum(sum(diagonal(m)) / m.extent(0), least); };
    const var pi = sqrt(size(f.a) / size(f.g));
    const double root = cella::detail::square_root(damping);
    f.of_a = f.a + cella::detail::eye_like(f.a) * (pi * root);
    f.of_g = f.g + cella::detail::eye_like(f.g) * (root / pi);
    return f;
  }
  /// L^-T L^-1 d.
  static constexpr var solved(var l, var d) {
    return solve_triangular(l, solve_triangular(l, d), false, true);
  }
};

}  // namespace cella::optim
