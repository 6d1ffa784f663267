// From an operation's struct to its description. What a kind asks for must be there, with the right
// signature: what is forgotten or misspelled is a compile error, and no gradient of zero.
#pragma once

#include <cella/graph/cell_check.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/graph/words.hpp>
#include <cella/ops/kinds.hpp>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cella {

/// An operation whose struct is wrong, because of what the words say.
template <class Op, words... Why>
struct wrong_operation {};

/// Instantiating this is the error: `no type named 'description' in 'wrong_operation<cube_op,
/// words<62>{"cube: an elementwise operation needs partial, ..."}>'`.
template <class Op, class Sentence>
struct operation_fault;
template <class Op, words... Why>
struct operation_fault<Op, joined_words<Why...>> {
  using type = typename wrong_operation<Op, Why...>::description;
};

namespace detail {

/// Whether a user declared the operation. Those of the library are tested, and not asked again.
template <class Op>
inline constexpr bool is_own_operation = !type_name<Op>().starts_with("cella::");

template <class Op, class... Options>
constexpr int elements_taken(const Options&... o) {
  if constexpr (requires { Op::apply(o..., 0.0); })
    return 1;
  else if constexpr (requires { Op::apply(o..., 0.0, 0.0); })
    return 2;
  else if constexpr (requires { Op::apply(o..., true, 0.0, 0.0); })
    return 3;
  else
    return 0;
}
/// How many elements Op::apply takes, behind its options if it has any; 0 if not one to three.
template <class Op>
inline constexpr int arity = elements_taken<Op>();
template <class Op>
requires requires { typename Op::options; }
inline constexpr int arity<Op> = elements_taken<Op>(typename Op::options{});

/// Calls Op::apply on that many elements, with the options.
template <class Op, int Count, class T>
constexpr T apply_scalar(const attributes& options, T x, T y, T z) {
  if constexpr (requires { typename Op::options; }) {
    const auto o = options.as<typename Op::options>();
    if constexpr (Count == 1)
      return static_cast<T>(Op::apply(o, x));
    else if constexpr (Count == 2)
      return static_cast<T>(Op::apply(o, x, y));
    else
      return static_cast<T>(Op::apply(o, x, y, z));
  } else {
    if constexpr (Count == 1)
      return static_cast<T>(Op::apply(x));
    else if constexpr (Count == 2)
      return static_cast<T>(Op::apply(x, y));
    else
      return static_cast<T>(Op::apply(x != T(0), y, z));  // select: the first is a truth value
  }
}

/// The names that `declare` knows. What derives from an operation and from this finds a name twice,
/// and so not at all, if the operation has it in whatever form.
struct rule_names {
  int apply, compute, infer, results, partial, transpose, vjp, jvp, space, batch, batch_options,
      part_options, direction_options, bounds, write_onnx, read_onnx, fits, validate;
};
template <class Op>
struct rule_probe : Op, rule_names {};

/// What is wrong with the rules that an operation has and lacks; empty if nothing is.
constexpr std::string_view fault_of_rules(const op_info& i, bool not_differentiable) {
  if (i.kind == op_kind::control) {
    if (i.form == control_form::none) return "a control operation says its form";
    return i.partial || i.transpose || i.vjp
               ? "derivatives of control operations stand in transform/, not in the struct"
               : "";
  }
  if (!i.infer && !i.results) return "infer is missing (or results, if there are several)";
  if (i.pointwise ? !i.scalar : !i.compute && !i.traits.stored)
    return i.kind == op_kind::elementwise ? "apply is missing" : "compute is missing";
  if (i.jvp && !i.vjp) return "jvp stands beside vjp; elsewhere the tangents follow from the rule";
  if (!i.write_onnx != !i.read_onnx) return "of write_onnx and read_onnx an operation has both";
  const int tags = i.zero_derivative + not_differentiable;
  const int rules = (i.partial != nullptr) + (i.vjp != nullptr) + tags;
  switch (i.kind) {
    case op_kind::elementwise:
      if (i.transpose) return "transpose is no rule of an elementwise operation; write partial";
      if (rules == 0)
        return "an elementwise operation needs partial (or vjp); if its derivative is zero, derive "
               "it from zero_derivative, and if it has none from not_differentiable";
      break;
    case op_kind::linear:
    case op_kind::bilinear:
      if (i.partial || i.vjp || not_differentiable)
        return "a linear operation has transpose, and no other derivative";
      return i.transpose ? "" : "a linear operation needs transpose";
    case op_kind::opaque:
      if (i.partial || i.transpose)
        return "partial and transpose are no rules of an opaque operation; write vjp";
      if (rules == 0)
        return "an opaque operation needs vjp; if its derivative is zero, derive it from "
               "zero_derivative, and if it has none from not_differentiable";
      break;
    default:
      if (i.partial || i.transpose || i.vjp) return "without operands there is no derivative";
  }
  return rules > 1 ? "of partial, vjp, zero_derivative and not_differentiable an operation has one"
                   : "";
}

/// What records can be handed to.
constexpr bool moves_elements(compute_class c) {
  return c == compute_class::movement || c == compute_class::indexed || c == compute_class::control;
}

/// Floating-point operations at each point, where the struct does not say: a multiplication and an
/// addition of contractions and convolutions, none of what moves elements.
constexpr int default_operations(const op_info& i) {
  if (i.kind == op_kind::bilinear) return 2;
  switch (i.computes) {
    case compute_class::pointwise:
      return i.pointwise && !i.traits.alias;
    case compute_class::source:
    case compute_class::movement:
    case compute_class::indexed:
    case compute_class::random:
    case compute_class::control:
      return 0;
    default:
      return 1;
  }
}

constexpr tensor_type type_of_first(span<const tensor_type> in, const attributes&) {
  return in.empty() ? tensor_type{} : in[0];
}

/// Why options cannot be stored, printed and read; empty if they can.
template <class Options>
constexpr std::string_view options_fault() {
  if constexpr (!attribute_struct<Options>)
    return "options are not a trivially copyable struct of whole words, at most 100 bytes";
  else if constexpr (!std::is_aggregate_v<Options>)
    return "options are a plain struct, without constructors and private members";
  else if constexpr (find_options<Options>().has_others)
    return "options are made of double, int32_t, uint32_t (a set of axes), shape, stored_dtype, "
           "and arrays of int32_t, int8_t[8] (axes) or char";
  else if constexpr (find_options<Options>().bytes != sizeof(Options) && !std::is_empty_v<Options>)
    return "options have no padding; put doubles first, and fill up with an int32_t";
  else
    return "";
}

/// What an operation's struct says that has a name and a kind. A wrong operation has a description,
/// too, so that its fault is the only error.
template <class Op>
constexpr op_info describe_rules() {
  op_info i;
  i.identity = &identity_of<Op>;
  i.is_own = is_own_operation<Op>;
  i.name = Op::name;
  i.kind = Op::kind;
  // As std::is_base_of_v, which would be instantiated for each tag of each operation.
  i.zero_derivative = __is_base_of(zero_derivative, Op);
  i.computes = Op::computes;
  i.traits = {.alias = __is_base_of(alias_of_operand, Op),
              .rearranges = __is_base_of(rearranges, Op),
              .foldable = __is_base_of(foldable, Op),
              .commutative = __is_base_of(commutative, Op),
              .nondecreasing = __is_base_of(nondecreasing, Op),
              .monotone = __is_base_of(monotone, Op),
              .impure = __is_base_of(impure, Op),
              .computed_in_single = __is_base_of(computed_in_single, Op),
              .stored = __is_base_of(stored_in_graph, Op),
              .takes_complex = __is_base_of(takes_complex, Op),
              .takes_records = __is_base_of(takes_records, Op) || moves_elements(Op::computes) ||
                               Op::kind == op_kind::control,
              .in_place_of_last_operand = __is_base_of(in_place_of_last_operand, Op)};
  if constexpr (requires { Op::form; }) i.form = Op::form;
  if constexpr (requires { Op::infix; }) i.infix = Op::infix, i.precedence = Op::precedence;
  if constexpr (requires { Op::operands; })
    i.operands = Op::operands;
  else if (i.kind == op_kind::leaf)
    i.operands = 0;
  if constexpr (requires { Op::domain; }) i.domain = Op::domain;
  if constexpr (requires { Op::cheap; }) i.cheap = Op::cheap;
  if constexpr (requires { Op::linear_in; }) i.linear_in = Op::linear_in;
  if constexpr (requires { Op::zero_where; })
    i.zero_where = Op::zero_where;
  else if (i.kind == op_kind::bilinear)
    i.zero_where = i.linear_in;
  if (i.zero_where == 0 && (std::is_base_of_v<keeps_zero, Op> || i.traits.rearranges))
    i.zero_of = i.linear_in ? i.linear_in : ~0u;
  if constexpr (requires { Op::formula; }) i.formula = Op::formula;
  if constexpr (requires { Op::onnx; }) i.onnx = Op::onnx;
  if constexpr (requires { Op::numpy; }) i.numpy = Op::numpy;
  if constexpr (requires { Op::torch; }) i.torch = Op::torch;
#define CELLA_RULE(rule, signature)                        \
  if constexpr (requires { i.rule = &Op::rule; })          \
    i.rule = &Op::rule;                                    \
  else if constexpr (!requires { &rule_probe<Op>::rule; }) \
  i.fault = #rule " is not `" signature "`"
  CELLA_RULE(infer, "tensor_type infer(span<const tensor_type> in, const attributes& options)");
  CELLA_RULE(results,
             "int results(span<const tensor_type> in, const attributes& options, "
             "span<tensor_type> out)");
  CELLA_RULE(partial, "var partial(node_ref n, int operand)");
  CELLA_RULE(transpose, "var transpose(node_ref n, int operand, var dy)");
  CELLA_RULE(vjp,
             "void vjp(node_ref n, span<const var> dy, span<const char> needed, span<var> dx)");
  CELLA_RULE(jvp, "void jvp(node_ref n, span<const var> dx, span<var> dy)");
  CELLA_RULE(space, "iteration_space space(span<const tensor_type> in, const attributes& options)");
  CELLA_RULE(batch_options, "attributes batch_options(node_ref n, int size, unsigned batched)");
  CELLA_RULE(batch, "void batch(node_ref n, span<const var> in, unsigned batched, span<var> out)");
  CELLA_RULE(part_options, "attributes part_options(const attributes& options, const shape& part)");
  CELLA_RULE(direction_options,
             "attributes direction_options(const attributes& options, int rank, int size, unsigned "
             "marked)");
  CELLA_RULE(bounds,
             "interval bounds(span<const interval> in, span<const tensor_type> types, const "
             "attributes& options)");
  CELLA_RULE(write_onnx,
             "void write_onnx(span<const tensor_type> in, const attributes& options, "
             "onnx_attributes& to)");
  CELLA_RULE(read_onnx,
             "attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from)");
  CELLA_RULE(fits, "bool fits(const op_application& a)");
  CELLA_RULE(validate, "text validate(const graph& g, node_id n)");
  CELLA_RULE(compute,
             "void compute(const attributes& options, span<const tensor_ref> in, "
             "span<const tensor_ref> out)");
#undef CELLA_RULE
  if constexpr (requires { typename Op::options; }) i.options = &schema_of<typename Op::options>;
  if constexpr (requires { static_cast<void>(&Op::apply); }) {
    i.fault =
        "apply is one generic function, of numbers and vectors: static constexpr auto "
        "apply(auto x)";
  } else if constexpr (!requires { &rule_probe<Op>::apply; }) {
    if (i.compute) i.fault = "of apply and compute an operation has one";
    i.pointwise = true;
    constexpr int count = arity<Op>;
    i.operands = count;
    if constexpr (count == 0) {
      i.fault =
          "apply is static, and takes one to three elements, behind the options if there are any";
    } else {
      // Functions, no lambdas: each operation has them, and a lambda is four things to instantiate.
      i.scalar = &apply_scalar<Op, count, double>;
      if constexpr (std::is_base_of_v<takes_complex, Op>)
        i.complex = &apply_scalar<Op, count, std::complex<double>>;
      if constexpr (requires { requires Op::integral; }) {
        i.integral = true;
        i.integer = &apply_scalar<Op, count, std::int64_t>;
        i.without_sign = &apply_scalar<Op, count, std::uint64_t>;
      }
    }
  }
  if constexpr (requires { Op::operations_per_point; })
    i.operations_per_point = Op::operations_per_point;
  else
    i.operations_per_point = default_operations(i);
  if (i.fault.empty()) i.fault = fault_of_rules(i, std::is_base_of_v<not_differentiable, Op>);
  if (!i.fault.empty()) {
    i.zero_derivative = true;
    if (!i.infer && !i.results) i.infer = &type_of_first;
  }
  return i;
}

template <class Op>
concept has_kind = requires {
  Op::kind;
  Op::computes;
};
template <class Op>
concept has_name = requires {
  typename std::bool_constant<std::string_view(Op::name).empty()>;
};
/// What is wrong with an operation before its rules are looked at; empty if nothing is.
template <class Op>
constexpr std::string_view fault_of_head() {
  if constexpr (!has_kind<Op>)
    return "it derives from no kind of operations, such as elementwise<Op> and opaque<Op>";
  else if constexpr (!has_name<Op>)
    return "it has no name: static constexpr std::string_view name = \"cube\"";
  else if constexpr (requires { typename Op::options; })
    return options_fault<typename Op::options>();
  else
    return "";
}
/// What an operation's struct says.
template <class Op>
constexpr op_info describe() {
  if constexpr (fault_of_head<Op>().empty()) {
    return describe_rules<Op>();
  } else {
    op_info i;
    i.identity = &identity_of<Op>;
    i.name = type_name<Op>();
    i.fault = fault_of_head<Op>();
    i.zero_derivative = true;
    i.infer = &type_of_first;
    return i;
  }
}

}  // namespace detail

/// The description of an operation: its address identifies the operation in a graph.
template <class Op>
inline constexpr op_info info_of = detail::describe<Op>();

namespace detail {

template <class Op>
inline constexpr text wrong_operation_text = text()
                                             << info_of<Op>.name << ": " << info_of<Op>.fault;

/// Its body is the error. It is named and never called: what names it stays a constant expression.
template <class Op>
void report_operation() {
  (void)sizeof(operation_fault<Op, detail::sentence_of<wrong_operation_text<Op>>>);
}

}  // namespace detail

}  // namespace cella
