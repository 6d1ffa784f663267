// Recurrent nets over sequences: rnn, lstm, gru, as functions of weights and as cells. Each step is
// one product for all gates; the products with the inputs are made before the loop, for all steps
// at once.
#pragma once

#include <cella/ops/activation.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <tuple>

namespace cella {

/// What a recurrent net yields: the hidden state of each step, [N, T, Hidden], and the last one,
/// [N, Hidden].
struct sequence_result {
  var outputs;
  var hidden;
};

/// The weights of a recurrent net as PyTorch has them: rows are gates, [gates * Hidden, In] and
/// [gates * Hidden, Hidden].
struct recurrent_weights {
  var ih;
  var hh;
  var bias_ih;
  var bias_hh;
};

namespace detail {

/// [N, T, F] -> [T, N, F], and back.
constexpr var steps_first(var x) { return transpose(x, {1, 0, 2}); }
/// Zeros [N, Hidden] for the sequences x.
constexpr var no_state(var x, const recurrent_weights& w) {
  return constant(*x.b, 0, {x.element(), {x.extent(0), w.hh.extent(1)}});
}
/// True if x is [N, T, In] for these weights; else a fault.
constexpr bool takes_sequences(std::string_view name, var x, const recurrent_weights& w,
                               std::source_location at) {
  if (x.rank() == 3 && x.extent(2) == w.ih.extent(1)) return true;
  x.b->fail(text() << at << ": " << name << ": needs sequences [samples, steps, " << w.ih.extent(1)
                   << "]: " << x.b->describe(x.id) << " is " << x.shape());
  return false;
}

}  // namespace detail

/// h = tanh(x ih^T + bias_ih + h hh^T + bias_hh): [N, T, In] -> [N, T, Hidden].
constexpr sequence_result rnn(var x, const recurrent_weights& w,
                              std::source_location at = std::source_location::current()) {
  if (!detail::takes_sequences("rnn", x, w, at)) return {x, x};
  const var inputs = matmul(detail::steps_first(x), w.ih, false, true) + w.bias_ih + w.bias_hh;
  const auto step = [&w](var h, var input) {
    h = tanh(input + matmul(h, w.hh, false, true));
    return std::tuple{h, h};
  };
  const auto result = scan(step, detail::no_state(x, w), inputs);
  return {detail::steps_first(std::get<1>(result)), std::get<0>(result)};
}

/// Long short-term memory, gates in the order input, forget, cell, output: [N, T, In] ->
/// [N, T, Hidden].  Hochreiter and Schmidhuber 1997; forget gates: Gers et al. 2000
constexpr sequence_result lstm(var x, const recurrent_weights& w,
                               std::source_location at = std::source_location::current()) {
  if (!detail::takes_sequences("lstm", x, w, at)) return {x, x};
  const var inputs = matmul(detail::steps_first(x), w.ih, false, true) + w.bias_ih + w.bias_hh;
  const auto step = [&w](std::tuple<var, var> state, var input) {
    const auto gates = split(input + matmul(std::get<0>(state), w.hh, false, true), 4, 1);
    const var c = sigmoid(gates[1]) * std::get<1>(state) + sigmoid(gates[0]) * tanh(gates[2]);
    const var h = sigmoid(gates[3]) * tanh(c);
    return std::tuple{std::tuple{h, c}, h};
  };
  const var zeros = detail::no_state(x, w);
  const auto result = scan(step, std::tuple{zeros, zeros}, inputs);
  return {detail::steps_first(std::get<1>(result)), std::get<0>(std::get<0>(result))};
}

/// Gated recurrent unit, gates in the order reset, update, new: [N, T, In] -> [N, T, Hidden]. The
/// reset gate acts behind the product, as in cuDNN and PyTorch.  Cho et al. 2014
constexpr sequence_result gru(var x, const recurrent_weights& w,
                              std::source_location at = std::source_location::current()) {
  if (!detail::takes_sequences("gru", x, w, at)) return {x, x};
  const var inputs = matmul(detail::steps_first(x), w.ih, false, true) + w.bias_ih;
  const auto step = [&w](var h, var input) {
    const auto i = split(input, 3, 1);
    const auto r = split(matmul(h, w.hh, false, true) + w.bias_hh, 3, 1);
    const var update = sigmoid(i[1] + r[1]);
    const var fresh = tanh(i[2] + sigmoid(i[0] + r[0]) * r[2]);
    h = fresh + update * (h - fresh);
    return std::tuple{h, h};
  };
  const auto result = scan(step, detail::no_state(x, w), inputs);
  return {detail::steps_first(std::get<1>(result)), std::get<0>(result)};
}

namespace nn {

/// A recurrent net of one layer as a cell; parameters are named as in PyTorch.
template <int In, int Hidden, int Gates, auto Run>
struct recurrent {
  parameter<Gates * Hidden, In> weight_ih_l0{initializer::fan_in_uniform(Hidden)};
  parameter<Gates * Hidden, Hidden> weight_hh_l0{initializer::fan_in_uniform(Hidden)};
  parameter<Gates * Hidden> bias_ih_l0{initializer::fan_in_uniform(Hidden)};
  parameter<Gates * Hidden> bias_hh_l0{initializer::fan_in_uniform(Hidden)};

  constexpr sequence_result operator()(
      var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const auto in = [&](const parameter_base& p) { return operand(p, at).in(*x.b); };
    return Run(x, {in(weight_ih_l0), in(weight_hh_l0), in(bias_ih_l0), in(bias_hh_l0)}, at);
  }
};

/// cella::rnn as a cell: [N, T, In] -> outputs [N, T, Hidden], hidden [N, Hidden].
template <int In, int Hidden>
using rnn = recurrent<In, Hidden, 1, &cella::rnn>;
/// cella::lstm as a cell, of the same shapes.
template <int In, int Hidden>
using lstm = recurrent<In, Hidden, 4, &cella::lstm>;
/// cella::gru as a cell, of the same shapes.
template <int In, int Hidden>
using gru = recurrent<In, Hidden, 3, &cella::gru>;

}  // namespace nn
}  // namespace cella
