// Quasi-Newton steps from the last gradients.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim {

/// Steps along -H g, where H is what the last `history` changes of weights and gradients tell of
/// the inverse of the Hessian. All parameters are one vector. There is no line search: the learning
/// rate is the length of a step, 1 near a minimum; the first step is along -g and at most as long
/// as the rate. For losses of the whole data, the same in each step.  Nocedal 1980; Liu and Nocedal
/// 1989
struct lbfgs {
  named_options by_name{};
  int history = 10;
  /// Changes with y . s below this are not learnt from.
  double least_curvature = 1e-10;

  constexpr void check(builder& b) const {
    if (history < 1)
      b.fail(text() << "optim::lbfgs: the history is " << history << "; it must be at least 1");
  }
  constexpr void update(const gradient_list& g) const {
    if (g.all.empty()) return;
    const std::size_t n = g.all.size();
    list<memory> parts;
    for (const parameter_gradient& p : g.all) parts.push_back(recall(g, p));
    const context any(*g.b, g.all[0].parameter, g.pace);
    const var is_first = equal(any.step(), 1);
    const auto dot = [&](auto left, auto right) {
      var total{};
      for (std::size_t k = 0; k < n; ++k) {
        const var part = sum(left(k) * right(k));
        total = total.b ? total + part : part;
      }
      return total;
    };

    // What the last step changed is learnt, if it curves upwards.
    const auto change = [&](std::size_t k) { return g.all[k].gradient - parts[k].gradient; };
    const auto moved = [&](std::size_t k) { return parts[k].step; };
    const var curvature = dot(change, moved), size = dot(change, change);
    const var learns = logical_and(curvature > least_curvature, logical_not(is_first));
    for (std::size_t k = 0; k < n; ++k) {
      memory& m = parts[k];
      m.steps = with_last(m.steps, m.step, learns);
      m.changes = with_last(m.changes, change(k), learns);
    }
    context numbers(*g.b, g.all[0].parameter, g.pace);
    const var scale_before = numbers.slot("lbfgs_scale", curvature.type());
    const std::int32_t scale_slot = numbers.last_slot();
    const var known = select(is_first, ones_like(scale_before), scale_before);
    const var scale = select(learns, curvature / select(learns, size, ones_like(size)), known);
    numbers.update_slot(scale_slot, scale);

    // The two loops; what is not there yet is zero, and adds nothing.
    list<var> q, inverse, alpha;
    for (std::size_t k = 0; k < n; ++k) q.push_back(-g.all[k].gradient);
    const auto of_q = [&](std::size_t k) { return q[k]; };
    for (int i = 0; i < history; ++i) {
      const var ys = dot([&](std::size_t k) { return row(parts[k].changes, i); },
                         [&](std::size_t k) { return row(parts[k].steps, i); });
      const var some = ys > 0;
      inverse.push_back(select(some, 1 / select(some, ys, ones_like(ys)), zeros_like(ys)));
    }
    alpha.resize(std::size_t(history));
    for (int i = history; i-- > 0;) {
      const var a = inverse[std::size_t(i)] *
                    dot([&](std::size_t k) { return row(parts[k].steps, i); }, of_q);
      alpha[std::size_t(i)] = a;
      for (std::size_t k = 0; k < n; ++k) q[k] = q[k] - row(parts[k].changes, i) * a;
    }
    for (var& v : q) v = v * scale;
    for (int i = 0; i < history; ++i) {
      const var b = inverse[std::size_t(i)] *
                    dot([&](std::size_t k) { return row(parts[k].changes, i); }, of_q);
      for (std::size_t k = 0; k < n; ++k)
        q[k] = q[k] + row(parts[k].steps, i) * (alpha[std::size_t(i)] - b);
    }

    var length{};  // of g, as sum of absolute values
    for (const parameter_gradient& p : g.all) {
      const var part = sum(abs(p.gradient));
      length = length.b ? length + part : part;
    }
    const var first_rate = minimum(1 / maximum(length, std::numeric_limits<float>::min()), 1);
    const var rate = cast(any.learning_rate(), scale.element());
    const var factor = select(is_first, rate * first_rate, rate);
    for (std::size_t k = 0; k < n; ++k) {
      context c(*g.b, g.all[k].parameter, g.pace);
      const var step = q[k] * factor;
      c.update_slot(parts[k].slots[0], g.all[k].gradient);
      c.update_slot(parts[k].slots[1], step);
      c.update_slot(parts[k].slots[2], parts[k].steps);
      c.update_slot(parts[k].slots[3], parts[k].changes);
      c.update_parameter(c.parameter() + step);
    }
  }

 private:
  /// What is kept for a parameter: the last gradient and step, and `history` steps and changes of
  /// the gradient, the oldest first.
  struct memory {
    var gradient, step, steps, changes;
    std::array<std::int32_t, 4> slots{};
  };
  constexpr memory recall(const gradient_list& g, const parameter_gradient& p) const {
    context c(*g.b, p.parameter, g.pace);
    tensor_type many = p.gradient.type();
    many.shape.insert(0, history);
    memory m;
    const auto slot = [&](std::size_t k, std::string_view name, const tensor_type& t) {
      const var v = c.slot(name, t);
      m.slots[k] = c.last_slot();
      return v;
    };
    m.gradient = slot(0, "lbfgs_gradient", p.gradient.type());
    m.step = slot(1, "lbfgs_step", p.gradient.type());
    m.steps = slot(2, "lbfgs_steps", many);
    m.changes = slot(3, "lbfgs_changes", many);
    return m;
  }
  static constexpr var row(var all, int i) { return cella::detail::leading_slice(all, i); }
  /// The rows moved up by one and a new last one, where `learns`.
  constexpr var with_last(var all, var last, var learns) const {
    const var fresh = expand_dims(last, 0);
    const var moved = history == 1 ? fresh : concat({slice(all, 0, 1, history), fresh}, 0);
    return select(broadcast_to(learns, all.shape()), moved, all);
  }
};

}  // namespace cella::optim
