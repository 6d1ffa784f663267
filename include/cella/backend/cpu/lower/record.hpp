// The record of a kernel: which steps of a plan it runs, and how. A record is a struct with
//
//   static constexpr bool matches(const plan_step&);
//   template <int Phase>
//   static void run(auto step, const memory&, work_range units, std::byte* scratch);
//
// and whatever differs from `kernel_record`. `step` is a program_step.
#pragma once

#include <cella/backend/cpu/lower/step.hpp>
#include <cella/ops/names.hpp>
#include <tuple>

namespace cella::cpu {

/// One phase of one unit of work, without scratch.
struct kernel_record {
  /// Calls in sequence.
  static constexpr int phases(auto) { return 1; }
  /// The most of them in a plan that is made at run time.
  static constexpr int most_phases = 1;
  /// Whether the first phase depends on parameters only, or on the constants of a loop: then it is
  /// run again when they change.
  static constexpr bool prepares(auto) { return false; }
  /// Independent units of work of a phase, shared out among threads.
  static constexpr int units(auto, [[maybe_unused]] int phase) { return 1; }
  /// Bytes for each thread.
  static constexpr std::int64_t scratch_bytes(auto) { return 0; }
};

/// Calls f with a number of the type that `stored(step)` says, of a function without captures.
template <class S, class Stored, class F>
void with_stored_type(S step, Stored stored, F f) {
  if constexpr (S::compiled)
    f(element<Stored{}(S{})>{});
  else
    with_stored<typename S::T>(stored(step), f);
}
/// Calls f with a number of the type that memory holds the anchor's operands in: that which is
/// computed in, or one of 16 bits.
template <class S, class F>
constexpr auto with_stored_operands(S step, F f) {
  if constexpr (S::compiled)
    return f(typename S::template operand_type<0>{});
  else
    return with_stored<typename S::T>(step.operand(0).element, f);
}
/// The same for the anchor's value.
template <class S, class F>
auto with_stored_value(S step, F f) {
  if constexpr (S::compiled) {
    using stored = storage_type<S::g.type(S::s.anchor).element>;
    return f(std::conditional_t<std::is_void_v<stored>, typename S::T, stored>{});
  } else {
    return with_stored<typename S::T>(step.g.type(step.s.anchor).element, f);
  }
}

/// Calls f.template operator()<Number>() for the type of the anchor's first operand: the program's,
/// or integers of 32 or 64 bits.
template <class S, class F>
void with_numbers(S step, F f) {
  if constexpr (S::compiled)
    f.template operator()<element<S::operand(0).element>>();
  else if (step.operand(0).element == dtype::i32)
    f.template operator()<std::int32_t>();
  else if (step.operand(0).element == dtype::i64)
    f.template operator()<std::int64_t>();
  else
    f.template operator()<typename S::T>();
}

/// The options of the anchor, an application of Op. (Records of rare operations do not ask for
/// their structs: programs that lack them have no such steps.)
template <class Op, class S>
constexpr auto options_of(S step) {
  return step.template options<typename Op::options>();
}
/// f.template operator()<Op>() for the operation of the anchor, one of `Ops`.
template <class S, class... Ops, class F>
constexpr auto with_operation([[maybe_unused]] S step, operation_list<Ops...>, F f) {
  if constexpr (S::compiled) {
    return f.template operator()<op_of<S::anchor().op>>();
  } else {
    std::common_type_t<decltype(f.template operator()<Ops>())...> y{};
    (void)(... || (is<Ops>(step.anchor()) && (y = f.template operator()<Ops>(), true)));
    return y;
  }
}

/// Steps of one kind, in one layout or in all.
template <step_kind Kind>
struct record_for : kernel_record {
  static constexpr bool matches(const plan_step& s) { return s.kind == Kind; }
};
template <step_kind Kind, layout Layout>
struct record_in : kernel_record {
  static constexpr bool matches(const plan_step& s) {
    return s.kind == Kind && s.arrangement == Layout;
  }
};

/// Records, of which the first that matches a step runs it.
template <class... Records>
struct record_list {
  static constexpr std::size_t size = sizeof...(Records);
  /// Index of the record for a step; `size` if there is none.
  static constexpr std::size_t find(const plan_step& s) {
    std::size_t k = 0;
    static_cast<void>(((Records::matches(s) || (++k, false)) || ...));
    return k;
  }
  template <std::size_t K>
  using at = std::tuple_element_t<K, std::tuple<Records...>>;
};
template <class... Lists>
struct join_records;
template <class... Records>
struct join_records<record_list<Records...>> {
  using type = record_list<Records...>;
};
template <class... A, class... B, class... Rest>
struct join_records<record_list<A...>, record_list<B...>, Rest...>
    : join_records<record_list<A..., B...>, Rest...> {};

}  // namespace cella::cpu
