// Forms: several instructions of a line that are common together, as one opcode. Between
// instructions values go through memory, which takes longer than what activations compute.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/opcodes.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/span.hpp>
#include <type_traits>

namespace cella::cpu {

/// The numbers that a form has beside its operands: as options of its opcode.
struct form_numbers {
  std::array<double, 3> at{};
};

namespace detail {

template <class Op>
inline constexpr std::type_identity<Op> as_op{};

// Each form is a function of f(operation, operands...), of its operands and of its numbers: called
// with vectors it computes, called with places in a tree it says which instructions it stands for,
// if its numbers are such that it `fits`.
// Where an operation has options they are the opcode's; then there are no numbers. `compute` is
// what computes on vectors where it does so in another way.

struct leaky_relu_form {
  static constexpr int operands = 1, numbers = 2;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto zero, auto slope) {
    return f(as_op<select_op>, f(as_op<greater_op>, x, zero), x, f(as_op<mul_op>, x, slope));
  }
};
struct relu6_form {
  static constexpr int operands = 1, numbers = 1;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto six) {
    return f(as_op<select_op>, f(as_op<greater_equal_op>, x, six), six, f(as_op<relu_op>, x));
  }
};
struct hard_sigmoid_form {
  static constexpr int operands = 1, numbers = 3;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto three, auto six, auto sixth) {
    return f(as_op<mul_op>, relu6_form::of(f, f(as_op<add_op>, x, three), six), sixth);
  }
};
struct hard_swish_form {
  static constexpr int operands = 1, numbers = 3;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto three, auto six, auto sixth) {
    return f(as_op<mul_op>, x, hard_sigmoid_form::of(f, x, three, six, sixth));
  }
};
struct silu_form {
  static constexpr int operands = 1, numbers = 0;
  [[gnu::always_inline]] static auto of(auto f, auto x) {
    return f(as_op<mul_op>, x, f(as_op<sigmoid_op>, x));
  }
};
struct nan_to_num_form {
  static constexpr int operands = 2, numbers = 0;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto nan) {
    return f(as_op<select_op>, f(as_op<not_equal_op>, x, x), nan, f(as_op<clamp_op>, x));
  }
  /// To compare for equality takes fewer instructions.
  template <class V>
  [[gnu::always_inline]] static V compute(const attributes& options, const V& x, const V& nan) {
    return xsimd::select(x == x, apply_to_vectors<clamp_op>(options, x), nan);
  }
};
struct elu_form {
  static constexpr int operands = 1, numbers = 1;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto zero) {
    return f(as_op<select_op>, f(as_op<greater_op>, x, zero), x, power(f, x, zero));
  }
  [[gnu::always_inline]] static auto power(auto f, auto x, auto zero) {
    return f(as_op<expm1_op>, f(as_op<select_op>, f(as_op<greater_op>, x, zero), zero, x));
  }
};
struct selu_form {
  static constexpr int operands = 1, numbers = 3;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto zero, auto alpha, auto scale) {
    const auto power = f(as_op<mul_op>, elu_form::power(f, x, zero), alpha);
    return f(as_op<mul_op>, f(as_op<select_op>, f(as_op<greater_op>, x, zero), x, power), scale);
  }
};
struct hypot_form {
  static constexpr int operands = 2, numbers = 3;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto y, auto zero, auto one,
                                        auto infinity) {
    const auto a = f(as_op<abs_op>, x), b = f(as_op<abs_op>, y);
    const auto top = f(as_op<maximum_op>, a, b), low = f(as_op<minimum_op>, a, b);
    const auto divisor = f(as_op<select_op>, f(as_op<greater_op>, top, zero), top, one);
    const auto square = f(as_op<square_op>, f(as_op<div_op>, low, divisor));
    const auto root = f(as_op<sqrt_op>, f(as_op<add_op>, square, one));
    return f(as_op<select_op>, f(as_op<equal_op>, top, infinity), top, f(as_op<mul_op>, top, root));
  }
  static vec<float> compute(const attributes&, const vec<float>& x, const vec<float>& y) {
    return hypotenuse(x, y);
  }
};
/// What follows a sum in normalizations.
struct scaled_difference_form {
  static constexpr int operands = 3, numbers = 0;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto y, auto factor) {
    return f(as_op<mul_op>, f(as_op<sub_op>, x, y), factor);
  }
};
struct two_factors_form {
  static constexpr int operands = 3, numbers = 0;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto y, auto z) {
    return f(as_op<mul_op>, f(as_op<mul_op>, x, y), z);
  }
};
/// Logarithms to any base.
struct scaled_logarithm_form {
  static constexpr int operands = 1, numbers = 1;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto factor) {
    return f(as_op<mul_op>, f(as_op<log_op>, x), factor);
  }
};
struct logaddexp_rest_form {
  static constexpr int operands = 2, numbers = 1;
  [[gnu::always_inline]] static auto of(auto f, auto low, auto top, auto zero) {
    return f(as_op<select_op>, f(as_op<equal_op>, low, top), zero, f(as_op<sub_op>, low, top));
  }
};

/// Triangles of matrices: what x and y number are columns and rows.
template <class Keeps>
struct triangle_form {
  static constexpr int operands = 3, numbers = 1;
  [[gnu::always_inline]] static auto of(auto f, auto x, auto y, auto z, auto zero) {
    return f(as_op<select_op>, f(as_op<Keeps>, x, y), z, zero);
  }
};
struct exp2_form {
  static constexpr int operands = 1, numbers = 1;
  static bool fits(const form_numbers& n) { return n.at[0] == 2; }
  [[gnu::always_inline]] static auto of(auto f, auto x, auto two) {
    return f(as_op<pow_op>, two, x);
  }
  template <class V>
  [[gnu::always_inline]] static V compute(const attributes& options, const V& x) {
    if constexpr (std::is_same_v<V, vec<float>>)
      return binary_exponential(x);
    else
      return apply_to_vectors<pow_op>(options, V(2.0), x);
  }
};

/// Larger ones stand before those that are parts of them.
using all_forms =
    std::tuple<hypot_form, selu_form, elu_form, hard_swish_form, hard_sigmoid_form, relu6_form,
               leaky_relu_form, silu_form, nan_to_num_form, scaled_logarithm_form,
               logaddexp_rest_form, scaled_difference_form, two_factors_form,
               triangle_form<less_equal_op>, triangle_form<greater_equal_op>, exp2_form>;

/// An operation on places in a tree, or an operand or number of the form: it has no opcode.
template <class T>
struct form_entry {
  opcode<T> run{};
  std::array<int, 3> in{};
  int arity{};
  bool has_options{};
};
template <class T>
struct form_tree {
  list<form_entry<T>> entries;  ///< operands, numbers, operations; the result is the last
  int operands{}, numbers{};
  opcode<T> run{};
  bool (*fits)(const form_numbers&){};

  template <class Op, class... Places>
  int add(Places... places) {
    form_entry<T> e{find_opcode<T>(&info_of<Op>, truths_of<Op>)};
    ((e.in[std::size_t(e.arity++)] = places), ...);
    e.has_options = requires { typename Op::options; };
    entries.push_back(e);
    return int(entries.size()) - 1;
  }
};

template <class T>
struct compute_on_vectors {
  const attributes& options;
  template <class Op, class... V>
  [[gnu::always_inline]] auto operator()(std::type_identity<Op>, const V&... v) const {
    return apply_to_vectors<Op>(options, v...);
  }
};
template <class T, class Form>
void run_form(const attributes& options, const block_result<T>& to, const block_operand<T>* a,
              const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  // Copies: what is stored may not change them.
  const attributes own = options;
  const auto given = own.as<form_numbers>();
  [&]<std::size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    const std::array<vec<T>, sizeof...(K) + 1> number{vec<T>(static_cast<T>(given.at[K]))...,
                                                      vec<T>(T(0))};
    const auto of = [&](const auto&... v) __attribute__((always_inline)) {
      if constexpr (requires { Form::compute(own, v...); })
        return Form::compute(own, v...);
      else
        return Form::of(compute_on_vectors<T>{own}, v..., number[K]...);
    };
    for_block<Form::operands>(to, {*a, *b, *c}, n, of);
  }
  (std::make_index_sequence<std::size_t(Form::numbers)>{});
}

template <class T, class Form>
form_tree<T> tree_of_form() {
  form_tree<T> tree;
  constexpr int leaves = Form::operands + Form::numbers;
  for (int k = 0; k < leaves; ++k) tree.entries.push_back({});
  tree.operands = Form::operands;
  tree.numbers = Form::numbers;
  tree.run = &run_form<T, Form>;
  if constexpr (requires { Form::fits(form_numbers{}); }) tree.fits = &Form::fits;
  const auto add = [&]<class Op>(std::type_identity<Op>, auto... places) {
    return tree.template add<Op>(places...);
  };
  [&]<int... K>(std::integer_sequence<int, K...>) { Form::of(add, K...); }
  (std::make_integer_sequence<int, leaves>{});
  return tree;
}
template <class T>
const list<form_tree<T>>& trees_of_forms() {
  static const list<form_tree<T>> trees = [] {
    list<form_tree<T>> all;
    [&]<class... Form>(std::type_identity<std::tuple<Form...>>) {
      (all.push_back(tree_of_form<T, Form>()), ...);
    }(std::type_identity<all_forms>{});
    return all;
  }();
  return trees;
}

}  // namespace detail

/// Finds forms among the instructions of a line, of type `Line`.
template <class T, class Line>
class form_finder {
  using tree = detail::form_tree<T>;
  using instruction = typename Line::instruction;

 public:
  form_finder(span<const typename Line::value> values, span<const typename Line::output> outputs,
              list<instruction>& all)
      : values_(values), outputs_(outputs), all_(all) {}

  void join() {
    for (const tree& t : detail::trees_of_forms<T>()) {
      for (std::size_t last = 0; last < all_.size(); ++last) last -= joined(t, last);
    }
  }

 private:
  /// Makes instruction `last` the form whose result it is, if it is; how many others that takes.
  std::size_t joined(const tree& t, std::size_t last) {
    bound_.assign(t.entries.size(), -1);
    options_ = {};
    taken_.clear();
    if (!matches(t, int(t.entries.size()) - 1, all_[last].result)) return 0;
    // What is computed between is read by nobody else, nor is it an operand of the form.
    for (std::size_t i : taken_) {
      const int between = all_[i].result;
      if (i != last && (is_read_elsewhere(between) || is_operand(t, between))) return 0;
    }
    form_numbers n;
    for (int k = 0; k < t.numbers; ++k)
      n.at[std::size_t(k)] = values_[std::size_t(bound_[std::size_t(t.operands + k)])].literal;
    if (t.fits && !t.fits(n)) return 0;
    instruction& to = all_[last];
    const auto operand = [&](int k) { return bound_[std::size_t(k < t.operands ? k : 0)]; };
    to.run = t.run;
    to.in = {operand(0), operand(1), operand(2)};
    to.options = options_;
    if (t.numbers > 0) to.options = n;
    list<instruction> rest;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (i == last || !is_taken(i)) rest.push_back(all_[i]);
    }
    const std::size_t fewer = all_.size() - rest.size();
    all_ = std::move(rest);
    return fewer;
  }
  /// Whether value v is entry k of the tree, where the entries below and before it are.
  bool matches(const tree& t, int k, int v) {
    int& bound = bound_[std::size_t(k)];
    if (bound >= 0) return is_same(bound, v);
    const auto& e = t.entries[std::size_t(k)];
    if (!e.run) {
      if (k >= t.operands && values_[std::size_t(v)].from != Line::source::number) return false;
      bound = v;
      return true;
    }
    const auto made_by =
        std::find_if(all_.begin(), all_.end(), [&](const instruction& i) { return i.result == v; });
    if (made_by == all_.end() || made_by->run != e.run) return false;
    for (std::size_t i = 0; i < std::size_t(e.arity); ++i) {
      if (!matches(t, e.in[i], made_by->in[i])) return false;
    }
    bound = v;
    if (e.has_options) options_ = made_by->options;
    taken_.push_back(std::size_t(made_by - all_.begin()));
    return true;
  }
  bool is_same(int v, int w) const {
    const auto &a = values_[std::size_t(v)], &b = values_[std::size_t(w)];
    const bool numbers = a.from == Line::source::number && b.from == Line::source::number;
    return v == w || (numbers && a.literal == b.literal);
  }
  bool is_operand(const tree& t, int v) const {
    const auto end = bound_.begin() + t.operands;
    return std::find(bound_.begin(), end, v) != end;
  }
  bool is_taken(std::size_t i) const {
    return std::find(taken_.begin(), taken_.end(), i) != taken_.end();
  }
  bool is_read_elsewhere(int v) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto& in = all_[i].in;
      if (!is_taken(i) && std::find(in.begin(), in.end(), v) != in.end()) return true;
    }
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [&](const auto& o) { return o.value == v; });
  }

  span<const typename Line::value> values_;
  span<const typename Line::output> outputs_;
  list<instruction>& all_;
  list<int> bound_;  ///< to each entry of a tree: a value of the line
  attributes options_;
  list<std::size_t> taken_;
};

}  // namespace cella::cpu
