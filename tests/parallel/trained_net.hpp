// Training steps with the first values of their inputs, and what one device makes of them.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/step.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace cella::test {

/// Values of the inputs of a step, whole.
struct whole_inputs {
  std::vector<aligned_buffer> memory;
  std::vector<tensor_ref> values;
};

/// A training step, its graph and the first values of its inputs.
struct trained_net {
  graph step;
  whole_inputs first;
};

template <class Net, dtype Compute = dtype::f32, class Optimizer>
trained_net make_net(const tensor_type& x, const tensor_type& y, int classes, Optimizer optimizer) {
  training_step<Net, cross_entropy_loss, Optimizer, var, Compute> step;
  step.optimizer = optimizer;
  const std::array<tensor_type, 2> types{x, y};
  trained_net t{compiled_once::optimize(trace(step, types, {.training = true})), {}};
  Net net;
  const parameter_store store(net, 3);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < t.step.inputs.size(); ++i) {
    const input_info& in = t.step.inputs[i];
    const std::string_view label = t.step.view(in.name);
    const tensor_type type = t.step.type(t.step.input(int(i)));
    t.first.memory.emplace_back(std::size_t(type.bytes()));
    const tensor_ref v{t.first.memory.back().data(), type};
    t.first.values.push_back(v);
    for (std::int64_t k = 0; k < type.size(); ++k) {
      if (const named_parameter* p = store.find(label))
        write_element(v, k, read_element(store.value(*p), k));
      else if (in.role == input_role::argument)
        write_element(v, k,
                      is_integer(type.element) ? double(random() % unsigned(classes))
                                               : std::uniform_real_distribution(-1.0, 1.0)(random));
      else
        write_element(v, k, label == "learning_rate" ? 0.05 : label == "step" ? 1 : 0);
    }
  }
  return t;
}

inline std::vector<double> losses_on_one_device(const trained_net& t, int steps) {
  whole_inputs own;
  loaded_program run(t.step, dtype::f32);
  for (std::size_t i = 0; i < t.first.values.size(); ++i) {
    const tensor_ref& v = t.first.values[i];
    own.memory.emplace_back(std::size_t(v.type.bytes()));
    std::memcpy(own.memory.back().data(), v.data, std::size_t(v.type.bytes()));
    run.bind(int(i), own.memory.back().data());
  }
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s) {
    run();
    losses.push_back(read_element(run.result(0), 0));
  }
  return losses;
}

/// Whether two stores of one net have the same numbers, bit for bit.
inline bool same_numbers(const parameter_store& a, const parameter_store& b) {
  bool same = true;
  for (const named_parameter& p : a.entries())
    same &= std::memcmp(a.value(p).data, b.value(p).data, std::size_t(p.type.bytes())) == 0;
  return same;
}

/// The logits of all words, one behind the other, as the loss takes them.
struct small_gpt {
  models::gpt<32, 32, 4, 2, 16> net{};
  constexpr var operator()(var words) const { return reshape(net(words), {-1, 32}); }
};

inline trained_net lenet() {
  return make_net<models::lenet5>({dtype::f32, {16, 1, 28, 28}}, {dtype::i32, {16}}, 10,
                                  optim::sgd{.momentum = 0.9});
}
inline trained_net gpt() {
  return make_net<small_gpt>({dtype::i32, {8, 16}}, {dtype::i32, {128}}, 32, optim::adam{});
}

}  // namespace cella::test
