// Tables of which a step touches few rows, and weights that do not decay.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim {

/// What `lazy` makes.
template <optimizer Rule>
struct lazy_rule : wrapped<Rule> {
  constexpr void update(const gradient_list& g) const {
    builder& b = *g.b;
    for (const parameter_gradient& p : g.all) {
      const shape s = p.gradient.shape();
      const std::size_t first = b.bodies.updates.size();
      optim::update(this->rule, gradient_list{&b, {p}, g.pace});
      if (s.rank < 2 || b.failed()) continue;
      const unsigned others = ((1u << s.rank) - 1) & ~1u;
      list<int> axes;
      for (int d = 1; d < s.rank; ++d) axes.push_back(d);
      const var touched = any(not_equal(p.gradient, 0), span<const int>(axes));
      const var rows = cella::detail::repeat_along(touched, s, others);
      for (std::size_t k = first; k < b.bodies.updates.size(); ++k) {
        input_update& u = b.bodies.updates[k];
        const var old{&b, b.g.input(u.input)};
        if (old.shape() == s) u.value = select(rows, var{&b, u.value}, old).id;
      }
    }
  }
};
/// The rule for tables of embeddings: rows whose gradient is zero keep their weights and their
/// slots, as if the step had not been for them. With optim::adam it is called lazy or sparse Adam,
/// with optim::adagrad sparse Adagrad. The rule sees one parameter at a time; vectors go to it as
/// they are.
template <optimizer Rule>
constexpr lazy_rule<Rule> lazy(Rule rule) {
  return {{rule}};
}

namespace detail {
template <class Rule>
concept decays = optimizer<Rule> && requires(Rule r) {
  r.weight_decay = 0;
};
}  // namespace detail

/// What `undecayed` makes.
template <detail::decays Rule, name_pattern... Patterns>
struct partly_decayed : wrapped<Rule> {
  constexpr void check(builder& b) const {
    if ((detail::some_match(b, "optim::undecayed", Patterns.view()) && ...))
      wrapped<Rule>::check(b);
  }
  constexpr void update(const gradient_list& g) const {
    const auto keeps = [&](const parameter_gradient& p) {
      return (matches(Patterns.view(), g.name(p)) || ...);
    };
    if constexpr (optim::reads_graph<Rule>()) {
      // A layer's weight and bias stay together.
      gradient_list all = g;
      for (parameter_gradient& p : all.all) p.decays = !keeps(p);
      return optim::update(this->rule, all);
    }
    gradient_list with{g.b, {}, g.pace}, without{g.b, {}, g.pace};
    for (const parameter_gradient& p : g.all) (keeps(p) ? without : with).all.push_back(p);
    Rule plain = this->rule;
    plain.weight_decay = 0;
    optim::update(this->rule, with);
    optim::update(plain, without);
  }
};
/// The rule without weight decay for parameters whose names match one of the patterns:
/// `optim::undecayed<"*.bias", "*norm*">(optim::adamw{.weight_decay = 0.1})`.
template <name_pattern... Patterns, detail::decays Rule>
constexpr partly_decayed<Rule, Patterns...> undecayed(Rule rule) {
  return {{rule}};
}

}  // namespace cella::optim
