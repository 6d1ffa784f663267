// Functions of the elements of plain tensors that loops do not fuse: special functions, and digits
// of integers.
#pragma once

#include <cella/backend/cpu/loops/bitwise_values.hpp>
#include <cella/backend/cpu/loops/special_values.hpp>
#include <cella/backend/cpu/lower/record.hpp>

namespace cella::cpu {

struct special_record : record_for<step_kind::special> {
  static constexpr int units(auto step, int) { return special_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    const std::int64_t first = units.first * special_unit;
    const std::int64_t last = std::min(units.last * special_unit, step.operand(0).size());
    const T* const b = two_operands(step) ? step.in(m, 1) + first : nullptr;
    values_of(step)(step.all_options(), step.in(m, 0) + first, b, last - first,
                    step.out(m, 0) + first);
  }

 private:
  static constexpr bool two_operands(auto step) { return step.anchor().operand_count > 1; }
  /// Of a compiled program a constant, so that no other function is linked.
  template <class S>
  static special_values<typename S::T> values_of(S step) {
    if constexpr (S::compiled) {
      constexpr auto f = special_values_of<typename S::T>(S::anchor());
      return f;
    } else {
      return special_values_of<typename S::T>(step.anchor());
    }
  }
};

struct bitwise_record : record_for<step_kind::bitwise> {
  static constexpr int units(auto step, int) { return bitwise_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const std::int64_t last = std::min(units.last * bitwise_unit, step.operand(0).size());
    const bool two = step.anchor().operand_count > 1;
    values_of(step)(step.template in<const std::byte>(m, 0),
                    two ? step.template in<const std::byte>(m, 1) : nullptr,
                    units.first * bitwise_unit, last, step.template out<std::byte>(m, 0));
  }

 private:
  template <class S>
  static bitwise_values values_of(S step) {
    if constexpr (S::compiled) {
      constexpr auto f = bitwise_values_of(S::anchor());
      return f;
    } else {
      return bitwise_values_of(step.anchor());
    }
  }
};

using special_records = record_list<special_record, bitwise_record>;

}  // namespace cella::cpu
