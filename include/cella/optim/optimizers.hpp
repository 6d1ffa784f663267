// Optimizers: each is a rule from (parameter, gradient, its slots) to new values, traced into the
// training step like everything else, so that updates fuse with the products that make gradients.
#pragma once

#include <cella/ops/functions.hpp>

namespace cella::optim {

/// What a rule may ask for while it is traced: slots (state per parameter, zero at first), the
/// learning rate and the step count, both inputs of the step.
class context {
 public:
  constexpr context(builder& b, std::int32_t parameter) : b_(&b), parameter_(parameter) {}

  constexpr var parameter() const { return {b_, b_->g.input(parameter_)}; }
  /// A tensor of the parameter's type that the rule keeps from step to step.
  constexpr var slot(std::string_view name) {
    const var p = parameter();
    text path;
    path << name << "." << b_->g.view(b_->g.inputs[std::size_t(parameter_)].name);
    last_slot_ = std::int32_t(b_->g.inputs.size());
    return {b_, b_->input(p.type(), input_role::slot, path.view())};
  }
  constexpr std::int32_t last_slot() const { return last_slot_; }
  /// A run-time number of the step, shared by all parameters.
  constexpr var scalar(std::string_view name) const {
    for (std::size_t i = 0; i < b_->g.inputs.size(); ++i) {
      const input_info& in = b_->g.inputs[i];
      if (in.role == input_role::scalar && b_->g.view(in.name) == name)
        return {b_, b_->g.input(int(i))};
    }
    return {b_, b_->input({b_->precision, {}}, input_role::scalar, name)};
  }
  constexpr var learning_rate() const { return scalar("learning_rate"); }
  /// 1 in the first step.
  constexpr var step() const { return scalar("step"); }

  constexpr void update_slot(std::int32_t input, var value) {
    b_->updates.push_back({input, value.id});
  }
  constexpr void update_parameter(var value) { b_->updates.push_back({parameter_, value.id}); }

 private:
  builder* b_;
  std::int32_t parameter_;
  std::int32_t last_slot_ = -1;
};

/// w -= rate g.  With momentum: v = momentum v + (1 - dampening) g, w -= rate v (PyTorch's
/// convention; the first step takes v = g). Nesterov: w -= rate (g + momentum v).
struct sgd {
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  constexpr void operator()(context& c, var g) const {
    const var w = c.parameter();
    if (weight_decay != 0) g = g + weight_decay * w;
    var step = g;
    if (momentum != 0) {
      const var v = c.slot("momentum");
      const std::int32_t slot = c.last_slot();
      var gain = g;
      if (dampening != 0) {
        // The first step is not damped.
        gain = g *
               broadcast_to(select(c.step() > 1, full_like(c.step(), 1 - dampening), 1), g.shape());
      }
      const var next = v * momentum + gain;
      c.update_slot(slot, next);
      step = nesterov ? g + next * momentum : next;
    }
    c.update_parameter(w - step * c.learning_rate());
  }
};

/// Adam.  Kingma and Ba 2015. `decoupled` decay is AdamW (Loshchilov and Hutter 2019).
struct adam {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;

  constexpr void operator()(context& c, var g) const {
    var w = c.parameter();
    const var rate = c.learning_rate();
    if (weight_decay != 0 && !decoupled) g = g + weight_decay * w;
    if (weight_decay != 0 && decoupled) w = w - w * (rate * weight_decay);
    const var m = c.slot("adam_m");
    const std::int32_t slot_m = c.last_slot();
    const var v = c.slot("adam_v");
    const std::int32_t slot_v = c.last_slot();
    const var next_m = m * beta1 + g * (1 - beta1);
    const var next_v = v * beta2 + square(g) * (1 - beta2);
    c.update_slot(slot_m, next_m);
    c.update_slot(slot_v, next_v);
    // Bias corrections come as run-time numbers: powers of the betas by the step.
    const var first = rate / (1 - pow(full_like(c.step(), beta1), c.step()));
    const var second = rsqrt(1 - pow(full_like(c.step(), beta2), c.step()));
    c.update_parameter(w - next_m * first / (sqrt(next_v) * second + epsilon));
  }
};
inline constexpr adam adamw(double weight_decay = 0.01) {
  return {.weight_decay = weight_decay, .decoupled = true};
}

}  // namespace cella::optim
