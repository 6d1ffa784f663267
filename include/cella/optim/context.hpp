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
    text path;
    path << name << "." << this->name();
    for (const input_info& in : b_->g.inputs) {
      if (in.role == input_role::slot && b_->g.view(in.name) == path.view())
        b_->fail(text() << "two rules keep \"" << path
                        << "\"; one parameter has one slot of each name");
    }
    last_slot_ = std::int32_t(b_->g.inputs.size());
    return {b_, b_->input(type, input_role::slot, path.view())};
  }
  /// The same, which a wrapper asks for more than once.
  constexpr var known_slot(std::string_view name, const tensor_type& type) {
    const text path = text() << name << "." << this->name();
    for (std::size_t i = 0; i < b_->g.inputs.size(); ++i) {
      const input_info& in = b_->g.inputs[i];
      if (in.role != input_role::slot || b_->g.view(in.name) != path.view()) continue;
      last_slot_ = std::int32_t(i);
      return {b_, b_->g.input(int(i))};
    }
    return slot(name, type);
  }
  constexpr std::int32_t last_slot() const { return last_slot_; }
  /// A run-time number of the step, shared by all parameters.
  constexpr var scalar(std::string_view name) const {
    for (std::size_t i = b_->g.inputs.size(); i-- > 0;) {
      const input_info& in = b_->g.inputs[i];
      if (in.role == input_role::scalar && b_->g.view(in.name) == name)
        return {b_, b_->g.input(int(i))};
    }
    return {b_, b_->input({b_->precision, {}}, input_role::scalar, name)};
  }
  constexpr var learning_rate() const {
    const var rate = scalar("learning_rate");
    return pace_.rate == 1 ? rate : rate * pace_.rate;
  }
  /// 1 in the first step.
  constexpr var step() const {
    const var count = scalar("step");
    return pace_.batches == 1 ? count : count / pace_.batches;
  }

  constexpr void update_slot(std::int32_t input, var value) {
    b_->bodies.updates.push_back({input, value.id});
  }
  constexpr void update_parameter(var value) {
    b_->bodies.updates.push_back({parameter_, value.id});
  }

 private:
  builder* b_;
  std::int32_t parameter_;
  pace pace_;
  std::int32_t last_slot_ = -1;
};

}  // namespace cella::optim
