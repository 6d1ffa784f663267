// Gradients that are cut before a rule sees them.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/optim/update.hpp>
#include <limits>

namespace cella::optim {

namespace detail {

constexpr void check_limit(builder& b, std::string_view who, double limit) {
  if (limit > 0 && limit < std::numeric_limits<double>::infinity()) return;
  b.fail(text() << "optim::" << who << ": the limit is " << limit
                << "; it must be above 0, and finite");
}
/// In a type whose sums are worth something: those of 16 bits have too few.
constexpr var sum_of_squares(var g) {
  return sum(square(is_storage_only(g.element()) ? cast(g, dtype::f32) : g));
}
/// What brings a norm down to the limit; 1 below it. As in PyTorch's clip_grad_norm_.
constexpr var clip_factor(var square_of_norm, double limit) {
  return minimum(limit / (sqrt(square_of_norm) + 1e-6), 1);
}
constexpr var scaled(var g, var factor) { return g * cast(factor, g.element()); }

}  // namespace detail

/// What `clip_by_value` makes.
template <class Rule>
struct value_clipped : wrapped<Rule> {
  double limit{};

  constexpr void check(builder& b) const {
    detail::check_limit(b, "clip_by_value", limit);
    wrapped<Rule>::check(b);
  }
  constexpr void update(gradient_list g) const {
    for (parameter_gradient& p : g.all) p.gradient = clamp(p.gradient, -limit, limit);
    optim::update(this->rule, g);
  }
};
/// Each element of a gradient is brought into [-limit, limit].
template <optimizer Rule>
constexpr value_clipped<Rule> clip_by_value(double limit, Rule rule) {
  return {{rule}, limit};
}

/// What `clip_by_norm` makes.
template <class Rule>
struct norm_clipped : wrapped<Rule> {
  double limit{};

  constexpr void check(builder& b) const {
    detail::check_limit(b, "clip_by_norm", limit);
    wrapped<Rule>::check(b);
  }
  constexpr void update(gradient_list g) const {
    for (parameter_gradient& p : g.all) {
      const var factor = detail::clip_factor(detail::sum_of_squares(p.gradient), limit);
      p.gradient = detail::scaled(p.gradient, factor);
    }
    optim::update(this->rule, g);
  }
};
/// A gradient whose Euclidean norm is above the limit is scaled down to it, each by itself.
template <optimizer Rule>
constexpr norm_clipped<Rule> clip_by_norm(double limit, Rule rule) {
  return {{rule}, limit};
}

/// What `clip_by_global_norm` makes.
template <class Rule>
struct global_norm_clipped : wrapped<Rule> {
  double limit{};

  constexpr void check(builder& b) const {
    detail::check_limit(b, "clip_by_global_norm", limit);
    wrapped<Rule>::check(b);
  }
  constexpr void update(gradient_list g) const {
    if (!g.all.empty()) {
      var total = detail::sum_of_squares(g.all[0].gradient);
      for (std::size_t k = 1; k < g.all.size(); ++k)
        total = total + detail::sum_of_squares(g.all[k].gradient);
      const var factor = detail::clip_factor(total, limit);
      for (parameter_gradient& p : g.all) p.gradient = detail::scaled(p.gradient, factor);
    }
    optim::update(this->rule, g);
  }
};
/// All gradients that reach this rule are scaled down by one factor if the norm of them all is
/// above the limit; those of frozen parameters do not count.  Pascanu et al. 2013
template <optimizer Rule>
constexpr global_norm_clipped<Rule> clip_by_global_norm(double limit, Rule rule) {
  return {{rule}, limit};
}

}  // namespace cella::optim
