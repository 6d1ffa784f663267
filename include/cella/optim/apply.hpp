// The updates of a training step in one call.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/optim/update.hpp>
#include <cella/transform/gradient.hpp>

namespace cella::optim {

namespace detail {

/// The gradients of `loss` by those parameters that match the pattern and are `taken`, by the
/// number of the input.
CELLA_ONCE constexpr gradient_list gradients_to_apply(var loss, std::string_view pattern,
                                                      const list<std::uint8_t>& taken,
                                                      std::source_location at) {
  builder& b = *loss.b;
  gradient_list g{&b};
  list<std::uint8_t> updated(b.g.inputs.size(), 0);
  for (const input_update& u : b.bodies.updates) updated[std::size_t(u.input)] = 1;
  list<var> parameters;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const std::string_view name = b.g.view(b.g.inputs[i].name);
    if (!taken[i] || !matches(pattern, name)) continue;
    if (updated[i]) {
      b.fail(text() << at << ": optim::apply: \"" << name
                    << "\" is updated twice in one step; give "
                    << "each call a pattern of its own, such as \"d.*\"");
    }
    parameters.push_back({&b, b.g.input(int(i))});
    g.all.push_back({std::int32_t(i), {}});
  }
  if (b.failed()) return g;
  const list<var> d = gradients(loss, parameters, at);
  for (std::size_t k = 0; k < d.size(); ++k) g.all[k].gradient = g.all[k].differentiated = d[k];
  return g;
}

}  // namespace detail

/// Lets an optimizer update the parameters whose names match `pattern` by the gradients of `loss`,
/// one floating-point number, in the cell that is being traced. Several calls in one step update
/// different parameters, and all see them as they were before the step:
///
///   optim::apply(optim::adam{}, d_loss, "d.*");
///   optim::apply(optim::adam{}, g_loss, "g.*");
///
/// A fault: a pattern that matches nothing, a parameter that is updated twice, and a call in the
/// body of a loop or a branch.
template <optimizer Optimizer>
constexpr void apply(const Optimizer& o, var loss, std::string_view pattern = "*",
                     std::source_location at = std::source_location::current()) {
  builder& b = *loss.b;
  if (b.failed()) return;
  if (b.here() != 0) {
    b.fail(text() << at << ": optim::apply updates parameters once in a step; call it outside of "
                  << "loops and branches");
    return;
  }
  if (pattern != "*" && !detail::some_match(b, "optim::apply", pattern)) return;
  optim::check(o, b);
  list<std::uint8_t> taken;
  for (const input_info& in : b.g.inputs)
    taken.push_back(in.role == input_role::parameter && takes(o, b.g.view(in.name)));
  if constexpr (detail::sees_loss<Optimizer>) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i] || !matches(pattern, b.g.view(b.g.inputs[i].name))) continue;
      loss = o.objective(context(b, std::int32_t(i)), loss);
      break;
    }
  }
  const gradient_list g = detail::gradients_to_apply(loss, pattern, taken, at);
  if (!b.failed()) detail::update_all(o, g);
}

}  // namespace cella::optim
