// Functions of the elements of plain tensors that loops do not fuse: special functions, numbers of
// distributions, digits of integers, and what is of other types than the program computes in.
#pragma once

#include <cella/backend/cpu/loops/bitwise_values.hpp>
#include <cella/backend/cpu/loops/special_values.hpp>
#include <cella/backend/cpu/loops/typed_values.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/plan/default_kernel.hpp>
#include <cella/backend/cpu/simd/drawn_numbers.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/random.hpp>

namespace cella::cpu {

struct special_record : record_for<step_kind::special> {
  static constexpr int units(auto step, int) { return special_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    const std::int64_t first = units.first * special_unit;
    const std::int64_t last = std::min(units.last * special_unit, step.operand(0).size());
    const bool two = step.anchor().operand_count > 1;
    const auto f = with_operation(step, special_operations{}, [&]<class Op>() {
      return constant_of(step, [](auto s) { return special_values_of<Op, T>(s.anchor()); });
    });
    f(step.all_options(), step.in(m, 0) + first, two ? step.in(m, 1) + first : nullptr,
      last - first, step.out(m, 0) + first);
  }
};

struct random_draw_record : record_for<step_kind::random_draw> {
  static constexpr int units(auto step, int) { return drawn_units(step.anchor().type.size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    const auto f = with_operation(step, drawn_operations{}, []<class Op>() -> drawn_numbers<T> {
      return &draw_numbers<Op, T>;
    });
    const auto stream = step.template options<cella::detail::stream_options>().stream;
    f(units, random_uniform_op::key_of(step.template in<const std::uint64_t>(m, 0), stream),
      step.anchor().type.size(), step.in(m, 1), step.out(m, 0));
  }
};

struct bitwise_record : record_for<step_kind::bitwise> {
  static constexpr int units(auto step, int) { return bitwise_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const std::int64_t last = std::min(units.last * bitwise_unit, step.operand(0).size());
    const bool two = step.anchor().operand_count > 1;
    const auto f = with_operation(step, bitwise_operations{}, [&]<class Op>() {
      return constant_of(step, [](auto s) { return bitwise_values_of<Op>(s.anchor()); });
    });
    f(step.template in<const std::byte>(m, 0),
      two ? step.template in<const std::byte>(m, 1) : nullptr, units.first * bitwise_unit, last,
      step.template out<std::byte>(m, 0));
  }
};

struct typed_record : record_for<step_kind::typed> {
  static constexpr int units(auto step, int) { return typed_units(step.anchor().type.size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr std::int64_t block = 1024;
    const int operands = step.anchor().operand_count;
    const typed_values f = constant_of(step, [](auto s) { return typed_values_of(form(s)); });
    // Repeated numbers lie here, and not in tensors that would have to be read.
    alignas(64) std::array<std::byte, 3 * 8 * block> repeated;
    std::array<const std::byte*, 3> x{};
    std::array<std::int64_t, 3> bytes{};
    for (int k = 0; k < operands; ++k) {
      const auto j = std::size_t(k);
      if (repeats(step, k, repeated.data() + j * 8 * block, block)) {
        x[j] = repeated.data() + j * 8 * block;
        continue;
      }
      x[j] = step.template in<const std::byte>(m, k);
      bytes[j] = std::int64_t(size_of(step.operand(k).element));
    }
    std::byte* const y = step.template out<std::byte>(m, 0);
    const auto size = std::int64_t(size_of(step.anchor().type.element));
    const std::int64_t last = std::min(units.last * typed_unit, step.anchor().type.size());
    for (std::int64_t i = units.first * typed_unit; i < last; i += block)
      f(x[0] + i * bytes[0], x[1] + i * bytes[1], x[2] + i * bytes[2], std::min(block, last - i),
        y + i * size);
  }

 private:
  static constexpr typed_form form(auto step) {
    return {step.anchor().op, step.operand(int(step.anchor().operand_count) - 1).element,
            step.anchor().type.element, step.s.template as<typed_step>().of_size != 0};
  }
  /// Whether operand k is a number that is repeated, which then lies `at`, as often as a block
  /// wants it. Plans that are made at run time have no memory for it: see loaded_planning.
  template <class S>
  static bool repeats(S step, int k, std::byte* at, std::int64_t block) {
    if constexpr (S::compiled) {
      return false;
    } else {
      const node& x = step.g.nodes[std::size_t(step.g.operand(step.s.anchor, k))];
      if (!is<constant_op>(x)) return false;
      const auto count = std::min(block, step.anchor().type.size());
      const tensor_ref numbers{at, stored({x.type.element, {int(count)}})};
      constant_op::compute(x.attributes, {}, {&numbers, 1});
      return true;
    }
  }
};

using special_records =
    record_list<special_record, random_draw_record, bitwise_record, typed_record>;

}  // namespace cella::cpu
