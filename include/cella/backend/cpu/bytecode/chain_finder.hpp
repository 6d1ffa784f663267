// Finds the chains of a line (chains.hpp) when a plan is made.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/chains.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/span.hpp>
#include <type_traits>

namespace cella::cpu {

/// Which link an instruction is if its operand k runs, `none` if there is no such form. The other
/// operands are x and y.
struct link_form {
  std::array<link_code, 3> with{};
  int operands = 1;
  bool takes_truths{};  ///< the operands; t runs
  bool yields_truth{};
  bool chooses{};  ///< operand 0 is t
};

namespace detail {

template <class T>
struct cheap_opcode {
  opcode<T> run{};
  link_form form;
};
/// The cheap opcodes.
template <class T>
list<cheap_opcode<T>> cheap_opcodes() {
  using enum link_code;
  list<cheap_opcode<T>> all;
  const auto add_form = [&](opcode<T> run, std::array<link_code, 3> with, int operands) {
    all.push_back({run, {with, operands}});
  };
  const auto unary = [&]<class Op>(std::type_identity<Op>, link_code c) {
    add_form(find_opcode<T>(&info_of<Op>, 0), {c}, 1);
  };
  const auto binary = [&]<class Op>(std::type_identity<Op>, link_code c, link_code swapped) {
    add_form(find_opcode<T>(&info_of<Op>, 0), {c, swapped}, 2);
  };
  const auto compares = [&]<class Op>(std::type_identity<Op> op, link_code c, link_code swapped) {
    binary(op, c, swapped);
    all.back().form.yields_truth = true;
  };
  const auto of_truths = [&]<class Op>(std::type_identity<Op>, link_code c, int operands) {
    add_form(find_opcode<T>(&info_of<Op>, truths_of<Op>), {c, c}, operands);
    all.back().form.takes_truths = all.back().form.yields_truth = true;
  };
  add_form(&multiply_add_block<T>, {multiply_add, multiply_add, add_product}, 3);
  add_form(&subtract_product_block<T>,
           {subtract_product_from, subtract_product_from, subtract_product}, 3);
  add_form(&multiply_block<T>, {multiply, multiply}, 2);
  if constexpr (std::is_same_v<T, float>) {
    add_form(&round_block<T, float16>, {round_f16}, 1);
    add_form(&round_block<T, bfloat16>, {round_bf16}, 1);
  }
  binary(std::type_identity<add_op>{}, add, add);
  binary(std::type_identity<sub_op>{}, subtract, subtract_from);
  binary(std::type_identity<mul_op>{}, multiply, multiply);
  binary(std::type_identity<div_op>{}, divide, divide_into);
  binary(std::type_identity<maximum_op>{}, maximum, maximum_with);
  binary(std::type_identity<minimum_op>{}, minimum, minimum_with);
  binary(std::type_identity<relu_gradient_op>{}, relu_gradient, none);
  unary(std::type_identity<neg_op>{}, negate);
  unary(std::type_identity<abs_op>{}, absolute);
  unary(std::type_identity<square_op>{}, link_code::square);
  unary(std::type_identity<sqrt_op>{}, square_root);
  unary(std::type_identity<floor_op>{}, link_code::floor);
  unary(std::type_identity<relu_op>{}, link_code::relu);
  unary(std::type_identity<clamp_op>{}, link_code::clamp);
  compares(std::type_identity<equal_op>{}, link_code::equal, link_code::equal);
  compares(std::type_identity<not_equal_op>{}, link_code::not_equal, link_code::not_equal);
  compares(std::type_identity<less_op>{}, link_code::less, link_code::greater);
  compares(std::type_identity<less_equal_op>{}, link_code::less_equal, link_code::greater_equal);
  compares(std::type_identity<greater_op>{}, link_code::greater, link_code::less);
  compares(std::type_identity<greater_equal_op>{}, link_code::greater_equal, link_code::less_equal);
  of_truths(std::type_identity<logical_and_op>{}, both, 2);
  of_truths(std::type_identity<logical_or_op>{}, either, 2);
  of_truths(std::type_identity<logical_not_op>{}, no_truth, 1);
  add_form(find_opcode<T>(&info_of<select_op>, truths_of<select_op>), {none, choose, choose_other},
           3);
  all.back().form.chooses = true;
  return all;
}

}  // namespace detail

/// That of an opcode; with none at all if it is not cheap.
template <class T>
link_form link_form_of(opcode<T> run) {
  static const list<detail::cheap_opcode<T>> cheap = detail::cheap_opcodes<T>();
  for (const auto& c : cheap) {
    if (c.run == run) return c.form;
  }
  return {};
}

/// Instructions of a line that run together, from the first on: one alone, or a chain of links.
struct line_stretch {
  int first{}, count{};
  int first_link{}, links{};
};
/// A link whose operands are values of the line. Stores are of value x; `instruction` has the
/// options.
struct planned_link {
  link_code code{};
  int x = -1, y = -1;
  int instruction = -1;
};

/// The most instructions of a chain.
inline constexpr int most_chained = 64;

/// Makes the links of the cheap instructions `all`, of which `is_wanted(value)` says whether
/// somebody behind them reads a value. What no link finds in registers is stored.
template <class T, class Instruction>
class chain_finder {
 public:
  chain_finder(span<const Instruction> all, int first) : all_(all), first_(first) {}

  template <class Wanted>
  void find(list<planned_link>& links, list<char>& in_memory, Wanted is_wanted) {
    for (const Instruction& i : all_) {
      if (is_wanted(i.result)) in_memory[std::size_t(i.result)] = true;
    }
    list<planned_link> all;
    walk(all, in_memory);
    for (const planned_link& l : all) {
      const bool stores = l.code == link_code::store || l.code == link_code::store_truth;
      if (!stores || in_memory[std::size_t(l.x)]) links.push_back(l);
    }
  }

 private:
  /// Stores every result, and tells which are read from memory.
  void walk(list<planned_link>& links, list<char>& in_memory) {
    int running = -1, truth = -1;
    const auto from_memory = [&](int v) {
      in_memory[std::size_t(v)] = true;
      return v;
    };
    for (std::size_t n = 0; n < all_.size(); ++n) {
      const Instruction& i = all_[n];
      const link_form form = link_form_of<T>(i.run);
      if (form.chooses && truth != i.in[0]) {
        links.push_back({link_code::load_truth, from_memory(i.in[0])});
        truth = i.in[0];
      }
      const int now = form.takes_truths ? truth : running;
      int k = 0;
      while (k < form.operands &&
             (form.with[std::size_t(k)] == link_code::none || i.in[std::size_t(k)] != now))
        ++k;
      if (k == form.operands) {
        k = 0;
        while (form.with[std::size_t(k)] == link_code::none) ++k;
        links.push_back({form.takes_truths ? link_code::load_truth : link_code::load,
                         from_memory(i.in[std::size_t(k)])});
      }
      planned_link link{form.with[std::size_t(k)], -1, -1, first_ + int(n)};
      for (int other = form.chooses ? 1 : 0; other < form.operands; ++other) {
        if (other == k) continue;
        (link.x < 0 ? link.x : link.y) = from_memory(i.in[std::size_t(other)]);
      }
      links.push_back(link);
      if (form.yields_truth) {
        truth = i.result;
        // What was loaded for a comparison is still there.
        if (!form.takes_truths) running = i.in[std::size_t(k)];
      } else {
        running = i.result;
      }
      links.push_back({form.yields_truth ? link_code::store_truth : link_code::store, i.result});
    }
  }

  span<const Instruction> all_;
  int first_;
};

}  // namespace cella::cpu
