// Recurrent layers: RNN, GRU, LSTM, in either direction or both.
#pragma once

#include <cella/interop/onnx/control.hpp>
#include <cella/interop/onnx/cutting.hpp>
#include <cella/interop/onnx/recurrent_activations.hpp>
#include <cella/ops/matmul.hpp>

namespace cella::interop {

/// One direction of a recurrent layer of `gates` gates: what it shares with the others.
struct recurrent_direction {
  var input;      ///< [T, N, gates H]: x W' and the biases that can be added before
  var recurrent;  ///< [gates H, H]
  var bias;       ///< [gates H] of the recurrent product, or none
  var steps;      ///< [T]: their numbers
  var lengths;    ///< [N, 1], or none
  bool backwards{};
};
/// A state where a sequence goes on, the one before where it has ended.
inline var kept_when_ended(const recurrent_direction& d, var t, var next, var before) {
  return d.lengths.b ? select(less(t, d.lengths), next, before) : next;
}
/// Runs `cell(state, x W', t)` over the steps; its first state is what it hands out, zero behind
/// the end of a sequence. Returns {y [T, N, H], states...}.
template <class Cell>
list<var> run_direction(const recurrent_direction& d, list<var> first, Cell cell) {
  auto step = [&](list<var> state, list<var> x) -> std::pair<list<var>, var> {
    const var t = x[1];
    const list<var> made = cell(state, x[0]);
    list<var> next;
    for (std::size_t k = 0; k < made.size(); ++k)
      next.push_back(kept_when_ended(d, t, made[k], state[k]));
    return {next, kept_when_ended(d, t, made[0], zeros_like(made[0]))};
  };
  const auto [state, y] =
      scan(step, first, list<var>{d.input, d.steps}, scan_settings{.reverse = d.backwards});
  return joined({y}, state);
}
/// A recurrent layer of ONNX: `make(direction number, direction, first states)` runs one direction.
/// `states` is 1 or 2; the operands of their first values follow each other at 5.
template <class Make>
list<var> recurrent_layer(onnx_node& n, int gates, int states, Make make) {
  const bool batch_first = n.integer("layout", 0);
  var x = n.in(0, 3, 3);
  if (batch_first) x = transpose(x, {1, 0, 2});
  const std::string way = n.one_of("direction", {"forward", "reverse", "bidirectional"});
  const int directions = way == "bidirectional" ? 2 : 1;
  const std::int64_t steps = x.extent(0), batch = x.extent(1), hidden = n.in(2, 3, 3).extent(-1);
  if (n.has_attribute("clip")) n.not_supported("the attribute \"clip\"");
  list<var> ys;
  std::vector<list<var>> last(static_cast<std::size_t>(states));
  for (int k = 0; k < directions; ++k) {
    auto own = [&](int operand) {
      const var all = n.in(operand, 2);
      if (all.extent(0) != directions) n.refuse("has weights for another number of directions");
      return squeeze(cut(all, 0, k, 1), 0);
    };
    recurrent_direction d;
    d.backwards = way == "reverse" || k == 1;
    d.input = matmul(reshape(x, {steps * batch, x.extent(2)}), own(1), false, true);
    d.recurrent = own(2);
    if (d.recurrent.extent(0) != gates * hidden)
      n.refuse("has weights for another number of gates");
    if (n.has(3)) {
      const var bias = own(3);
      if (bias.shape() != shape{2 * gates * hidden}) n.refuse("has biases of another size");
      d.input = d.input + cut(bias, 0, 0, gates * hidden);
      d.bias = cut(bias, 0, gates * hidden, gates * hidden);
    }
    d.input = reshape(d.input, {steps, batch, gates * hidden});
    d.steps = iota(n.b(), {dtype::i64, {steps}}, 0);
    if (n.has(4)) d.lengths = reshape(cast(n.in(4), dtype::i64), {batch, 1});
    list<var> first;
    for (int s = 0; s < states; ++s) {
      if (!n.has(5 + s)) {
        first.push_back(constant(n.b(), 0, {x.element(), {batch, hidden}}));
        continue;
      }
      var h = n.in(5 + s, 3, 3);
      if (batch_first) h = transpose(h, {1, 0, 2});
      if (h.shape() != shape{directions, batch, hidden})
        n.refuse("has a first state of another size");
      first.push_back(squeeze(cut(h, 0, k, 1), 0));
    }
    const list<var> out = make(std::size_t(k), d, first);
    ys.push_back(expand_dims(out[0], 1));
    for (int s = 0; s < states; ++s)
      last[std::size_t(s)].push_back(expand_dims(out[std::size_t(s) + 1], 0));
  }
  var y = concat(span<const var>(ys.data(), ys.size()), 1);  // [T, directions, N, H]
  list<var> all{batch_first ? transpose(y, {2, 0, 1, 3}) : y};
  for (const list<var>& l : last) {
    const var h = concat(span<const var>(l.data(), l.size()), 0);
    all.push_back(batch_first ? transpose(h, {1, 0, 2}) : h);
  }
  return all;
}
/// Gate `k` of values [N, gates H].
inline var gate(var x, int k, int hidden) { return cut(x, 1, std::int64_t{k} * hidden, hidden); }

inline list<var> rnn_rule(onnx_node& n) {
  const activation_names names(n);
  return recurrent_layer(
      n, 1, 1, [&](std::size_t k, const recurrent_direction& d, list<var> first) {
        const activation f = names.at(k, "Tanh");
        return run_direction(d, first, [&](const list<var>& s, var x) -> list<var> {
          var y = x + matmul(s[0], d.recurrent, false, true);
          if (d.bias.b) y = y + d.bias;
          return {f(y)};
        });
      });
}
inline list<var> gru_rule(onnx_node& n) {
  const activation_names names(n);
  const bool late = n.integer("linear_before_reset", 0);
  return recurrent_layer(
      n, 3, 1, [&](std::size_t k, const recurrent_direction& d, list<var> first) {
        const int hidden = first[0].extent(1);
        const activation f = names.at(2 * k, "Sigmoid"), g = names.at(2 * k + 1, "Tanh");
        const var gates = cut(d.recurrent, 0, 0, 2 * hidden),
                  rest = cut(d.recurrent, 0, 2 * hidden, hidden);
        return run_direction(d, first, [&](const list<var>& s, var x) -> list<var> {
          const var h = s[0];
          var zr = cut(x, 1, 0, 2 * hidden) + matmul(h, gates, false, true);
          if (d.bias.b) zr = zr + cut(d.bias, 0, 0, 2 * hidden);
          const var z = f(gate(zr, 0, hidden)), r = f(gate(zr, 1, hidden));
          const var bias = d.bias.b ? cut(d.bias, 0, 2 * hidden, hidden) : var{};
          var proposal = matmul(late ? h : r * h, rest, false, true);
          if (bias.b) proposal = proposal + bias;
          if (late) proposal = r * proposal;
          const var c = g(gate(x, 2, hidden) + proposal);
          return {(1 - z) * c + z * h};
        });
      });
}
inline list<var> lstm_rule(onnx_node& n) {
  const activation_names names(n);
  if (n.integer("input_forget", 0)) n.not_supported("coupled gates");
  return recurrent_layer(
      n, 4, 2, [&](std::size_t k, const recurrent_direction& d, list<var> first) {
        const int hidden = first[0].extent(1);
        const activation f = names.at(3 * k, "Sigmoid"), g = names.at(3 * k + 1, "Tanh"),
                         h = names.at(3 * k + 2, "Tanh");
        list<var> peepholes;  // of the gates for input, output and forgetting
        if (n.has(7)) {
          const var all = n.in(7, 2, 2);
          if (all.extent(0) <= int(k) || all.extent(1) != 3 * hidden)
            n.refuse("has peepholes of another size");
          const var p = squeeze(cut(all, 0, std::int64_t(k), 1), 0);
          for (int i = 0; i < 3; ++i)
            peepholes.push_back(cut(p, 0, std::int64_t{i} * hidden, hidden));
        }
        return run_direction(d, first, [&](const list<var>& s, var x) -> list<var> {
          var gates = x + matmul(s[0], d.recurrent, false, true);
          if (d.bias.b) gates = gates + d.bias;
          auto seen = [&](var y, std::size_t which, var cell) {
            return peepholes.empty() ? y : y + peepholes[which] * cell;
          };
          const var i = f(seen(gate(gates, 0, hidden), 0, s[1]));
          const var forget = f(seen(gate(gates, 2, hidden), 2, s[1]));
          const var cell = forget * s[1] + i * g(gate(gates, 3, hidden));
          const var o = f(seen(gate(gates, 1, hidden), 1, cell));
          return {o * h(cell), cell};
        });
      });
}

inline constexpr named_onnx_rule recurrent_rules[] = {
    {"GRU", gru_rule},
    {"LSTM", lstm_rule},
    {"RNN", rnn_rule},
};

}  // namespace cella::interop
