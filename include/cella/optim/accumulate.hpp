// Batches that are larger than memory: gradients of several steps make one update.
#pragma once

#include <cella/ops/comparison.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim {

/// What `accumulate` makes.
template <int Batches, optimizer Rule>
struct accumulated : wrapped<Rule> {
  constexpr void check(builder& b) const {
    if (Batches < 1) {
      b.fail(text() << "optim::accumulate: an update is to be made of " << Batches
                    << " batches; it needs at least one");
    }
    wrapped<Rule>::check(b);
  }
  constexpr void update(gradient_list g) const {
    if (Batches == 1 || g.all.empty()) return optim::update(this->rule, g);
    builder& b = *g.b;
    // Counted here: beyond 2^24 steps f32 cannot tell a step from the next.
    context any(b, g.all[0].parameter, g.pace);
    const var count = any.slot("accumulated_batches", {b.precision, {}}) + 1;
    const var due = greater_equal(count, Batches);
    any.update_slot(any.last_slot(), select(due, zeros_like(count), count));
    for (parameter_gradient& p : g.all) {
      context c(b, p.parameter);
      const var sum = c.slot("accumulated") + p.gradient;
      c.update_slot(c.last_slot(), select(due, zeros_like(sum), sum));
      p.gradient = sum / Batches;
    }
    // Between two updates the rule computes, too, but nothing is kept of it.
    g.pace.batches *= Batches;
    const std::size_t first = b.bodies.updates.size();
    optim::update(this->rule, g);
    for (std::size_t k = first; k < b.bodies.updates.size(); ++k) {
      const input_update u = b.bodies.updates[k];
      const var old{&b, b.g.input(u.input)};
      b.bodies.updates[k].value = select(due, var{&b, u.value}, old).id;
    }
  }
};
/// Sums gradients over `Batches` steps; in the last of them the rule runs once, on their mean, as
/// if the batches were one. Weights stay as they are in the others, and the rule counts its own
/// steps. Its learning rate is that of the last.
template <int Batches, optimizer Rule>
constexpr accumulated<Batches, Rule> accumulate(Rule rule) {
  return {{rule}};
}

}  // namespace cella::optim
