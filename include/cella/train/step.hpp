// One training step as a cell: forward, loss, gradients and updates in one graph.
#pragma once

#include <cella/nn/losses.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/passes/simplify/sink_monotone.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/trace.hpp>

namespace cella {

// A loss is a function of (prediction, target) that yields the mean over the samples: a lambda or
// an object of a literal type. It may tell the target's type by
//   static constexpr tensor_type target(const tensor_type& prediction);
// without which targets are of the prediction's type.

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
  template <class Name>
  requires requires(Name n) { Function.takes(n); }
  constexpr bool takes(Name parameter) const { return Function.takes(parameter); }
};

/// (x, target) -> {loss, prediction}; updates the parameters of `net` by `optimizer`:
/// `training_step<models::lenet5, cross_entropy_loss, fixed<optim::adam{.beta1 = 0.8}>>`
template <class Net, class Loss, class Optimizer>
struct training_step {
  Net net{};
  Loss loss{};
  Optimizer optimizer{};

  struct result {
    var loss;
    var prediction;
  };
  constexpr Net& wrapped() { return net; }

  /// What is asked of the parts: see cell_check.hpp.
  static constexpr text fault() {
    if constexpr (!cell_fault<Net, 1>.empty()) {
      return cell_fault<Net, 1>;
    } else if constexpr (!std::is_invocable_v<const Loss&, var, var>) {
      return text(detail::type_name<Loss>())
             << ": a loss is a function of (var prediction, var target)";
    } else if constexpr (!std::is_same_v<std::invoke_result_t<const Loss&, var, var>, var>) {
      return text(detail::type_name<Loss>())
             << ": a loss returns a var, the mean over the samples, but this one returns "
             << detail::type_name<std::invoke_result_t<const Loss&, var, var>>();
    } else if constexpr (!optim::optimizer<Optimizer>) {
      return text(detail::type_name<Optimizer>())
             << ": an optimizer is a rule (optim::context&, var gradient), such as optim::adam{}";
    } else {
      return {};
    }
  }

  constexpr result operator()(var x, var target) {
    const var prediction = forward(x);
    if (x.b->failed()) return {x, x};
    const var l = loss(prediction, target);
    builder& b = *x.b;
    check_loss(b, l, prediction);
    optim::apply(optimizer, l);
    return {l, prediction};
  }

 private:
  static constexpr void check_loss(builder& b, var loss, var prediction) {
    if (b.failed()) {
      // A loss of this file has no place that its user could mend: the one of the output has.
      const text here = text() << std::source_location::current();
      const std::string_view file = here.view().substr(0, here.view().find(':') + 1);
      const std::string_view fault = b.fault().view();
      if (!fault.starts_with(file)) return;
      b.restate(b.place_of(prediction.id)
                << "the loss of this output: " << fault.substr(fault.find(' ') + 1));
    } else if (loss.type().size() != 1 || !is_floating(loss.element())) {
      b.fail(b.place_of(loss.id) << "the loss is " << loss.type()
                                 << "; it must be one floating-point number (mean it)");
    }
  }
  /// The network's graph goes through the one pass that has to precede differentiation.
  constexpr var forward(var x) {
    if (x.b->eager) return net(x);
    builder b;
    b.training = x.b->training;
    b.precision = x.b->precision;
    trace_into(b, net, std::array{x.type()});
    if (b.failed()) {
      x.b->fail(b.fault());
      return x;
    }
    x.b->bodies.random_streams(b.bodies.random_streams());
    return splice(*x.b, sink_monotone(std::move(b.g)), std::array{x})[0];
  }
};

}  // namespace cella
