// Training of some parameters only, decided when the step is compiled.
#pragma once

#include <cella/graph/name_pattern.hpp>
#include <cella/optim/optimizers.hpp>

namespace cella::optim {

/// `Rule`, but parameters that match one of the patterns stay as they are. They get no slots, and
/// what only their gradients need is not computed: the step becomes cheaper. (To freeze parameters
/// of a compiled step for a while, see `fit_options::freeze`.)
///
///   model<net, image<1, 28, 28>, cross_entropy_loss{}, optim::freeze<"conv*">(optim::adam{})>
template <class Rule, name_pattern... Patterns>
struct frozen {
  Rule rule{};

  constexpr void operator()(context& c, var gradient) const {
    if (!(matches(Patterns.view(), c.name()) || ...)) rule(c, gradient);
  }
  /// A pattern that matches no parameter is a fault: it is misspelt.
  constexpr void check(builder& b) const {
    const bool all = (known(b, Patterns.view()) && ...);
    if constexpr (requires { rule.check(b); }) {
      if (all) rule.check(b);
    }
  }

 private:
  static constexpr bool known(builder& b, std::string_view pattern) {
    std::string_view first;
    for (const input_info& in : b.g.inputs) {
      if (in.role != input_role::parameter) continue;
      if (matches(pattern, b.g.view(in.name))) return true;
      if (first.empty()) first = b.g.view(in.name);
    }
    b.fail(text() << "freeze: no parameter matches \"" << pattern << "\"; this net begins with \""
                  << first << "\"");
    return false;
  }
};

template <name_pattern... Patterns, class Rule>
constexpr frozen<Rule, Patterns...> freeze(Rule rule) {
  return {rule};
}

}  // namespace cella::optim
