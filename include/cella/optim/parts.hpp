// Other rules for other parameters.
#pragma once

#include <array>
#include <cella/graph/span.hpp>
#include <cella/graph/words.hpp>
#include <cella/optim/update.hpp>
#include <cstddef>
#include <limits>
#include <string_view>

namespace cella::optim {

/// What `scaled_rate` makes.
template <class Rule>
struct rate_scaled : wrapped<Rule> {
  double factor{};

  constexpr void check(builder& b) const {
    if (!(factor >= 0 && factor < std::numeric_limits<double>::infinity())) {
      b.fail(text() << "optim::scaled_rate: the factor is " << factor
                    << "; it must be at least 0, and finite");
    }
    wrapped<Rule>::check(b);
  }
  constexpr void update(gradient_list g) const {
    g.pace.rate *= factor;
    optim::update(this->rule, g);
  }
};
/// The rule, with the learning rate times a factor.
template <optimizer Rule>
constexpr rate_scaled<Rule> scaled_rate(double factor, Rule rule) {
  return {{rule}, factor};
}

/// What `part` and `rest` make.
template <name_pattern Pattern, class Rule>
struct parameter_part : wrapped<Rule> {
  static constexpr std::string_view pattern = Pattern.view();
};
/// The rule of the parameters whose names match the pattern.
template <name_pattern Pattern, optimizer Rule>
constexpr parameter_part<Pattern, Rule> part(Rule rule) {
  return {{rule}};
}
/// The rule of all that earlier parts leave.
template <optimizer Rule>
constexpr parameter_part<"*", Rule> rest(Rule rule) {
  return {{rule}};
}

namespace detail {

template <class T>
inline constexpr bool is_part = false;
template <name_pattern Pattern, class Rule>
inline constexpr bool is_part<parameter_part<Pattern, Rule>> = true;
inline constexpr text no_part_text(
    "optim::parts takes parts: optim::part<\"*.bias\">(rule), and optim::rest(rule) as the last");

/// Whether each pattern takes some parameter that those before it leave, as far as it matches any;
/// one that never applies is a fault. A `*` at the end, which is what `rest` makes, may be left
/// with nothing.
constexpr bool all_apply(builder& b, span<const std::string_view> patterns) {
  for (std::size_t k = 1; k < patterns.size(); ++k) {
    if (patterns[k] == "*" && k + 1 == patterns.size()) return true;
    std::size_t taker = k;
    std::string_view taken;
    for (const input_info& in : b.g.inputs) {
      const std::string_view name = b.g.view(in.name);
      if (in.role != input_role::parameter || !matches(patterns[k], name)) continue;
      taker = 0;
      while (!matches(patterns[taker], name)) ++taker;
      taken = name;
      if (taker == k) break;
    }
    if (taker == k) continue;
    b.fail(text() << "optim::parts: the part \"" << patterns[k] << "\" never applies: the part \""
                  << patterns[taker] << "\" before it takes \"" << taken
                  << "\"; put the narrower pattern first, and optim::rest last");
    return false;
  }
  return true;
}

}  // namespace detail

/// A list of parts: the first whose pattern matches a parameter takes it.
template <class... Parts>
struct part_list {
  constexpr bool takes(std::string_view) const { return true; }
  constexpr void check_rules(builder&) const {}
  constexpr void update(const gradient_list& g) const {
    if (g.all.empty()) return;
    g.b->fail(text() << "optim::parts: no part takes \"" << g.name(g.all[0])
                     << "\"; add optim::rest(rule), or freeze it");
  }
};
template <class First, class... Others>
struct part_list<First, Others...> {
  First first{};
  part_list<Others...> others{};

  static constexpr bool reads_graph = First::reads_graph || (Others::reads_graph || ...);

  constexpr bool takes(std::string_view parameter) const {
    return matches(First::pattern, parameter) ? first.takes(parameter) : others.takes(parameter);
  }
  constexpr void check(builder& b) const {
    constexpr std::array patterns{First::pattern, Others::pattern...};
    if (detail::all_apply(b, patterns)) check_rules(b);
  }
  constexpr void check_rules(builder& b) const {
    if (!detail::some_match(b, "optim::part", First::pattern)) return;
    first.check(b);
    others.check_rules(b);
  }
  constexpr void update(const gradient_list& g) const {
    gradient_list own{g.b, {}, g.pace}, left{g.b, {}, g.pace};
    for (const parameter_gradient& p : g.all)
      (matches(First::pattern, g.name(p)) ? own : left).all.push_back(p);
    optim::update(first.rule, own);
    others.update(left);
  }
};

/// No part at all: the end of a list.
constexpr part_list<> parts() { return {}; }
/// A rule for each parameter: that of the first part whose pattern matches its name.
///
///   optim::parts(optim::part<"*.bias">(optim::sgd{}), optim::rest(optim::adam{}))
///
/// A pattern that matches no parameter is a fault, and so are a part to which earlier ones leave
/// nothing and a parameter that no part takes.
template <class First, class... Others>
requires(detail::is_part<First> && (detail::is_part<Others> && ...))  //
    constexpr part_list<First, Others...> parts(First first, Others... others) {
  return {first, parts(others...)};
}
/// A rule does not say whose it is.
template <class... Rules, class Why = cella::detail::sentence_of<detail::no_part_text>>
requires(!(detail::is_part<Rules> && ...)) constexpr part_list<> parts(Rules...) = delete;

}  // namespace cella::optim
