// What a rule of an optimizer sees while it is traced: one parameter, its slots, and the run-time
// numbers of the step.
#pragma once

#include <cella/ops/arithmetic.hpp>
#include <type_traits>

namespace cella::optim {

/// The first member of each rule, so that its options are given by name: other libraries take the
/// learning rate first.
struct named_options {
  constexpr named_options() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  __attribute__((unavailable(
      "name the options of a rule, such as {.weight_decay = 0.01}; the learning rate is none of "
      "them, tell it to fit, to train_step or to the step's scalar")))  //
  constexpr named_options(T) {}
  bool operator==(const named_options&) const = default;
};

/// How fast a rule goes, as wrappers round it say.
struct pace {
  double rate = 1;     ///< factor of the learning rate
  double batches = 1;  ///< steps of the program for one step of the rule
  var left_out{};      ///< if it has a builder: how many steps so far were none of the rule's
};

/// What a rule may ask for while it is traced: slots (state per parameter, zero at first), the
/// learning rate and the step count, both inputs of the step.
class context {
 public:
  constexpr context(builder& b, std::int32_t parameter, pace p = {})
      : b_(&b), parameter_(parameter), pace_(p) {}

  constexpr var parameter() const { return {b_, b_->g.input(parameter_)}; }
  /// Its path in the net: `conv1.weight`.
  constexpr std::string_view name() const {
    return b_->g.view(b_->g.inputs[std::size_t(parameter_)].name);
  }
  /// A tensor of the parameter's type that the rule keeps from step to step.
  constexpr var slot(std::string_view name) { return slot(name, parameter().type()); }
  /// The same of another type: a number per parameter is `{precision, {}}`.
  constexpr var slot(std::string_view name, const tensor_type& type) {
    const text path = path_of_slot(name);
    if (b_->of_optimizers.find_slot(b_->g, parameter_, path.view()) >= 0)
      b_->fail(text() << "two rules keep \"" << path
                      << "\"; one parameter has one slot of each name");
    last_slot_ = std::int32_t(b_->g.inputs.size());
    b_->of_optimizers.add_slot(parameter_, last_slot_);
    return {b_, b_->input(type, input_role::slot, path.view())};
  }
  /// The same, which a wrapper asks for more than once.
  constexpr var known_slot(std::string_view name, const tensor_type& type) {
    const std::int32_t known =
        b_->of_optimizers.find_slot(b_->g, parameter_, path_of_slot(name).view());
    if (known < 0) return slot(name, type);
    last_slot_ = known;
    return {b_, b_->g.input(known)};
  }
  constexpr std::int32_t last_slot() const { return last_slot_; }
  /// A run-time number of the step, shared by all parameters.
  constexpr var scalar(std::string_view name) const {
    if (const std::int32_t i = b_->of_optimizers.find_scalar(b_->g, name); i >= 0)
      return {b_, b_->g.input(i)};
    b_->of_optimizers.add_scalar(std::int32_t(b_->g.inputs.size()));
    return {b_, b_->input({b_->precision, {}}, input_role::scalar, name)};
  }
  /// A number that is the same for all parameters, such as one made of the step count and an
  /// option: `make()` makes it for the first of them. `what` is a literal that tells it from others
  /// with this option. (It stands before its uses: clang needs its body where they are evaluated.)
  template <class Make>
  constexpr var shared(std::string_view what, double option, const Make& make) const {
    const node_id left_out = pace_.left_out.b ? pace_.left_out.id : no_node;
    const shared_nodes::key k{what, option, pace_.rate, pace_.batches, b_->here(), left_out};
    if (const node_id known = b_->shared.find(k); known != no_node) return {b_, known};
    const var made = make();
    return {b_, b_->shared.add(k, made.id)};
  }
  constexpr var learning_rate() const {
    const var rate = scalar("learning_rate");
    if (pace_.rate == 1) return rate;
    return shared("rate of a pace", 0, [&] { return rate * pace_.rate; });
  }
  /// 1 in the first step of the rule.
  constexpr var step() const {
    const var count = scalar("step");
    if (pace_.batches == 1 && !pace_.left_out.b) return count;
    return shared("step of a pace", 0, [&] {
      const var own = pace_.left_out.b ? count - pace_.left_out : count;
      return pace_.batches == 1 ? own : own / pace_.batches;
    });
  }

  constexpr void update_slot(std::int32_t input, var value) { update(input, value); }
  constexpr void update_parameter(var value) { update(parameter_, value); }

 private:
  constexpr void update(std::int32_t input, var value) {
    if (input != parameter_ && !is_slot(input)) {
      b_->fail(text() << "optimizer: update_slot is given " << input
                      << ", which is no slot; hand over what last_slot() tells behind slot(name)");
      return;
    }
    const tensor_type wanted = b_->g.type(b_->g.input(input));
    if (!value.b || value.type() != wanted) {
      text fault("optimizer: ");
      fault << b_->g.view(b_->g.inputs[std::size_t(input)].name) << " is " << wanted;
      if (value.b)
        b_->fail(fault << ", but its new value is " << value.type());
      else
        b_->fail(fault << ", but its new value is a var that was never assigned");
      return;
    }
    b_->bodies.updates.push_back({input, value.id});
  }
  constexpr bool is_slot(std::int32_t input) const {
    return input >= 0 && std::size_t(input) < b_->g.inputs.size() &&
           b_->g.inputs[std::size_t(input)].role == input_role::slot;
  }
  constexpr text path_of_slot(std::string_view name) const {
    return text() << name << "." << this->name();
  }

  builder* b_;
  std::int32_t parameter_;
  pace pace_;
  std::int32_t last_slot_ = -1;
};

}  // namespace cella::optim
