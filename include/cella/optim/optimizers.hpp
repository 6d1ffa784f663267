// Optimizers: each is a rule from (parameter, gradient, its slots) to new values, traced into the
// training step like everything else, so that updates fuse with the products that make gradients.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/rounding.hpp>
#include <cella/optim/context.hpp>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace cella::optim {

namespace detail {

/// An option of a rule, and what it may be: from `least` on, less than `below`.
struct ranged_option {
  std::string_view name;
  double value{}, least = 0, below = std::numeric_limits<double>::infinity();
};
/// Whether all options are what they may be; a fault names the first that is not. NaN never is.
constexpr bool fit(const context& c, std::string_view rule,
                   std::initializer_list<ranged_option> options) {
  for (const ranged_option& o : options) {
    if (o.value >= o.least && o.value < o.below) continue;
    text sentence;
    sentence << "optim::" << rule << ": " << o.name << " is " << o.value << "; it must ";
    if (o.below < std::numeric_limits<double>::infinity())
      sentence << "lie in [" << o.least << ", " << o.below << ")";
    else
      sentence << "be at least " << o.least << ", and finite";
    c.parameter().b->fail(sentence);
    return false;
  }
  return true;
}
/// The same for what rules with two moments have in common.
template <class Rule>
constexpr bool moments_fit(const context& c, std::string_view name, const Rule& r) {
  return fit(c, name,
             {{"beta1", r.beta1, 0, 1},
              {"beta2", r.beta2, 0, 1},
              {"epsilon", r.epsilon},
              {"weight_decay", r.weight_decay}});
}

}  // namespace detail

/// w -= rate g.  With momentum: v = momentum v + (1 - dampening) g, w -= rate v (PyTorch's
/// convention; the first step takes v = g). Nesterov: w -= rate (g + momentum v).
struct sgd {
  named_options by_name{};
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "sgd",
                     {{"momentum", momentum, 0, 1},
                      {"dampening", dampening, 0, 1},
                      {"weight_decay", weight_decay}}))
      return;
    if (momentum == 0 && (nesterov || dampening != 0)) {
      c.parameter().b->fail(text() << "optim::sgd: " << (nesterov ? "nesterov" : "dampening")
                                   << " does nothing without momentum; give momentum, or leave it "
                                      "out");
      return;
    }
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

namespace detail {

/// Keeps a slot from step to step: `slot = decay slot + gain`.
constexpr var decayed_slot(context& c, std::string_view name, double decay, var gain) {
  const var old = c.slot(name);
  const std::int32_t slot = c.last_slot();
  const var next = old * decay + gain;
  c.update_slot(slot, next);
  return next;
}
/// 1 - beta^step, without the cancellation that it has in f32 for a beta near 1.
constexpr var one_minus_power(const context& c, double beta) {
  return c.shared("1 - beta^step", beta,
                  [&] { return -expm1(c.step() * log1p(full_like(c.step(), beta - 1))); });
}
constexpr var with_decay(const context& c, var g, double weight_decay) {
  return weight_decay != 0 ? g + weight_decay * c.parameter() : g;
}
/// A number of the step, repeated for each element of `like`.
constexpr var spread(var number, var like) { return broadcast_to(number, like.shape()); }

}  // namespace detail

/// Adam.  Kingma and Ba 2015. `decoupled` decay is AdamW (Loshchilov and Hutter 2019); `amsgrad`
/// divides by the largest second moment so far (Reddi et al. 2018). `plain_epsilon` is added to the
/// root of the moment before that is corrected, as in section 2 of the paper, TensorFlow and ONNX.
struct adam {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  bool amsgrad = false;
  bool plain_epsilon = false;

  /// Faults name `rule`, which may be what calls this one.
  CELLA_ONCE constexpr void operator()(context& c, var g, std::string_view rule = "adam") const {
    if (!detail::moments_fit(c, rule, *this)) return;
    var w = c.parameter();
    const var rate = c.learning_rate();
    if (decoupled && weight_decay != 0) w = w - w * (rate * weight_decay);
    if (!decoupled) g = detail::with_decay(c, g, weight_decay);
    const var m = detail::decayed_slot(c, "adam_m", beta1, g * (1 - beta1));
    var v = detail::decayed_slot(c, "adam_v", beta2, square(g) * (1 - beta2));
    if (amsgrad) {
      const var top = c.slot("adam_top");
      const std::int32_t slot = c.last_slot();
      v = maximum(top, v);
      c.update_slot(slot, v);
    }
    const var first = c.shared("rate / (1 - beta^step)", beta1,
                               [&] { return rate / detail::one_minus_power(c, beta1); });
    const var second = c.shared("rsqrt(1 - beta^step)", beta2,
                                [&] { return rsqrt(detail::one_minus_power(c, beta2)); });
    c.update_parameter(w - (plain_epsilon ? m * (first / second) / (sqrt(v) + epsilon)
                                          : m * first / (sqrt(v) * second + epsilon)));
  }
};
/// Adam with decoupled weight decay.
struct adamw {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;

  constexpr void operator()(context& c, var g) const {
    adam{.beta1 = beta1,
         .beta2 = beta2,
         .epsilon = epsilon,
         .weight_decay = weight_decay,
         .decoupled = true,
         .amsgrad = amsgrad}(c, g, "adamw");
  }
};

/// Adam with the largest gradient so far in place of the second moment.  Kingma and Ba 2015, sec. 7
struct adamax {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::moments_fit(c, "adamax", *this)) return;
    g = detail::with_decay(c, g, weight_decay);
    const var m = detail::decayed_slot(c, "adamax_m", beta1, g * (1 - beta1));
    const var u = c.slot("adamax_u");
    const std::int32_t slot = c.last_slot();
    const var next = maximum(u * beta2, abs(g) + epsilon);
    c.update_slot(slot, next);
    const var rate = c.learning_rate() / detail::one_minus_power(c, beta1);
    c.update_parameter(c.parameter() - m * rate / next);
  }
};

/// Adam with Nesterov's momentum.  Dozat 2016
struct nadam {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::moments_fit(c, "nadam", *this) ||
        !detail::fit(c, "nadam", {{"momentum_decay", momentum_decay}}))
      return;
    g = detail::with_decay(c, g, weight_decay);
    const var t = c.step();
    const var one = full_like(t, 1);
    const auto momentum_of = [&](var step) {
      return beta1 * (1 - 0.5 * pow(full_like(t, 0.96), step * momentum_decay));
    };
    const var now = momentum_of(t);
    const var later = momentum_of(t + 1);
    // The product of all momenta, kept as its distance from 1, because slots begin with zero.
    const var distance = c.slot("nadam_mu", t.type());
    const std::int32_t slot = c.last_slot();
    const var product = (one - distance) * now;
    c.update_slot(slot, one - product);
    const var m = detail::decayed_slot(c, "nadam_m", beta1, g * (1 - beta1));
    const var v = detail::decayed_slot(c, "nadam_v", beta2, square(g) * (1 - beta2));
    const var rate = c.learning_rate();
    const var of_g = rate * (1 - now) / (1 - product);
    const var of_m = rate * later / (1 - product * later);
    const var second = rsqrt(detail::one_minus_power(c, beta2));
    c.update_parameter(c.parameter() - (g * of_g + m * of_m) / (sqrt(v) * second + epsilon));
  }
};

/// Adam that trusts the second moment once its variance is known.  Liu et al. 2020
struct radam {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::moments_fit(c, "radam", *this)) return;
    g = detail::with_decay(c, g, weight_decay);
    const var m = detail::decayed_slot(c, "radam_m", beta1, g * (1 - beta1));
    const var v = detail::decayed_slot(c, "radam_v", beta2, square(g) * (1 - beta2));
    const var t = c.step();
    const var second = detail::one_minus_power(c, beta2);
    const double most = 2 / (1 - beta2) - 1;
    const var length = most - 2 * t * (1 - second) / second;
    // The rectification is not used where the length is at most 5: any positive number will do.
    const var known = maximum(length, 5);
    const var factor =
        sqrt((known - 4) * (known - 2) / known * (most / ((most - 4) * (most - 2))) * second);
    const var adapted = factor / (sqrt(v) + epsilon);
    const var trusted = detail::spread(length, m) > 5;
    const var rate = c.learning_rate() / detail::one_minus_power(c, beta1);
    c.update_parameter(c.parameter() - m * rate * select(trusted, adapted, ones_like(m)));
  }
};

/// Divides by a running root mean square.  Tieleman and Hinton 2012; `centered` is Graves 2013
struct rmsprop {
  named_options by_name{};
  double decay = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "rmsprop",
                     {{"decay", decay, 0, 1},
                      {"epsilon", epsilon},
                      {"weight_decay", weight_decay},
                      {"momentum", momentum, 0, 1}}))
      return;
    g = detail::with_decay(c, g, weight_decay);
    var v = detail::decayed_slot(c, "rms_v", decay, square(g) * (1 - decay));
    if (centered) {
      const var mean = detail::decayed_slot(c, "rms_mean", decay, g * (1 - decay));
      v = maximum(v - square(mean), 0);  // which rounding brings below 0 where gradients stay
    }
    var step = g / (sqrt(v) + epsilon);
    if (momentum != 0) step = detail::decayed_slot(c, "momentum", momentum, step);
    c.update_parameter(c.parameter() - step * c.learning_rate());
  }
};

/// Divides by the root of the sum of all squares.  Duchi et al. 2011
struct adagrad {
  named_options by_name{};
  double learning_rate_decay = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  double initial = 0;  ///< what the sum begins with

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "adagrad",
                     {{"learning_rate_decay", learning_rate_decay},
                      {"epsilon", epsilon},
                      {"weight_decay", weight_decay},
                      {"initial", initial}}))
      return;
    g = detail::with_decay(c, g, weight_decay);
    var sum = detail::decayed_slot(c, "adagrad_sum", 1, square(g));
    if (initial != 0) sum = sum + initial;
    var rate = c.learning_rate();
    if (learning_rate_decay != 0) rate = rate / (1 + (c.step() - 1) * learning_rate_decay);
    c.update_parameter(c.parameter() - g * rate / (sqrt(sum) + epsilon));
  }
};

/// Steps as long as the last ones.  Zeiler 2012
struct adadelta {
  named_options by_name{};
  double decay = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;

  CELLA_ONCE constexpr void operator()(context& c, var g) const {
    if (!detail::fit(
            c, "adadelta",
            {{"decay", decay, 0, 1}, {"epsilon", epsilon}, {"weight_decay", weight_decay}}))
      return;
    g = detail::with_decay(c, g, weight_decay);
    const var v = detail::decayed_slot(c, "adadelta_v", decay, square(g) * (1 - decay));
    const var u = c.slot("adadelta_u");
    const std::int32_t slot = c.last_slot();
    const var step = sqrt(u + epsilon) / sqrt(v + epsilon) * g;
    c.update_slot(slot, u * decay + square(step) * (1 - decay));
    c.update_parameter(c.parameter() - step * c.learning_rate());
  }
};

}  // namespace cella::optim
