// Training of some parameters only, decided when the step is compiled.
#pragma once

#include <cella/optim/update.hpp>

namespace cella::optim {

/// `Rule`, but parameters that match one of the patterns stay as they are. They get no slots, and
/// what only their gradients need is not computed: the step becomes cheaper. (To freeze parameters
/// of a compiled step for a while, see `fit_options::freeze`.)
///
///   model<net, image<1, 28, 28>, cross_entropy_loss{}, optim::freeze<"conv*">(optim::adam{})>
template <optimizer Rule, name_pattern... Patterns>
struct frozen {
  Rule rule{};

  static constexpr bool reads_graph = optim::reads_graph<Rule>();

  constexpr bool takes(std::string_view parameter) const {
    return !(matches(Patterns.view(), parameter) || ...) && optim::takes(rule, parameter);
  }
  constexpr void update(const gradient_list& g) const {
    gradient_list taken{g.b, {}, g.pace};
    for (const parameter_gradient& p : g.all) {
      if (takes(g.name(p))) taken.all.push_back(p);
    }
    optim::update(rule, taken);
  }
  constexpr void check(builder& b) const {
    if ((detail::some_match(b, "freeze", Patterns.view()) && ...)) optim::check(rule, b);
  }
};

/// The rule without the parameters whose names match one of the patterns, which stay as they are.
template <name_pattern... Patterns, optimizer Rule>
constexpr frozen<Rule, Patterns...> freeze(Rule rule) {
  return {rule};
}

}  // namespace cella::optim
