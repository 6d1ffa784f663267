// lstm: the loss of a long short-term memory with elementwise weights that predicts the next
// character of a text, and its gradient by the weights.
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <span>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

constexpr var row(var matrix, int i) {
  return reshape(slice(matrix, 0, i, i + 1), {matrix.extent(1)});
}

/// The parameters, each [bits], in the suite's order: four weights and four biases of each layer;
/// the weights of the input, and the weights and biases of the output.
struct parameters {
  std::vector<var> all;

  constexpr parameters(var main, var extra) {
    const int bits = extra.extent(1);
    for (int i = 0; i < main.extent(0); ++i) {
      for (int k = 0; k < 4; ++k) all.push_back(slice(row(main, i), 0, k * bits, (k + 1) * bits));
    }
    for (int i = 0; i < 3; ++i) all.push_back(row(extra, i));
  }
  constexpr var of_layer(int i, int k) const { return all[std::size_t(8 * i + k)]; }
  constexpr var extra(int i) const { return all[all.size() - 3 + std::size_t(i)]; }

  constexpr var gate(int i, int k, var x) const { return x * of_layer(i, k) + of_layer(i, 4 + k); }
  /// The next hidden and cell states of layer i.
  constexpr std::array<var, 2> next(int i, var x, var hidden, var cell) const {
    const var forget = sigmoid(gate(i, 0, x));
    const var in = sigmoid(gate(i, 1, hidden));
    const var out = sigmoid(gate(i, 2, x));
    const var change = tanh(gate(i, 3, hidden));
    const var c = cell * forget + in * change;
    return {out * tanh(c), c};
  }
};

/// state [2 layers,bits], text [characters,bits].
template <int Layers>
constexpr var loss(const parameters& p, var state, var text) {
  const int bits = text.extent(1);
  const int steps = text.extent(0) - 1;
  std::array<var, 2 * Layers> first;
  for (int i = 0; i < 2 * Layers; ++i) first[std::size_t(i)] = row(state, i);
  const auto step = [&](std::array<var, 2 * Layers> s, var x) {
    x = x * p.extra(0);
    for (int i = 0; i < Layers; ++i) {
      const auto k = std::size_t(2 * i);
      const auto [hidden, cell] = p.next(i, x, s[k], s[k + 1]);
      s[k] = x = hidden;
      s[k + 1] = cell;
    }
    return std::tuple{s, x};
  };
  const var hidden = std::get<1>(scan(step, first, slice(text, 0, 0, steps)));
  const var predicted = hidden * p.extra(1) + p.extra(2);
  const var lse = log(sum(exp(predicted), {1}, true) + 2);
  return sum((lse - predicted) * slice(text, 0, 1, steps + 1)) / (steps * bits);
}

template <int Layers>
struct value_cell {
  constexpr var operator()(var main, var extra, var state, var text) const {
    return loss<Layers>({main, extra}, state, text);
  }
};
/// One result per parameter.
template <int Layers>
struct gradient_cell {
  constexpr std::vector<var> operator()(var main, var extra, var state, var text) const {
    const parameters p(main, extra);
    return gradients(loss<Layers>(p, state, text), p.all);
  }
};

struct problem {
  explicit problem(const json& j)
      : main(flat(j.at("main_params"))),
        extra(flat(j.at("extra_params"))),
        state(flat(j.at("state"))),
        text(flat(j.at("sequence"))),
        layers(int(j.at("state").size()) / 2),
        characters(int(j.at("sequence").size())) {}
  int bits() const { return int(text.size()) / characters; }
  numbers main, extra, state, text;
  int layers, characters;
};

template <template <int> class Cell, int Layers, int Characters, int Bits>
using program_of = compiled<Cell<Layers>, reals<2 * Layers, 4 * Bits>, reals<3, Bits>,
                            reals<2 * Layers, Bits>, reals<Characters, Bits>>;

template <int Layers, int Characters, int Bits>
class value {
 public:
  explicit value(const problem& p) : p_(p) {}
  void operator()() {
    run_(p_.main, p_.extra, p_.state, p_.text);
    result_ = run_.result()[0];
  }
  json result() const { return result_; }

 private:
  const problem& p_;
  double result_{};
  program_of<value_cell, Layers, Characters, Bits> run_;
};

template <int Layers, int Characters, int Bits>
class gradient {
 public:
  explicit gradient(const problem& p) : p_(p) {}
  void operator()() {
    run_(p_.main, p_.extra, p_.state, p_.text);
    result_.clear();
    [&]<std::size_t... K>(std::index_sequence<K...>) { (append(run_.template result<K>()), ...); }
    (std::make_index_sequence<8 * Layers + 3>{});
  }
  json result() const { return result_; }

 private:
  void append(std::span<const double> more) {
    result_.insert(result_.end(), more.begin(), more.end());
  }
  const problem& p_;
  numbers result_;
  program_of<gradient_cell, Layers, Characters, Bits> run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const problem p(e.input);
    e.with_sizes<lstm_sizes>(
        std::array{p.layers, p.characters, p.bits()}, [&]<int... N>() {
          e.function<value<N...>>("objective", p);
          e.function<gradient<N...>>("jacobian", p);
        });
  });
}
