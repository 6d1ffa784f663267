// The handle that a traced function computes with, and what may stand beside it in an expression.
#pragma once

#include <bit>
#include <cella/graph/builder.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/parameter.hpp>
#include <cella/graph/type_tag.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <type_traits>
#include <utility>

// What the compiler cannot run at all it says where that is defined, in the user's cell: nothing is
// to follow from it where the model is made.
#if defined(__clang__)
#pragma clang diagnostic fatal "-Winvalid-constexpr"
#endif

// A method of arrays elsewhere, which is a function here: it says so where it is called, and yields
// the var, so that nothing follows.
#define CELLA_NO_METHOD(name, remedy)                                                         \
  __attribute__((unavailable(remedy))) constexpr var name(detail::whatever = {}, ...) const { \
    return *this;                                                                             \
  }

namespace cella {

namespace detail {
struct no_element;
/// The first argument of such a method, in braces or without.
struct whatever {
  constexpr whatever() = default;
  constexpr whatever(const auto&) {}
  template <class T>
  constexpr whatever(std::initializer_list<T>) {}
};
}  // namespace detail

/// A value of the graph that is being built. One type whatever the shape, so that native C++ works
/// on it: loops over layers, recursion, lambdas, closures, generic algorithms.
struct var {
  builder* b{};
  node_id id = no_node;

  constexpr tensor_type type() const { return b->g.type(id); }
  constexpr cella::shape shape() const { return type().shape; }
  constexpr dtype element() const { return type().element; }
  constexpr int rank() const { return type().rank(); }
  /// Number of elements along an axis; negative axes count from the last.
  constexpr int extent(int axis) const { return shape()[axis < 0 ? axis + rank() : axis]; }
  /// True while the cell is traced for training.
  constexpr bool training() const { return b->training; }

  /// The value of a one-element tensor. Eager mode only: in graph mode no values exist yet.
  constexpr double item(std::source_location at = std::source_location::current()) const {
    return read(0, at);
  }
  /// Element `i` in row-major order. Eager mode only; of complex numbers read the parts.
  constexpr double read(std::int64_t i,
                        std::source_location at = std::source_location::current()) const {
    if (!has_value()) return refuse_reading(text() << at << ": ");
    if (is_complex(element())) {
      b->fail(text() << at << ": reading a value: " << b->describe(id) << " is " << type()
                     << ", and what is read is one real number; read real() or imag() of it");
      return 0;
    }
    if (i < 0 || i >= type().size()) {
      b->fail(text() << at << ": element " << i << " of " << type() << " does not exist");
      return 0;
    }
    return b->eager->read(id, i);
  }
  /// A native `if` on a one-element tensor. In eager mode it reads the value; in graph mode the
  /// function that is traced is run for either way, and the tensor decides when the program runs.
  constexpr explicit operator bool() const {
    return has_value() && type().size() == 1 ? read(0) != 0 : b->decide(id);
  }

  // No operations on a var: see ops/no_operation.hpp.

  __attribute__((unavailable("write slice(x, axis, first, last) or unstack(x, axis)[i]")))  //
  constexpr detail::no_element
  operator[](std::int64_t) const;
  __attribute__((unavailable("a var is no number here; compute with it, or run in eager mode")))  //
  constexpr explicit
  operator float() const {
    return 0;
  }
  __attribute__((unavailable("a var is no number here; compute with it, or run in eager mode")))  //
  constexpr explicit
  operator double() const {
    return 0;
  }
  __attribute__((unavailable("a var is no number here; compute with it, or run in eager mode")))  //
  constexpr explicit
  operator int() const {
    return 0;
  }

  CELLA_NO_METHOD(view, "write reshape(x, {32, -1})")
  CELLA_NO_METHOD(reshape, "write reshape(x, {32, -1})")
  CELLA_NO_METHOD(flatten, "write flatten(x)")
  CELLA_NO_METHOD(transpose, "write transpose(x, {1, 0})")
  CELLA_NO_METHOD(permute, "write transpose(x, {0, 2, 1})")
  CELLA_NO_METHOD(T, "write transpose(x)")
  CELLA_NO_METHOD(t, "write transpose(x)")
  __attribute__((unavailable("write x.extent(axis)"))) constexpr int shape(int axis) const {
    return extent(axis);
  }
  __attribute__((unavailable("write x.extent(axis)"))) constexpr int size(int axis) const {
    return extent(axis);
  }
  __attribute__((unavailable("write x.shape()"))) constexpr cella::shape size() const {
    return type().shape;
  }
  __attribute__((unavailable("write x.rank()"))) constexpr int dim() const { return rank(); }
  CELLA_NO_METHOD(sum, "write sum(x), or sum(x, {1}) along an axis")
  CELLA_NO_METHOD(mean, "write mean(x), or mean(x, {1}) along an axis")
  CELLA_NO_METHOD(max, "write max(x, {1}), or maximum(x, y) element by element")
  CELLA_NO_METHOD(min, "write min(x, {1}), or minimum(x, y) element by element")
  CELLA_NO_METHOD(argmax, "write argmax(x, axis)")
  CELLA_NO_METHOD(relu, "write relu(x)")
  CELLA_NO_METHOD(sigmoid, "write sigmoid(x)")
  CELLA_NO_METHOD(tanh, "write tanh(x)")
  CELLA_NO_METHOD(softmax, "write softmax(x, axis)")
  CELLA_NO_METHOD(exp, "write exp(x)")
  CELLA_NO_METHOD(log, "write log(x)")
  CELLA_NO_METHOD(sqrt, "write sqrt(x)")
  CELLA_NO_METHOD(abs, "write abs(x)")
  CELLA_NO_METHOD(pow, "write pow(x, y)")
  CELLA_NO_METHOD(clamp, "write clamp(x, low, high)")
  CELLA_NO_METHOD(matmul, "write matmul(x, y)")
  CELLA_NO_METHOD(dot, "write matmul(x, y)")
  CELLA_NO_METHOD(to, "write cast(x, dtype::f64)")
  CELLA_NO_METHOD(astype, "write cast(x, dtype::f64)")
  CELLA_NO_METHOD(clone, "leave it out: a var is a value, and never changes")
  CELLA_NO_METHOD(contiguous, "leave it out: how a tensor lies in memory is decided for you")
  CELLA_NO_METHOD(squeeze, "write reshape(x, {32, 10})")
  CELLA_NO_METHOD(unsqueeze, "write expand_dims(x, axis)")
  CELLA_NO_METHOD(detach, "write stop_gradient(x)")
  CELLA_NO_METHOD(backward,
                  "gradients are functions: write grad(f)(x), or optim::apply(rule, loss) in a "
                  "training step")

 private:
  /// Regions that a transform traces have no values, even in eager mode.
  constexpr bool has_value() const { return b->eager && b->region_of(id) == 0; }
  constexpr double refuse_reading(text place) const {
    b->fail(place << "reading a value at compile time: " << b->describe(id) << " " << type()
                  << " has no value while the model is traced; branch with cond() or run in eager "
                     "mode");
    return 0;
  }
};

#undef CELLA_NO_METHOD

namespace detail {
/// What a structured binding asks of a var: `auto [a, b] = x` would take its members apart.
struct no_parts {
  __attribute__((unavailable(
      "a var is one tensor; take parts of it: split(x, 2, axis)[0], or unstack(x, axis)[0]")))  //
  constexpr no_parts(const var& v)
      : x(v) {}
  var x;
};
}  // namespace detail
template <std::size_t Place>
requires(Place == 0) constexpr var get(detail::no_parts v) { return v.x; }
template <std::size_t Place>
requires(Place > 0) constexpr var get(const var& v) { return v; }  // one error is enough
}  // namespace cella

template <>
struct std::tuple_size<cella::var> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, cella::var> {
  using type = cella::var;
};

namespace cella {
namespace detail {
/// What an index of a var yields: it may be assigned to.
struct no_element : var {
  constexpr const no_element& operator=(const auto&) const { return *this; }
};
}  // namespace detail
constexpr detail::no_element var::operator[](std::int64_t) const { return {*this}; }

/// Not constexpr on purpose: where there is no trace that could keep a sentence, the compiler
/// prints this call.
inline no_place a_parameter_is_used_outside_its_cell(std::source_location at) {
  throw model_error(
      detail::begun_at(at)
      << "a parameter is used outside its cell: it is not a member of a model that is traced");
}

/// The same for a var that was declared and never assigned.
inline no_place a_var_is_used_before_it_has_a_value(std::source_location at) {
  throw model_error(text() << at << ": a var is used that was declared and never assigned");
}

namespace detail {
/// Whether a double holds the number: 64-bit integers may have more than its 53 binary digits.
template <class S>
constexpr bool is_exact_as_double(S number) {
  if constexpr (std::is_integral_v<S> && sizeof(S) == 8) {
    const auto bits = std::uint64_t(number);
    const std::uint64_t size = std::is_signed_v<S> && bits >> 63 ? 0 - bits : bits;
    return size == 0 || size >> std::countr_zero(size) >> 53 == 0;
  } else {
    return true;
  }
}
}  // namespace detail

/// The same for an operation on numbers alone.
inline no_place an_operation_has_no_var_among_its_operands(std::source_location at) {
  throw model_error(text() << at << ": an operation has no var among its operands; of numbers the "
                           << "standard library has functions");
}

namespace detail {
/// A struct that is called with a var, as a layer is.
template <class T>
concept layer_like =
    std::is_class_v<T> && std::is_aggregate_v<T> && std::is_invocable_v<const T&, var>;
template <class Layer>
constexpr const parameter_base* weight_of(const Layer& layer) {
  if constexpr (requires { static_cast<const parameter_base&>(layer.weight); })
    return &layer.weight;
  else
    return nullptr;
}
template <class T>
concept array_of_numbers = requires(const T& values) {
  values.size();
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*values.data())>>;
};
}  // namespace detail

/// An operand as it was written: a var, a number, or a cell's parameter, with the place in the
/// user's source. Taken by value by every public operation, so that a message can name that place.
class operand {
 public:
  constexpr operand(var v, std::source_location at = std::source_location::current())
      : value_(v), at_(at) {}
  template <class S>
  requires std::is_arithmetic_v<S>
  constexpr operand(S number, std::source_location at = std::source_location::current())
      : number_(double(number)),
        exact_(detail::is_exact_as_double(number)),
        is_number_(true),
        at_(at) {}
  constexpr operand(const parameter_base& p,
                    std::source_location at = std::source_location::current())
      : parameter_(&p), at_(at) {}
  // What is taken for an operand by habit. It stands for a number, and a layer alone for its
  // weight, so that nothing follows.
  template <detail::layer_like Layer>
  __attribute__((unavailable("a layer is called with what it is to compute on: relu(fc(x))")))  //
  constexpr operand(const Layer& layer, std::source_location at = std::source_location::current())
      : parameter_(detail::weight_of(layer)), is_number_(true), at_(at) {}
  template <detail::array_of_numbers Values>
  __attribute__((unavailable("an array becomes a var by constant(x, values)")))  //
  constexpr operand(const Values&, std::source_location at = std::source_location::current())
      : operand(0, at) {}
  __attribute__((unavailable("a text is no var; write a number, or constant(x, {1, 2})")))  //
  constexpr operand(const char*, std::source_location at = std::source_location::current())
      : operand(0, at) {}

  __attribute__((unavailable("hand over the var itself, not its address: relu(x)")))  //
  constexpr operand(const var* v, std::source_location at = std::source_location::current())
      : operand(*v, at) {}

  /// The builder that the operation belongs to. A number has none.
  CELLA_ONCE constexpr builder* owner() const {
    if (is_unassigned()) const no_place stop = a_var_is_used_before_it_has_a_value(at_);
    if (parameter_) {
      if (!parameter_->traced_by) const no_place stop = a_parameter_is_used_outside_its_cell(at_);
      return parameter_->traced_by;
    }
    if (is_number_) const no_place stop = an_operation_has_no_var_among_its_operands(at_);
    return value_.b;
  }
  constexpr bool is_var() const { return value_.b != nullptr; }
  constexpr bool is_number() const {
    return is_number_ || (!value_.b && !parameter_ && !is_unassigned());
  }
  constexpr double number() const { return number_; }
  /// Whether `number` is what was written, to the last digit.
  constexpr bool is_exact() const { return exact_; }
  constexpr std::source_location at() const { return at_; }

  /// The var that stands for a var or a parameter in the graph of `b`.
  CELLA_ONCE constexpr var in(builder& b) const {
    if (is_unassigned()) {
      b.fail(text() << at_ << ": a var is used that was declared and never assigned");
      return {&b, 0};
    }
    if (!parameter_) return value_;
    const node_id id = b.cells.find(parameter_);
    if (id >= 0) return {&b, parameter_->trainable ? id : b.bodies.state_value(id)};
    b.fail(detail::begun_at(at_)
           << "a parameter " << parameter_->extents
           << " is used outside its cell: it is not a member of the model that is traced");
    return {&b, 0};
  }

 private:
  constexpr bool is_unassigned() const {
    return value_.id == no_node && !value_.b && !parameter_ && !is_number_;
  }

  var value_{};
  const parameter_base* parameter_{};
  double number_{};
  bool exact_ = true;
  bool is_number_ = false;
  std::source_location at_;
};

constexpr parameter_base::operator var() const {
  // The place is no default argument's: that of a conversion would be this line.
  const operand o(*this, std::source_location{});
  return o.in(*o.owner());
}

/// The builder of an operation on two operands: a var's, if there is one, so that a foreign
/// parameter beside it is named in a sentence.
constexpr builder& owner_of(const operand& x, const operand& y) {
  if (x.is_var()) return *x.owner();
  if (y.is_var()) return *y.owner();
  return *(x.is_number() ? y.owner() : x.owner());
}

/// What may stand on the left of an operator beside a var.
template <class S>
concept literal_operand = std::is_arithmetic_v<S> || std::derived_from<S, parameter_base>;

/// The view of a node that derivative rules get.
struct node_ref {
  builder* b{};
  node_id id{};

  constexpr var operand(int i) const {
    if (i < 0 || i >= operand_count()) return no_operand(i);
    return {b, b->g.operand(id, i)};
  }
  constexpr var output() const { return {b, id}; }
  constexpr var output(int k) const { return {b, b->get(id, k)}; }
  constexpr int operand_count() const { return b->g.nodes[std::size_t(id)].operand_count; }
  template <attribute_struct T>
  constexpr T as() const {
    return b->g.nodes[std::size_t(id)].attributes.as<T>();
  }

 private:
  constexpr var no_operand(int i) const {
    b->fail(b->place_of(id) << b->g.nodes[std::size_t(id)].op->name << ": a rule asks for operand "
                            << i << " of " << operand_count() << ", which are counted from 0");
    return {b, id};
  }
};

/// Partial derivatives that need no node.
inline constexpr var zero_partial{nullptr, -2};
inline constexpr var one_partial{nullptr, -3};
inline constexpr var minus_one_partial{nullptr, -4};

/// Names the cell whose operator() is running, for messages, profiles and printed graphs:
/// `cell_scope scope(x, *this);` as the first line of a cell.
class cell_scope {
 public:
  template <class Cell>
  constexpr cell_scope(var x, const Cell& cell) : cell_scope(x, &cell, &type_tag<Cell>) {}
  cell_scope(const cell_scope&) = delete;
  cell_scope& operator=(const cell_scope&) = delete;
  constexpr ~cell_scope() { b_->current_cell(outer_); }

 private:
  CELLA_MADE_ONCE constexpr cell_scope(var x, const void* cell, const void* tag)
      : b_(operand(x).owner()), outer_(b_->current_cell()) {
    b_->current_cell(b_->cells.path_of(cell, tag, outer_));
  }

  builder* b_;
  name_ref outer_;
};

}  // namespace cella
