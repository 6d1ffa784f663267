// Functions of the elements of plain tensors that loops do not fuse: special functions, and digits
// of integers.
#pragma once

#include <cella/backend/cpu/loops/bitwise_values.hpp>
#include <cella/backend/cpu/loops/special_values.hpp>
#include <cella/backend/cpu/lower/record.hpp>

namespace cella::cpu {

namespace detail {
/// F(anchor). Of a compiled program a constant, so that no other function is linked.
template <auto F, class S>
auto of_anchor(S step) {
  if constexpr (S::compiled) {
    constexpr auto f = F(S::anchor());
    return f;
  } else {
    return F(step.anchor());
  }
}
}  // namespace detail

struct special_record : record_for<step_kind::special> {
  static constexpr int units(auto step, int) { return special_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    const std::int64_t first = units.first * special_unit;
    const std::int64_t last = std::min(units.last * special_unit, step.operand(0).size());
    const bool two = step.anchor().operand_count > 1;
    const auto f = detail::of_anchor<&special_values_of<T>>(step);
    f(step.all_options(), step.in(m, 0) + first, two ? step.in(m, 1) + first : nullptr,
      last - first, step.out(m, 0) + first);
  }
};

struct bitwise_record : record_for<step_kind::bitwise> {
  static constexpr int units(auto step, int) { return bitwise_units(step.operand(0).size()); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const std::int64_t last = std::min(units.last * bitwise_unit, step.operand(0).size());
    const bool two = step.anchor().operand_count > 1;
    const auto f = detail::of_anchor<&bitwise_values_of>(step);
    f(step.template in<const std::byte>(m, 0),
      two ? step.template in<const std::byte>(m, 1) : nullptr, units.first * bitwise_unit, last,
      step.template out<std::byte>(m, 0));
  }
};

using special_records = record_list<special_record, bitwise_record>;

}  // namespace cella::cpu
