// Functions of the elements of plain tensors that loops do not fuse: special functions, and digits
// of integers.
#pragma once

#include <cella/backend/cpu/loops/bitwise_values.hpp>
#include <cella/backend/cpu/loops/special_values.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/plan/default_kernel.hpp>

namespace cella::cpu {

namespace detail {
/// f.template operator()<Op>(anchor) for the operation of the anchor, one of `Ops`. Of a compiled
/// program a constant, so that no other function is linked.
template <class F, class S, class... Ops>
auto of_operation(S step, operation_list<Ops...>) {
  if constexpr (S::compiled) {
    constexpr auto f = F{}.template operator()<op_of<S::anchor().op>>(S::anchor());
    return f;
  } else {
    std::common_type_t<decltype(F{}.template operator()<Ops>(step.anchor()))...> f{};
    (void)(... || (is<Ops>(step.anchor()) &&
                   (f = F{}.template operator()<Ops>(step.anchor()), true)));
    return f;
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
    const auto f = detail::of_operation<decltype([]<class Op>(const node& x) {
      return special_values_of<Op, T>(x);
    })>(step, special_operations{});
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
    const auto f = detail::of_operation<decltype([]<class Op>(const node& x) {
      return bitwise_values_of<Op>(x);
    })>(step, bitwise_operations{});
    f(step.template in<const std::byte>(m, 0),
      two ? step.template in<const std::byte>(m, 1) : nullptr, units.first * bitwise_unit, last,
      step.template out<std::byte>(m, 0));
  }
};

using special_records = record_list<special_record, bitwise_record>;

}  // namespace cella::cpu
