// A golden training run: initial weights, batches, the losses of each step, final weights; run as a
// compiled program or by the interpreter.
#pragma once

#include <cella/runtime/executable.hpp>
#include <cella/transform/trace.hpp>
#include <cmath>
#include <functional>

#include "support/golden.hpp"

namespace cella::test {

struct training_error {
  double loss{};     ///< worst relative error over the steps
  double weights{};  ///< worst error of the final weights, relative to the largest of each tensor
};

/// How a step that is traced at run time runs: node by node as it is traced, node by node in the
/// graph that was traced once, or planned, on the kernels.
enum class at_run_time { eagerly, traced, planned };

/// The run of one model of the golden file, on batches of the types `x` and `y`.
class golden_training {
 public:
  struct setting {
    std::string model;
    tensor_type x{}, y{};
    double rate{};
    /// From our parameters' paths to the file's.
    std::string (*rename)(const std::string& path) = [](const std::string& path) { return path; };
  };
  golden_training(const golden& file, const setting& s);

  /// The compiled training step `Program` of `Net`.
  template <class Net, class Program>
  training_error run_compiled() const;
  /// A training step whose parameters are of type `Element`, traced at run time.
  template <class Step, dtype Element>
  training_error run(at_run_time how) const;

 private:
  std::size_t batch(int step) const { return std::size_t(step) % x_.size(); }
  void load(parameter_store& store) const;
  void compare_loss(int step, double loss, training_error& e) const;
  void compare_weights(const parameter_store& store, training_error& e) const;
  /// The step that `trace_step` traces, of a cell whose parameters are in `store`.
  training_error run(parameter_store& store, const std::function<void(builder&)>& trace_step,
                     dtype element, at_run_time how) const;

  golden file_;
  setting setting_;
  std::vector<std::vector<std::byte>> x_, y_;
  std::vector<double> losses_;
};

template <class Net, class Program>
training_error golden_training::run_compiled() const {
  Net net;
  parameter_store store(net, 0, Program::element_type);
  load(store);
  executable<Program> step(store);
  training_error e;
  for (int i = 0; i < int(losses_.size()); ++i) {
    step.scalar(Program::scalar("learning_rate"), setting_.rate);
    if (Program::scalar("step") >= 0) step.scalar(Program::scalar("step"), double(i + 1));
    step.call_unchecked(x_[batch(i)].data(), y_[batch(i)].data());
    compare_loss(i, double(step.template result<0>()[0]), e);
  }
  compare_weights(store, e);
  return e;
}

template <class Step, dtype Element>
training_error golden_training::run(at_run_time how) const {
  Step step{};
  parameter_store store(step.wrapped(), 0, Element);
  const auto trace_step = [&](builder& b) {
    b.training = true;
    b.precision = Element;
    trace_into(b, step, std::array{setting_.x, setting_.y});
  };
  return run(store, trace_step, Element, how);
}

}  // namespace cella::test
