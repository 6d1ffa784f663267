// What `emit` refuses, and why: an operation whose struct is wrong, or what is no operand of it.
// The sentence is a type, which the compiler prints where the operation is applied.
#pragma once

#include <cella/graph/var.hpp>
#include <cella/ops/declaration.hpp>
#include <concepts>
#include <source_location>
#include <string_view>
#include <type_traits>

namespace cella::detail {

/// Of what is asked: operations of users that are complete where they are applied. (One that is not
/// yet is refused by `bound`.)
template <class Op>
concept asked_operation = is_own_operation<Op> && requires {
  sizeof(Op);
};
/// In front of what is asked of them: no compiler looks at what stands behind it for others.
template <class Op>
using if_asked = std::enable_if_t<asked_operation<Op>>;
template <class Op>
concept is_own_elementwise = asked_operation<Op> && info_of<Op>
.pointwise && !info_of<Op>.fits;

/// Why an operation is not applied to values of these types; empty if it is.
template <class Op, class... Operands>
constexpr text find_emit_fault() {
  constexpr const op_info& op = info_of<Op>;
  constexpr int count = int(sizeof...(Operands));
  text fault;
  if (!op.fault.empty()) return fault << op.name << ": " << op.fault;
  int k = 0;
  const auto check = [&](std::string_view type, bool is_var) {
    if (fault.empty() && !is_var)
      fault << op.name << ": operand " << k << " is " << type
            << ", but emit takes vars; an operand x is made one by x.in(*x.owner())";
    ++k;
  };
  (check(type_name<Operands>(), std::is_convertible_v<const Operands&, var>), ...);
  if (fault.empty() && (count == 0 || (op.pointwise && op.operands != count)))
    fault << op.name << ": it takes " << (count == 0 && !op.pointwise ? 1 : op.operands)
          << (op.operands == 1 ? " operand" : " operands") << ", but emit is given " << count
          << "; they stand behind the options and the place: emit<Op>({}, x.at(), v)";
  return fault;
}
template <class Op, class... Operands>
inline constexpr text emit_text = find_emit_fault<Op, Operands...>();
template <class Op, class... Operands>
concept can_emit = !asked_operation<Op> || emit_text<Op, Operands...>.empty();

template <class Op, class Sentence>
struct as_wrong_operation;
template <class Op, words... Why>
struct as_wrong_operation<Op, joined_words<Why...>> {
  using type = wrong_operation<Op, Why...>;
};
template <class Op, class... Operands>
using emit_fault = typename as_wrong_operation<Op, sentence_of<emit_text<Op, Operands...>>>::type;

/// Whether a first argument of `emit` may be what the operation calls `options`.
template <class Op, class Options>
constexpr bool is_options_of() {
  if constexpr (!asked_operation<Op> || std::same_as<Options, attributes> ||
                std::same_as<Options, no_options>)
    return true;
  else if constexpr (requires { typename Op::options; })
    return attribute_struct<Options> && std::same_as<Options, typename Op::options>;
  else
    return false;
}
template <class Op, class Options>
constexpr text find_options_fault() {
  text fault(info_of<Op>.name);
  if (!info_of<Op>.fault.empty()) return fault << ": " << info_of<Op>.fault;
  return fault << ": " << type_name<Options>()
               << " in the place of the options; emit takes {} or the struct called options, the "
                  "place, and the operands: emit<Op>({}, x.at(), v)";
}
template <class Op, class Options>
inline constexpr text emit_options_text = find_options_fault<Op, Options>();
template <class Op, class Options>
using emit_options_fault =
    typename as_wrong_operation<Op, sentence_of<emit_options_text<Op, Options>>>::type;

/// A fault unless the operands of an elementwise operation are of one type, as its kernels take for
/// granted; the first of three may be a truth value for each element.
template <class Op, class... Operands>
constexpr bool are_alike(std::source_location at, var x, Operands... more) {
  builder& b = *x.b;
  if (b.failed()) return false;
  bool alike = true;
  const auto check = [&](const var& first, const var& v) {
    if (!alike || v.type() == first.type()) return;
    if (sizeof...(Operands) == 2 && first.id == x.id && first.element() == dtype::boolean &&
        v.shape() == first.shape())
      return;
    alike = false;
    b.fail(text() << at << ": " << info_of<Op>.name << ": " << b.describe(first.id) << " is "
                  << first.type() << ", " << b.describe(v.id) << " is " << v.type()
                  << "; an elementwise operation takes operands of one type (broadcast_to, cast)");
  };
  var last = x;
  (static_cast<void>(
       (check(x, more),
        sizeof...(Operands) == 2 && last.id != x.id ? check(last, more) : static_cast<void>(0),
        last = more)),
   ...);
  return alike;
}

}  // namespace cella::detail
