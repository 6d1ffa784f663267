// Branches, loops and recurrent layers.
#pragma once

#include <cctype>
#include <cella/interop/onnx/normalization.hpp>
#include <cella/transform/control.hpp>
#include <functional>

namespace cella::interop {

inline list<var> if_rule(onnx_node& n) {
  const var condition = reshape(n.in(0), shape{});
  if (n.is_known(0))
    return n.scope().trace(n.graph(n.integer(0) ? "then_branch" : "else_branch"), {});
  auto branch = [&](const char* name) {
    return [&n, name] { return n.scope().trace(n.graph(name), {}); };
  };
  return cond(condition, branch("then_branch"), branch("else_branch"));
}
inline list<var> part_of(const list<var>& all, std::size_t first, std::size_t last) {
  list<var> some;
  for (std::size_t i = first; i < last; ++i) some.push_back(all[i]);
  return some;
}
inline list<var> joined(list<var> a, const list<var>& b) {
  for (const var& x : b) a.push_back(x);
  return a;
}
/// Whether a body hands on the condition that it gets, or one that always holds.
inline bool never_stops(const ::onnx::GraphProto& body) {
  std::string name = body.output(0).name();
  for (int k = body.node_size(); k-- > 0;) {
    const auto& x = body.node(k);
    if (x.output_size() < 1 || x.output(0) != name) continue;
    if (x.op_type() == "Identity") {
      name = x.input(0);
    } else if (x.op_type() == "Constant" && x.attribute_size() == 1 && x.attribute(0).has_t()) {
      const auto& t = x.attribute(0).t();
      return t.raw_data() == std::string(1, '\1') || (t.int32_data_size() == 1 && t.int32_data(0));
    } else {
      return false;
    }
  }
  return name == body.input(1).name();
}
/// Loops of a known number of steps, whose bodies may hand out a slice in each; and loops that a
/// condition ends, whose bodies hand out none.
inline list<var> loop_rule(onnx_node& n) {
  const auto& body = n.graph("body");
  list<var> carried;
  for (int i = 2; i < n.input_count(); ++i) carried.push_back(n.in(i));
  if (body.input_size() != int(carried.size()) + 2 || body.output_size() < int(carried.size()) + 1)
    n.refuse("has a body that takes or hands out another number of values");
  const std::size_t slices = std::size_t(body.output_size()) - 1 - carried.size();
  // Where a body hands out slices, the number of steps must be known.
  const bool counted = n.has(0) && never_stops(body) && (slices || n.is_known(0));
  if (counted && (!n.has(1) || n.integer(1))) {
    const std::int64_t steps = n.integer(0);
    if (steps < 1 || steps > 1 << 30)
      n.not_supported("a loop of " + std::to_string(steps) + " steps");
    const var counts = iota(n.b(), {dtype::i64, {steps}}, 0);
    const var truth = constant(n.b(), 1, {dtype::boolean, {}});
    auto step = [&](list<var> state, var i) -> std::pair<list<var>, list<var>> {
      const list<var> in = joined({i, truth}, state);
      const list<var> out = n.scope().trace(body, span<const var>(in.data(), in.size()));
      return {part_of(out, 1, 1 + state.size()), part_of(out, 1 + state.size(), out.size())};
    };
    if (carried.empty()) {
      // A loop has a state, if only one that nothing reads.
      const auto [state, ys] =
          scan([&](var unused, var i) { return std::pair(unused, step({}, i).second); },
               constant(n.b(), 0, {dtype::i64, {}}), counts);
      return ys;
    }
    const auto [state, ys] = scan(step, carried, counts);
    return joined(state, ys);
  }
  if (slices) n.not_supported("slices of a loop whose number of steps is not known");
  const var first = constant(n.b(), 0, {dtype::i64, {}});
  const var truth = n.has(1) ? reshape(n.in(1), shape{}) : constant(n.b(), 1, {dtype::boolean, {}});
  const var limit = n.has(0) ? reshape(n.in(0), shape{}) : var{};
  const list<var> state = while_loop(
      [&](const list<var>& s) { return limit.b ? logical_and(s[1], less(s[0], limit)) : s[1]; },
      [&](const list<var>& s) -> list<var> {
        list<var> next{s[0] + 1};
        for (const var& x : n.scope().trace(body, span<const var>(s.data(), s.size())))
          next.push_back(x);
        return next;
      },
      joined({first, truth}, carried));
  return part_of(state, 2, state.size());
}
inline list<var> scan_rule(onnx_node& n) {
  if (n.opset() < 9) n.not_supported("a scan of opset 8");
  const auto& body = n.graph("body");
  const auto xs_count = std::size_t(n.integer("num_scan_inputs", 1));
  const list<var> in = n.inputs();
  if (xs_count < 1 || xs_count > in.size()) n.refuse("has a wrong number of scan inputs");
  const std::size_t carries = in.size() - xs_count;
  const auto backwards = n.integers("scan_input_directions");
  const auto axes = n.integers("scan_input_axes"), out_axes = n.integers("scan_output_axes");
  const auto out_backwards = n.integers("scan_output_directions");
  auto fits = [&](const std::vector<std::int64_t>& all, std::size_t count) {
    if (!all.empty() && all.size() != count)
      n.refuse("has not one direction or axis for each scan");
  };
  if (body.output_size() < int(carries)) n.refuse("has a body that hands out too few values");
  const auto ys_count = std::size_t(body.output_size()) - carries;
  fits(backwards, xs_count), fits(axes, xs_count);
  fits(out_backwards, ys_count), fits(out_axes, ys_count);
  list<var> xs;
  for (std::size_t k = 0; k < xs_count; ++k) {
    var x = in[carries + k];
    const int axis = axes.empty() ? 0 : n.axis(axes[k], x.rank());
    std::vector<int> order{axis};
    for (int d = 0; d < x.rank(); ++d)
      if (d != axis) order.push_back(d);
    x = permuted(x, order);
    xs.push_back(!backwards.empty() && backwards[k] ? reverse(x, 0) : x);
  }
  auto step = [&](list<var> state, list<var> x) -> std::pair<list<var>, list<var>> {
    const list<var> all = joined(state, x);
    const list<var> out = n.scope().trace(body, span<const var>(all.data(), all.size()));
    return {part_of(out, 0, carries), part_of(out, carries, out.size())};
  };
  auto [state, ys] = scan(step, part_of(in, 0, carries), xs);
  for (std::size_t k = 0; k < ys.size(); ++k) {
    if (!out_backwards.empty() && out_backwards[k]) ys[k] = reverse(ys[k], 0);
    const int axis = out_axes.empty() ? 0 : n.axis(out_axes[k], ys[k].rank());
    std::vector<int> order;
    for (int d = 1; d < ys[k].rank(); ++d) order.push_back(d);
    order.insert(order.begin() + axis, 0);
    ys[k] = permuted(ys[k], order);
  }
  return joined(state, ys);
}

// ---- recurrent layers

using activation = std::function<var(var)>;

/// The activations of a layer by their names, with ONNX's defaults.
class activation_names {
 public:
  explicit activation_names(const onnx_node& n)
      : n_(n),
        names_(n.strings("activations")),
        alpha_(n.numbers("activation_alpha")),
        beta_(n.numbers("activation_beta")) {}
  activation at(std::size_t i, const char* otherwise) const {
    std::string name = i < names_.size() ? names_[i] : otherwise;
    for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
    const double a = i < alpha_.size() ? alpha_[i] : std::nan("");
    const double b = i < beta_.size() ? beta_[i] : std::nan("");
    auto number = [](double said, double usual) { return std::isnan(said) ? usual : said; };
    if (name == "sigmoid") return [](var x) { return sigmoid(x); };
    if (name == "tanh") return [](var x) { return tanh(x); };
    if (name == "relu") return [](var x) { return relu(x); };
    if (name == "softsign") return [](var x) { return softsign(x); };
    if (name == "softplus") return [](var x) { return softplus(x); };
    if (name == "affine") return [k = number(a, 1), c = number(b, 0)](var x) { return x * k + c; };
    if (name == "leakyrelu") return [k = number(a, 0.01)](var x) { return leaky_relu(x, k); };
    if (name == "elu") return [k = number(a, 1)](var x) { return elu(x, k); };
    if (name == "hardsigmoid")
      return [k = number(a, 0.2), c = number(b, 0.5)](var x) { return clamp(x * k + c, 0, 1); };
    if (name == "scaledtanh")
      return [k = number(a, 1), c = number(b, 1)](var x) { return tanh(x * c) * k; };
    if (name == "thresholdedrelu")
      return [k = number(a, 1)](var x) { return select(x > k, x, zeros_like(x)); };
    n_.not_supported("the activation " + in_quotes(name));
  }

 private:
  const onnx_node& n_;
  std::vector<std::string> names_;
  std::vector<double> alpha_, beta_;
};

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

inline constexpr named_onnx_rule control_rules[] = {
    {"GRU", gru_rule},   {"If", if_rule},   {"LSTM", lstm_rule},
    {"Loop", loop_rule}, {"RNN", rnn_rule}, {"Scan", scan_rule},
};

}  // namespace cella::interop
