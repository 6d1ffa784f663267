// Optimizers as training steps call them: a rule for one parameter, or a wrapper that sees the
// gradients of all of them and hands them on.
#pragma once

#include <cella/graph/name_pattern.hpp>
#include <cella/graph/once.hpp>
#include <cella/optim/context.hpp>
#include <type_traits>

namespace cella::optim {

/// A parameter, by the number of its input, and its gradient.
struct parameter_gradient {
  std::int32_t parameter{};
  var gradient{};
  var differentiated{};  ///< the same before wrappers changed it, as the graph makes it
  var loss_scale{};      ///< what the loss was multiplied by for that, if it was
  bool decays = true;    ///< or the weight decay of a rule that reads the graph is not for it
};
/// What an optimizer updates in one step.
struct gradient_list {
  builder* b{};
  list<parameter_gradient> all{};
  optim::pace pace{};

  constexpr std::string_view name(const parameter_gradient& p) const {
    return b->g.view(b->g.inputs[std::size_t(p.parameter)].name);
  }
};

/// Updates one parameter: `void operator()(optim::context&, var gradient) const`.
template <class O>
concept rule = std::is_invocable_v<const O&, context&, var>;
/// Changes gradients or picks parameters, and calls `optim::update` with the rule that it wraps.
template <class O>
concept wrapper = requires(const O& o, const gradient_list& g) {
  o.update(g);
};
namespace detail {
/// The outermost wrapper may see the loss, and say what is differentiated in its place: `var
/// objective(optim::context, var loss) const`, with the context of the first parameter.
template <class O>
concept sees_loss = requires(const O& o, const context& c, var loss) {
  o.objective(c, loss);
};

/// What a rule does for one parameter. It hands over one new value for that, and one for each slot
/// that it asks for: what is forgotten would stay as it is without a word.
class made_by_a_rule {
 public:
  constexpr made_by_a_rule(builder& b, std::int32_t parameter)
      : b_(b),
        parameter_(parameter),
        inputs_(b.g.inputs.size()),
        updates_(b.bodies.updates.size()) {}

  constexpr void check() const {
    if (b_.failed()) return;
    const int values = updates_of(parameter_);
    if (values == 0) refuse(parameter_, "keeps its value; hand the new one to update_parameter");
    if (values > 1) refuse(parameter_, "is given two new values in one step; hand over the last");
    for (std::size_t i = inputs_; i < b_.g.inputs.size() && !b_.failed(); ++i) {
      if (b_.g.inputs[i].role == input_role::slot && updates_of(std::int32_t(i)) == 0)
        refuse(std::int32_t(i),
               "is never given a value; hand it to update_slot, behind the number "
               "that last_slot tells");
    }
  }

 private:
  constexpr int updates_of(std::int32_t input) const {
    int n = 0;
    for (std::size_t u = updates_; u < b_.bodies.updates.size(); ++u)
      n += b_.bodies.updates[u].input == input;
    return n;
  }
  constexpr void refuse(std::int32_t input, std::string_view why) const {
    b_.fail(text() << "optimizer: " << b_.g.view(b_.g.inputs[std::size_t(input)].name) << " "
                   << why);
  }

  builder& b_;
  std::int32_t parameter_;
  std::size_t inputs_;   ///< how many there were before
  std::size_t updates_;  ///< likewise
};
}  // namespace detail

/// With `void check(builder&) const` it may refuse a net before; with `bool takes(std::string_view
/// parameter) const` it leaves parameters as they are.
template <class O>
concept optimizer = rule<O> || wrapper<O>;

/// Updates the parameters of a list by an optimizer: what a wrapper calls with the rule in it.
template <optimizer O>
constexpr void update(const O& o, const gradient_list& g) {
  if constexpr (detail::sees_loss<O>) {
    g.b->fail(text("optim::loss_scale: has to see the loss; let it wrap all other wrappers"));
  } else if constexpr (wrapper<O>) {
    o.update(g);
  } else {
    for (const parameter_gradient& p : g.all) {
      if (g.b->failed()) return;
      context c(*g.b, p.parameter, g.pace);
      const detail::made_by_a_rule made(*g.b, p.parameter);
      o(c, p.gradient);
      made.check();
    }
  }
}
namespace detail {
/// The same for the optimizer of a training step.
template <optimizer O>
constexpr void update_all(const O& o, const gradient_list& g) {
  if constexpr (sees_loss<O>)
    o.update(g);
  else
    update(o, g);
}
}  // namespace detail

/// Whether an optimizer updates the parameter of this name.
template <optimizer O>
constexpr bool takes(const O& o, [[maybe_unused]] std::string_view parameter) {
  if constexpr (requires { o.takes(parameter); })
    return o.takes(parameter);
  else
    return true;
}
/// Whether an optimizer has slots of other shapes in another net: it says `static constexpr bool
/// reads_graph`.
template <optimizer O>
constexpr bool reads_graph() {
  if constexpr (requires { O::reads_graph; })
    return O::reads_graph;
  else
    return false;
}
/// Lets an optimizer refuse a net, or options of its own, before any step is traced.
template <optimizer O>
constexpr void check(const O& o, builder& b) {
  if constexpr (requires { o.check(b); }) o.check(b);
}

/// A rule, and what a wrapper passes on to it.
template <optimizer Rule>
struct wrapped {
  Rule rule{};

  static constexpr bool reads_graph = optim::reads_graph<Rule>();

  constexpr bool takes(std::string_view parameter) const { return optim::takes(rule, parameter); }
  constexpr void check(builder& b) const { optim::check(rule, b); }
};

namespace detail {

/// Whether a parameter matches; a pattern that matches none is a fault: it is misspelt.
CELLA_ONCE constexpr bool some_match(builder& b, std::string_view who, std::string_view pattern) {
  std::string_view first;
  bool has_parts = false;
  for (const input_info& in : b.g.inputs) {
    if (in.role != input_role::parameter) continue;
    const std::string_view name = b.g.view(in.name);
    if (matches(pattern, name)) return true;
    if (first.empty()) first = name;
    has_parts |= name.starts_with(pattern) && name.substr(pattern.size()).starts_with('.');
  }
  text sentence;
  sentence << who << ": no parameter matches \"" << pattern << "\"; ";
  if (has_parts)
    sentence << "for all of this layer write \"" << pattern << ".*\"";
  else
    sentence << "this net begins with \"" << first << "\"";
  b.fail(sentence);
  return false;
}

}  // namespace detail

}  // namespace cella::optim
