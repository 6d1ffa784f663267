// Recurrent nets of several layers and both directions, with projections, peepholes, dropout
// between layers, first states and sequences of different lengths. What one layer needs is shorter
// in recurrent.hpp.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>

namespace cella {

/// The form of a recurrent net, known when it is compiled.
struct recurrent_form {
  int layers = 1;
  bool bidirectional = false;
  int projection = 0;      ///< LSTM: width of the hidden state, if not that of the cell
  bool peepholes = false;  ///< LSTM: gates see the cell.  Gers et al. 2002

  constexpr int directions() const { return bidirectional ? 2 : 1; }
};

/// One layer in one direction.
inline constexpr recurrent_form one_layer{};

/// What a recurrent net begins with or leaves: for each layer and direction in it, [layers *
/// directions, N, width]. Only LSTMs have cells.
struct recurrent_state {
  var hidden{};
  var cell{};
};
/// The hidden state of each step, [N,T,directions * width], and the states that are left.
struct recurrent_result {
  var outputs;
  recurrent_state last;
};

namespace detail {

/// What a layer carries from step to step.
struct hidden_only {
  var hidden;
  static constexpr hidden_only of(var h, var) { return {h}; }
};
struct hidden_and_cell {
  var hidden;
  var cell;
  static constexpr hidden_and_cell of(var h, var c) { return {h, c}; }
};

// A kind of recurrent net makes the next state of what comes from the inputs, what comes from the
// hidden state, both [N, gates * width], and the state. Gates are in PyTorch's order.
struct rnn_kind {
  static constexpr int gates = 1;
  using state = hidden_only;
  static constexpr state next(var in, var back, const state&, const var*) {
    return {tanh(in + back)};
  }
};
struct gru_kind {
  static constexpr int gates = 3;
  using state = hidden_only;
  static constexpr state next(var in, var back, const state& s, const var*) {
    const auto i = split(in, 3, 1), r = split(back, 3, 1);
    const var update = sigmoid(i[1] + r[1]);
    const var fresh = tanh(i[2] + sigmoid(i[0] + r[0]) * r[2]);
    return {fresh + update * (s.hidden - fresh)};
  }
};
struct lstm_kind {
  static constexpr int gates = 4;
  using state = hidden_and_cell;
  static constexpr state next(var in, var back, const state& s, const var* peepholes) {
    const auto g = split(in + back, 4, 1);
    const auto seen = [&](var gate, int k, var cell) {
      return peepholes ? gate + cell * peepholes[k] : gate;
    };
    const var c =
        sigmoid(seen(g[1], 1, s.cell)) * s.cell + sigmoid(seen(g[0], 0, s.cell)) * tanh(g[2]);
    return {sigmoid(seen(g[3], 2, c)) * tanh(c), c};
  }
};

/// Stands where a layer lacks a part.
struct no_part {};

/// One direction of one layer; parameters are named as in PyTorch, but for their layer.
template <class Kind, int In, int Hidden, int Projection, bool Peepholes>
struct recurrent_layer {
  static constexpr int width = Projection ? Projection : Hidden;
  parameter<Kind::gates * Hidden, In> weight_ih{initializer::fan_in_uniform(Hidden)};
  parameter<Kind::gates * Hidden, width> weight_hh{initializer::fan_in_uniform(Hidden)};
  parameter<Kind::gates * Hidden> bias_ih{initializer::fan_in_uniform(Hidden)};
  parameter<Kind::gates * Hidden> bias_hh{initializer::fan_in_uniform(Hidden)};
  std::conditional_t<Projection != 0, nn::dense<Hidden, width, false>, no_part> project{};
  /// Rows: of the input, the forget and the output gate.
  std::conditional_t<Peepholes, parameter<3, Hidden>, no_part> peepholes{};

  struct result {
    var outputs;
    typename Kind::state last;
  };
  /// Steps [T,N,In] -> outputs [T,N,width]. Where `alive` [T,N,1], if it is given, is false, the
  /// state stays and the output is zero.
  constexpr result operator()(var steps, typename Kind::state first, var alive, bool reverse,
                              std::source_location at) const {
    builder& b = *steps.b;
    const cell_scope scope(steps, *this);
    const var recurrent = operand(weight_hh, at).in(b), bias = operand(bias_hh, at).in(b);
    const var inputs = matmul({steps, at}, {weight_ih, at}, false, true) + operand(bias_ih, at);
    std::array<var, 3> holes{};
    if constexpr (Peepholes) {
      const list<var> rows = unstack({operand(peepholes, at).in(b), at}, 0);
      for (std::size_t k = 0; k < 3; ++k) holes[k] = rows[k];
    }
    const auto next = [&](const typename Kind::state& s, var in) {
      const var back = matmul(s.hidden, recurrent, false, true) + bias;
      typename Kind::state n = Kind::next(in, back, s, Peepholes ? holes.data() : nullptr);
      if constexpr (Projection != 0) n.hidden = project(n.hidden, at);
      return n;
    };
    if (!alive.b) {
      const auto step = [&](typename Kind::state s, var in) {
        s = next(s, in);
        return std::tuple{s, s.hidden};
      };
      const auto [last, outputs] = scan(step, first, inputs, {.reverse = reverse}, at);
      return {outputs, last};
    }
    const auto step = [&](typename Kind::state s, std::tuple<var, var> in) {
      typename Kind::state n = next(s, std::get<0>(in));
      const auto stays = [&](var fresh, var old) {
        return select(broadcast_to(std::get<1>(in), fresh.shape()), fresh, old);
      };
      const var output = stays(n.hidden, zeros_like(n.hidden));
      n.hidden = stays(n.hidden, s.hidden);
      if constexpr (requires { n.cell; }) n.cell = stays(n.cell, s.cell);
      return std::tuple{n, output};
    };
    const auto [last, outputs] =
        scan(step, first, std::tuple{inputs, alive}, {.reverse = reverse}, at);
    return {outputs, last};
  }
};

}  // namespace detail

namespace nn {

/// A recurrent net: sequences [N,T,In] -> outputs [N,T,directions * width] and the last states.
/// `dropout` is that of the outputs of all layers but the last, while training. Behind the end of a
/// sequence outputs are zero, and the reverse direction begins at the end: what PyTorch does with
/// packed sequences.
template <class Kind, int In, int Hidden, recurrent_form Form>
struct recurrent_net {
  static constexpr auto directions = std::size_t(Form.directions());
  template <int Inputs>
  using layer =
      cella::detail::recurrent_layer<Kind, Inputs, Hidden, Form.projection, Form.peepholes>;
  static constexpr int width = layer<In>::width;

  std::array<layer<In>, directions> first{};
  std::conditional_t<(Form.layers > 1),
                     std::array<layer<int(directions) * width>,
                                std::size_t(Form.layers > 1 ? Form.layers - 1 : 1) * directions>,
                     cella::detail::no_part>
      deeper{};
  double dropout = 0;

  constexpr recurrent_result operator()(
      var x, std::source_location at = std::source_location::current()) const {
    return (*this)(x, var{}, {}, at);
  }
  /// `lengths` [N], integers from 1 to T; or none. `initial`: none of its members means zeros.
  constexpr recurrent_result operator()(
      var x, var lengths, recurrent_state initial = {},
      std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    builder& b = *x.b;
    if (Form.layers < 1 || ((Form.projection != 0 || Form.peepholes) && Kind::gates != 4)) {
      b.fail(text() << at << ": recurrent_net: "
                    << (Form.layers < 1 ? "a net has at least one layer"
                                        : "projections and peepholes belong to LSTMs"));
      return {x, {x, x}};
    }
    if (x.rank() != 3 || x.extent(2) != In) {
      b.fail(text() << at << ": recurrent_net: needs sequences [samples, steps, " << In
                    << "]: " << b.describe(x.id) << " is " << x.shape());
      return {x, {x, x}};
    }
    const int samples = x.extent(0), steps = x.extent(1);
    var alive{};
    if (lengths.b) {
      if (lengths.shape() != shape{samples} || !is_integer(lengths.element())) {
        b.fail(text() << at << ": recurrent_net: needs one integer length for each sequence: "
                      << b.describe(x.id) << " is " << x.shape() << ", " << b.describe(lengths.id)
                      << " is " << lengths.type());
        return {x, {x, x}};
      }
      tensor_type t{lengths.element(), {steps, samples, 1}};
      alive = iota(b, t, 0) < broadcast_to(reshape(lengths, {1, samples, 1}), t.shape);
    }
    var y = cella::detail::steps_first(x);
    list<var> hidden, cells;
    const auto run = [&](const auto& layers, std::size_t from) {
      list<var> sides;
      for (std::size_t d = 0; d < directions; ++d) {
        const auto number = int(hidden.size());
        const auto state = [&](var all, int w) {
          if (all.b) return squeeze(slice({all, at}, 0, number, number + 1), 0);
          return constant(b, 0, {x.element(), {samples, w}});
        };
        const auto r = layers[from + d](
            y, Kind::state::of(state(initial.hidden, width), state(initial.cell, Hidden)), alive,
            d == 1, at);
        sides.push_back(r.outputs);
        hidden.push_back(r.last.hidden);
        if constexpr (requires { r.last.cell; }) cells.push_back(r.last.cell);
      }
      y = directions == 1 ? sides[0] : concat(span<const var>(sides), 2);
    };
    run(first, 0);
    if constexpr (Form.layers > 1) {
      for (std::size_t l = 0; l + 1 < std::size_t(Form.layers); ++l) {
        y = cella::dropout({y, at}, dropout);
        run(deeper, l * directions);
      }
    }
    if (b.failed()) return {x, {x, x}};
    recurrent_state last{stack(span<const var>(hidden), 0, at), {}};
    if (cells.size()) last.cell = stack(span<const var>(cells), 0, at);
    return {cella::detail::steps_first(y), last};
  }
};

/// tanh nets of this form: `rnn_net<8, 16, {.layers = 2}>`.
template <int In, int Hidden, recurrent_form Form = one_layer>
using rnn_net = recurrent_net<cella::detail::rnn_kind, In, Hidden, Form>;
/// LSTMs of this form; projections: Sak et al. 2014.
template <int In, int Hidden, recurrent_form Form = one_layer>
using lstm_net = recurrent_net<cella::detail::lstm_kind, In, Hidden, Form>;
/// GRUs of this form.
template <int In, int Hidden, recurrent_form Form = one_layer>
using gru_net = recurrent_net<cella::detail::gru_kind, In, Hidden, Form>;

}  // namespace nn
}  // namespace cella
