// Gradients of a loss that is scaled up, so that numbers of f16 hold them.
#pragma once

#include <cella/ops/numeric.hpp>
#include <cella/optim/update.hpp>
#include <limits>

namespace cella::optim {

/// What `loss_scale` and `dynamic_loss_scale` make.
template <class Rule>
struct loss_scaled : wrapped<Rule> {
  double first{};  ///< the scale of the first step
  bool adapts{};   ///< or it never changes
  int growth_interval{};

  constexpr void check(builder& b) const {
    // Beyond it there is no normal number for the scale, or for what gradients are multiplied by.
    const double most = b.precision == dtype::f64 ? 0x1p1022 : 0x1p126;
    if (!(first > 0 && first < std::numeric_limits<double>::infinity()))
      b.fail(text() << "optim::loss_scale: the scale is " << first
                    << "; it must be above 0, and finite");
    else if (first > most || first < 1 / most)
      b.fail(text() << "optim::loss_scale: the scale is " << first << "; " << b.precision
                    << " takes one from " << 1 / most << " to " << most);
    if (adapts && growth_interval < 1)
      b.fail(text() << "optim::dynamic_loss_scale: growth_interval is " << growth_interval
                    << "; it must be at least 1");
    wrapped<Rule>::check(b);
  }
  /// What is differentiated instead of the loss; `any` is the first parameter that is updated.
  constexpr var objective(context any, var loss) const {
    return loss * cast(scale(any), loss.element());
  }
  constexpr void update(gradient_list g) const {
    if (g.all.empty()) return;
    builder& b = *g.b;
    context any(b, g.all[0].parameter, g.pace);
    const var s = scale(any);
    var faults = faults_of(g.all[0].gradient);
    for (std::size_t k = 1; k < g.all.size(); ++k) faults = faults + faults_of(g.all[k].gradient);
    for (parameter_gradient& p : g.all) {
      p.gradient = p.gradient * cast(1 / s, p.gradient.element());
      p.loss_scale = s;
    }
    // What a step leaves out is none of the rule's: it begins with its first step, its averages and
    // its bias correction, too.
    context skipping(b, g.all[0].parameter);
    const var skipped = skipping.slot("steps_with_overflow", number_of(skipping));
    g.pace.left_out = skipped;
    const std::size_t before = b.bodies.updates.size();
    optim::update(this->rule, g);
    for (std::size_t k = before; k < b.bodies.updates.size(); ++k) {
      const input_update u = b.bodies.updates[k];
      const var old{&b, b.g.input(u.input)};
      // Compared anew for each: truth values that are stored have no form that loops could read.
      const var finite = equal(broadcast_to(faults, old.shape()), 0);
      b.bodies.updates[k].value = select(finite, var{&b, u.value}, old).id;
    }
    const var finite = equal(faults, 0);
    skipping.update_slot(skipping.last_slot(), select(finite, skipped, skipped + 1));
    if (adapts) adapt(any, s, finite);
  }

 private:
  static constexpr tensor_type number_of(const context& c) {
    return {c.parameter().b->precision, {}};
  }
  /// Kept in a slot, where 0 stands for the first.
  constexpr var scale(context& any) const {
    if (!adapts) return cella::constant(*any.parameter().b, first, number_of(any));
    const var kept = any.known_slot("loss_scale", number_of(any));
    return select(equal(kept, 0), first, kept);
  }
  /// How many elements are NaN or infinite.
  static constexpr var faults_of(var gradient) {
    const var g = is_storage_only(gradient.element()) ? cast(gradient, dtype::f32) : gradient;
    return sum(select(is_finite(g), zeros_like(g), ones_like(g)));
  }
  constexpr void adapt(context& any, var s, var finite) const {
    const std::int32_t kept = any.last_slot();
    const var count = select(finite, any.slot("steps_without_overflow", number_of(any)) + 1, 0);
    const var due = greater_equal(count, growth_interval);
    any.update_slot(any.last_slot(), select(due, zeros_like(count), count));
    // It ends where twice the scale, or what gradients are then multiplied by, has no normal
    // number: half of infinity is infinity, and with 0 no gradient is left.
    const var larger = select(is_finite(s * 8), s * 2, s);
    any.update_slot(kept, select(finite, select(due, larger, s), s / 2));
  }
};

/// Differentiates `scale` times the loss and divides the gradients by it before the rule sees them:
/// gradients below 6e-8, which f16 does not hold, are not lost. A step in which one of them is
/// infinite or NaN changes no parameter and no slot of the rule, which does not count it as a step.
/// Other wrappers belong inside.
/// Micikevicius et al. 2018
template <optimizer Rule>
constexpr loss_scaled<Rule> loss_scale(double scale, Rule rule) {
  return {{rule}, scale, false, 0};
}

/// Of `dynamic_loss_scale`.
struct loss_scale_options {
  double first = 65536;        ///< the scale of the first step
  int growth_interval = 2000;  ///< steps without overflow after which it doubles
};
/// The same with a scale that halves in each step that overflows, and doubles after
/// `growth_interval` steps that do not: it stays as large as the gradients allow.
template <optimizer Rule>
constexpr loss_scaled<Rule> dynamic_loss_scale(Rule rule, loss_scale_options o = {}) {
  return {{rule}, o.first, true, o.growth_interval};
}

}  // namespace cella::optim
