// One training step as a cell: forward, loss, gradients and updates in one graph.
#pragma once

#include <algorithm>
#include <array>
#include <cella/nn/losses.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/passes/simplify/mixed_precision.hpp>
#include <cella/passes/simplify/sink_monotone.hpp>
#include <cella/train/call_forms.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/trace.hpp>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella {

// A loss is a function of (prediction, target) that yields the mean over the samples: a lambda or
// an object of a literal type. It may tell the target's type by
//   static constexpr tensor_type target(const tensor_type& prediction);
// without which targets are of the prediction's type. The prediction is what the net returns; of
// several outputs the first tells the target's type. A loss may see the inputs, too, and may take
// a struct of targets: see `training_step`.

/// Mean softmax cross-entropy of logits [N,C] and labels [N], 0 to C - 1.
struct cross_entropy_loss : nn::class_labels {
  constexpr var operator()(var logits, var labels) const {
    return softmax_cross_entropy(logits, labels);
  }
};
/// Mean of the squared differences.
struct squared_error_loss {
  constexpr var operator()(var prediction, var target) const {
    return mean_squared_error(prediction, target);
  }
};

/// A function that is a value as a type, for `training_step`: `fixed<optim::sgd{.momentum = 0.9}>`.
template <auto Function>
struct fixed {
  template <class... Arguments>
  requires std::is_invocable_v<decltype((Function)), Arguments...>
  constexpr auto operator()(Arguments&&... arguments) const {
    return Function(std::forward<Arguments>(arguments)...);
  }
  // Of an optimizer.
  constexpr void check(builder& b) const requires requires { Function.check(b); }
  { Function.check(b); }
  template <class List>
  requires requires(const List& g) { Function.update(g); }
  constexpr void update(const List& g) const { Function.update(g); }
  template <class Context>
  requires requires(const Context& c, var l) { Function.objective(c, l); }
  constexpr var objective(const Context& c, var loss) const { return Function.objective(c, loss); }
  template <class Name>
  requires requires(Name n) { Function.takes(n); }
  constexpr bool takes(Name parameter) const { return Function.takes(parameter); }
};

namespace detail {
template <auto Function>
struct last_of_loss<fixed<Function>> : last_of_loss<std::remove_cvref_t<decltype(Function)>> {};
template <auto Function>
struct called_loss<fixed<Function>> : called_loss<std::remove_cvref_t<decltype(Function)>> {};
template <auto Function>
requires std::is_pointer_v<decltype(Function)>
struct called_loss<fixed<Function>> {
  template <class... A>
  static constexpr text constexpr_fault() {
    text fault;
    if (!is_constexpr_function<Function, A...>)
      fault << type_name<fixed<Function>>()
            << ": the function is not constexpr, so that the compiler cannot trace it; write "
               "constexpr in front of it";
    return fault;
  }
};
/// The rule of an optimizer, where it is no wrapper.
template <class Optimizer>
struct called_rule {
  static constexpr text constexpr_fault() {
    if constexpr (optim::rule<Optimizer> && !optim::wrapper<Optimizer>)
      return detail::constexpr_fault<Optimizer, optim::context, const var>();
    else
      return {};
  }
};
template <auto Function>
struct called_rule<fixed<Function>> : called_rule<std::remove_cvref_t<decltype(Function)>> {};
/// A rule that returns what would be lost.
template <class Optimizer>
concept returns_update =
    optim::rule<Optimizer> && !optim::wrapper<Optimizer> &&
    !std::is_void_v<std::invoke_result_t<const Optimizer&, optim::context&, var>>;
}  // namespace detail

/// (x, target) -> {loss, prediction}; updates the parameters of `net` by `optimizer`:
/// `training_step<models::lenet5, cross_entropy_loss, fixed<optim::adam{.beta1 = 0.8}>>`
///
/// `Inputs` is a var, or a struct of vars: then the step takes its members in their order. The loss
/// is called with (prediction, target), or (prediction, inputs, target), or, if inputs are a
/// struct, (prediction, inputs); then the step takes no target. A target may be a struct of vars:
/// then the step takes its members in their order behind the inputs.
///
/// With `Compute` bf16 or f16 the net computes in that type what gains by it (see
/// `mixed_precision`); parameters, the optimizer's state, norms, softmax and the loss are of f32.
template <class Net, class Loss, class Optimizer, class Inputs = var, dtype Compute = dtype::f32>
struct training_step {
  Net net{};
  Loss loss{};
  Optimizer optimizer{};

  static constexpr auto inputs = std::size_t(detail::var_count<Inputs>());
  using outputs = detail::net_result<Net, inputs>;
  using loss_call = detail::loss_call<Loss, outputs, Inputs>;
  struct result {
    var loss;
    outputs prediction;
  };
  constexpr Net& wrapped() { return net; }

  /// What is asked of the parts: see cell_check.hpp.
  static constexpr text fault() {
    if constexpr (!cell_fault<Net, inputs>.empty()) {
      return cell_fault<Net, inputs>;
    } else if constexpr (detail::var_count<outputs>() < 1) {
      return text(detail::type_name<Net>())
             << ": the net of a model returns so many vars as its type says: write std::array, a "
                "tuple or a struct";
    } else if constexpr (!loss_call::possible) {
      text all(detail::type_name<Loss>());
      all << ": a loss is a function of (var prediction, var target)";
      if constexpr (!std::is_same_v<outputs, var> || !std::is_same_v<Inputs, var>)
        all << ", (prediction, inputs, target) or (prediction, inputs), where the prediction is "
            << detail::type_name<outputs>() << " and the inputs are "
            << detail::type_name<Inputs>();
      return all;
    } else if constexpr (!std::is_same_v<loss_type, var>) {
      return text(detail::type_name<Loss>())
             << ": a loss returns a var, the mean over the samples, but this one returns "
             << detail::type_name<loss_type>();
    } else if constexpr (!optim::optimizer<Optimizer>) {
      return text(detail::type_name<Optimizer>())
             << ": an optimizer is a rule (optim::context&, var gradient), such as optim::adam{}";
    } else if constexpr (detail::returns_update<Optimizer>) {
      return text(detail::type_name<Optimizer>())
             << ": a rule of an optimizer returns nothing; it hands the new value over: "
                "context.update_parameter(context.parameter() - rate * gradient)";
    } else {
      return {};
    }
  }

  /// What keeps the compiler from tracing the net, the loss, or the optimizer.
  static constexpr text constexpr_fault() {
    const text& fault = compiled_cell_fault<Net, inputs>;
    if (!fault.empty()) return fault;
    const text of_loss = loss_call::constexpr_fault();
    if (!of_loss.empty()) return of_loss;
    return detail::called_rule<Optimizer>::constexpr_fault();
  }

  /// The inputs, then the targets if the loss takes any.
  constexpr result operator()(std::same_as<var> auto... columns) requires(sizeof...(columns) ==
                                                                          inputs +
                                                                              loss_call::targets) {
    const std::array all{columns...};
    builder& b = *all[0].b;
    const outputs prediction = forward(all.data());
    if (b.failed()) return {all[0], prediction};
    const var l =
        loss_call::call(loss, prediction, detail::of_vars<Inputs>(all.data()), all.data() + inputs);
    check_loss(b, l, prediction);
    optim::apply(optimizer, l);
    return {l, prediction};
  }

 private:
  using loss_type = decltype(loss_call::call(
      std::declval<const Loss&>(), std::declval<const outputs&>(), std::declval<const Inputs&>(),
      std::declval<const typename loss_call::labels&>()));

  static constexpr void check_loss(builder& b, var loss, outputs prediction) {
    if (b.failed()) {
      // A loss of this file has no place that its user could mend: the one of the output has.
      const text here = text() << std::source_location::current();
      const std::string_view file = here.view().substr(0, here.view().find(':') + 1);
      const std::string_view fault = b.fault().view();
      if (!fault.starts_with(file)) return;
      node_id first = no_node;
      detail::visit_vars(prediction, [&](const var& v) { first = first < 0 ? v.id : first; });
      b.restate(b.place_of(first) << "the loss of this output: "
                                  << fault.substr(fault.find(' ') + 1));
    } else if (loss.type().size() != 1 || !is_floating(loss.element())) {
      b.fail(b.place_of(loss.id) << "the loss is " << loss.type()
                                 << "; it must be one floating-point number (mean it)");
    }
  }
  static constexpr graph passed(graph g) {
    if constexpr (is_storage_only(Compute)) g = cella::mixed_precision(std::move(g), Compute);
    return g;
  }
  /// The network's graph goes through the passes that have to precede differentiation.
  constexpr outputs forward(const var* x) {
    std::array<var, inputs> in{};
    std::copy_n(x, inputs, in.begin());
    builder& outer = *x->b;
    if (outer.eager && !is_storage_only(Compute)) return std::apply(net, in);
    std::array<tensor_type, inputs> types{};
    for (std::size_t i = 0; i < inputs; ++i) types[i] = in[i].type();
    builder b;
    b.training = outer.training;
    b.precision = outer.precision;
    trace_into(b, net, types);
    if (b.failed()) {
      outer.fail(b.fault());
      outputs none{};
      detail::visit_vars(none, [&](var& v) { v = *x; });
      return none;
    }
    outer.bodies.random_streams(b.bodies.random_streams());
    const auto results = splice(outer, passed(sink_monotone(std::move(b.g))), in);
    return detail::of_vars<outputs>(results.data());
  }
};

}  // namespace cella
