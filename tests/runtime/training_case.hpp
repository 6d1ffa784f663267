// A golden training run: initial weights, batches, the losses of each step, final weights; run as a
// compiled program or step by step by the interpreter.
#pragma once

#include <doctest/doctest.h>

#include <cella/models/lenet.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/train/step.hpp>
#include <cmath>

#include "../support/golden.hpp"

namespace cella::test {

/// The residual net of the golden file: convolution, batch norm, one residual block.
struct residual_net {
  nn::conv2d<3, 8, 3, false> c{.padding = 1};
  nn::batch_norm<8> b{};
  nn::conv2d<8, 8, 3, false> c1{.padding = 1};
  nn::batch_norm<8> b1{};
  nn::dense<8, 5> f{};

  constexpr var operator()(var x) const {
    x = relu(b(c(x)));
    x = relu(x + b1(c1(x)));
    return f(global_average_pool(x));
  }
};

/// One batch after the other, as (x, labels).
template <class T>
struct batches {
  std::vector<std::vector<T>> x;
  std::vector<std::vector<std::int32_t>> y;
  std::vector<double> losses;
};
template <class T>
batches<T> read_batches(const golden& g, const std::string& model) {
  batches<T> r;
  const auto x = g.tensor(model + ".x");
  const auto y = g.tensor(model + ".y");
  const auto n = std::size_t(x.shape[0]);
  for (std::size_t i = 0; i < n; ++i) {
    const auto cut = [&](const std::vector<double>& v, auto& out) {
      const std::size_t size = v.size() / n;
      for (std::size_t k = 0; k < size; ++k) {
        out.push_back(
            static_cast<typename std::decay_t<decltype(out)>::value_type>(v[i * size + k]));
      }
    };
    cut(x.values, r.x.emplace_back());
    cut(y.values, r.y.emplace_back());
  }
  r.losses = g.tensor(model + ".losses").values;
  return r;
}

/// Copies the golden tensors of `stage` into the parameters, or compares them; `rename` maps our
/// paths to the file's.
template <class T, class Rename>
void load_weights(const golden& g, const std::string& prefix, parameter_store& store,
                  Rename rename) {
  for (const auto& e : store.entries()) {
    const auto w = g.tensor(prefix + rename(e.name));
    REQUIRE(std::int64_t(w.values.size()) == e.type.size());
    T* to = reinterpret_cast<T*>(store.value(e).data);
    for (std::size_t i = 0; i < w.values.size(); ++i) to[i] = static_cast<T>(w.values[i]);
  }
  store.touch();
}
template <class T, class Rename>
double weight_error(const golden& g, const std::string& prefix, const parameter_store& store,
                    Rename rename) {
  double worst = 0;
  for (const auto& e : store.entries()) {
    const auto w = g.tensor(prefix + rename(e.name));
    const T* ours = reinterpret_cast<const T*>(store.value(e).data);
    double most = 0;
    double error = 0;
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      most = std::max(most, std::abs(w.values[i]));
      error = std::max(error, std::abs(double(ours[i]) - w.values[i]));
    }
    worst = std::max(worst, error / std::max(most, 1e-3));
  }
  return worst;
}

struct training_error {
  double loss{};     ///< worst relative error over the steps
  double weights{};  ///< worst error of the final weights, relative to the largest of each tensor
};

template <class Net, class Program, class Rename>
training_error train_compiled(const golden& g, const std::string& model, double rate,
                              Rename rename) {
  using T = element<Program::element_type>;
  Net net;
  parameter_store store(net, 0, Program::element_type);
  load_weights<T>(g, model + ".initial.", store, rename);
  const auto data = read_batches<T>(g, model);
  executable<Program> step(store);
  training_error r;
  for (std::size_t i = 0; i < data.losses.size(); ++i) {
    step.scalar(Program::scalar("learning_rate"), rate);
    if (Program::scalar("step") >= 0) step.scalar(Program::scalar("step"), double(i + 1));
    const std::size_t k = i % data.x.size();
    step(data.x[k].data(), data.y[k].data());
    const double loss = double(step.template result<0>()[0]);
    r.loss = std::max(r.loss,
                      std::isfinite(loss) ? std::abs(loss - data.losses[i]) / data.losses[i] : 1e9);
  }
  r.weights = weight_error<T>(g, model + ".final.", store, rename);
  return r;
}

/// The same without a program: node by node as the cell runs (`eagerly`), or from a graph that is
/// traced at run time.
template <class Step, dtype Element, int... Image, class Rename>
training_error train_at_run_time(const golden& g, const std::string& model, double rate,
                                 bool eagerly, Rename rename) {
  using T = element<Element>;
  Step step{};
  parameter_store store(step.wrapped(), 0, Element);
  load_weights<T>(g, model + ".initial.", store, rename);
  auto data = read_batches<T>(g, model);
  const int n = int(data.y[0].size());
  const std::array types{tensor_type{Element, {n, Image...}}, tensor_type{dtype::i32, {n}}};
  const trace_options options{.training = true, .precision = Element};
  const graph traced = trace(step, types, options);
  const slot_store slots(traced);
  training_error r;
  for (std::size_t i = 0; i < data.losses.size(); ++i) {
    const std::size_t k = i % data.x.size();
    const std::array arguments{
        tensor_ref{reinterpret_cast<std::byte*>(data.x[k].data()), types[0]},
        tensor_ref{reinterpret_cast<std::byte*>(data.y[k].data()), types[1]}};
    const std::array<named_scalar, 2> scalars{{{"learning_rate", rate}, {"step", double(i + 1)}}};
    runtime_path path({&store, &slots, arguments, scalars});
    if (eagerly)
      path.run_eagerly(step, types, options);
    else
      path.run(traced);
    const double loss = read_element(path.result(0), 0);
    r.loss = std::max(r.loss,
                      std::isfinite(loss) ? std::abs(loss - data.losses[i]) / data.losses[i] : 1e9);
  }
  r.weights = weight_error<T>(g, model + ".final.", store, rename);
  return r;
}

}  // namespace cella::test
