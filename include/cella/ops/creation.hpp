// Tensors made of a shape and numbers. In a graph every value belongs to the trace that made it, so
// a var or parameter of that trace stands first: `arange(x, 8)`. It lends the element type, too.
#pragma once

#include <algorithm>
#include <cella/ops/comparison.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <type_traits>

namespace cella {

/// A tensor of that shape, filled with one number. Its element type is that of x, or `element`.
constexpr var full(operand x, const shape& s, double value, std::optional<dtype> element = {});
/// The same with zeros.
constexpr var zeros(operand x, const shape& s, std::optional<dtype> element = {}) {
  return full(x, s, 0, element);
}
/// The same with ones.
constexpr var ones(operand x, const shape& s, std::optional<dtype> element = {}) {
  return full(x, s, 1, element);
}

/// The numbers 0, 1, 2 ... below `stop`. [ceil(stop)]
constexpr var arange(operand x, double stop, std::optional<dtype> element = {});
/// The numbers from `start` on, `step` apart, that come before `stop`: none where `step` leads away
/// from it. [ceil((stop - start) / step)]; of integers all three must be such.
constexpr var arange(operand x, double start, double stop, double step = 1,
                     std::optional<dtype> element = {});
/// `count` numbers from `start` to `stop`, evenly apart; with `endpoint` the last is `stop`, else
/// they stop one step before it.
constexpr var linspace(operand x, double start, double stop, int count, bool endpoint = true,
                       std::optional<dtype> element = {});

/// Ones on a diagonal, zeros elsewhere: [rows, columns], square without `columns`. Diagonal 0 is
/// the main one, `k` > 0 lies above it.
constexpr var eye(operand x, int rows, std::optional<int> columns = {}, int k = 0,
                  std::optional<dtype> element = {});

namespace detail {

/// Says what is wrong with a creation; its result then stands for one.
constexpr var refuse_creation(operand x, const text& fault) {
  builder& b = *x.owner();
  b.fail(text() << x.at() << ": " << fault);
  return x.in(b);
}
constexpr dtype element_of_creation(operand x, std::optional<dtype> element) {
  return element ? *element : x.in(*x.owner()).element();
}
// The standard library's functions for it are no constant expressions everywhere.
constexpr bool has_no_fraction(double x) {
  constexpr double no_parts = 1ull << 52;
  return x >= no_parts || x <= -no_parts || double(std::int64_t(x)) == x;
}
/// start + step * (0 ... count - 1), as it is in double precision, rounded once to the type.
constexpr var even_numbers(operand x, double start, double step, std::int64_t count,
                           dtype element) {
  builder& b = *x.owner();
  const shape s{int(count)};
  const auto line = [&](dtype t) {
    var y = iota(b, {t, s}, 0);
    if (step != 1) y = y * step;
    return start == 0 ? y : y + start;
  };
  // Whole numbers that the type has are exact without detours: loops that read them make them.
  constexpr double exact_in_single = 1 << 24;
  const double last = start + step * double(count);
  const bool whole = has_no_fraction(start) && has_no_fraction(step);
  const bool direct =
      element == dtype::f64 || is_integer(element) ||
      (element == dtype::f32 && whole && double(count) <= exact_in_single &&
       std::min(start, last) >= -exact_in_single && std::max(start, last) <= exact_in_single);
  return direct ? line(element) : cast(line(dtype::f64), element);
}

}  // namespace detail

constexpr var full(operand x, const shape& s, double value, std::optional<dtype> element) {
  for (int i = 0; i < s.rank; ++i) {
    if (s[i] < 0)
      return detail::refuse_creation(x, text() << "full: " << s << " has a negative extent");
  }
  return constant(*x.owner(), value, {detail::element_of_creation(x, element), s});
}

constexpr var arange(operand x, double stop, std::optional<dtype> element) {
  return arange(x, 0, stop, 1, element);
}
constexpr var arange(operand x, double start, double stop, double step,
                     std::optional<dtype> element) {
  const dtype t = detail::element_of_creation(x, element);
  const auto refuse = [&](const char* why) {
    return detail::refuse_creation(
        x, text() << "arange: from " << start << " to " << stop << " by " << step << why);
  };
  if (!is_floating(t) && !is_integer(t))
    return detail::refuse_creation(x, text() << "arange: counts in numbers, not in " << t
                                             << "; name a type: arange(x, 8, dtype::f32)");
  if (!(step != 0)) return refuse(" there is no end; the step is not 0");
  const double exact = (stop - start) / step;
  if (!(exact <= std::numeric_limits<std::int32_t>::max()))
    return refuse(" are more numbers than an axis has");
  std::int64_t count = exact <= 0 ? 0 : std::int64_t(exact);
  if (double(count) < exact && exact > 0) ++count;
  if (is_integer(t)) {
    const double last = start + step * double(std::max<std::int64_t>(count - 1, 0));
    const auto held = [&](double v) { return detail::nearest_integer(t, v) == v; };
    if (!detail::has_no_fraction(step) || !held(start) || !held(last))
      return detail::refuse_creation(
          x, text() << "arange: from " << start << " to " << stop << " by " << step
                    << " are not all numbers of " << t
                    << "; name another type: arange(x, start, stop, step, dtype::f32)");
  }
  return detail::even_numbers(x, start, step, count, t);
}
constexpr var linspace(operand x, double start, double stop, int count, bool endpoint,
                       std::optional<dtype> element) {
  const dtype t = detail::element_of_creation(x, element);
  if (!is_floating(t))
    return detail::refuse_creation(x, text() << "linspace: numbers between others are no " << t
                                             << "; name a type: dtype::f32");
  if (count < 0)
    return detail::refuse_creation(x, text() << "linspace: there are no " << count << " numbers");
  const int steps = endpoint ? count - 1 : count;
  if (steps < 1) return full(x, {count}, start, t);
  builder& b = *x.owner();
  // From both ends, so that the last is `stop` to the last digit.
  const var part = iota(b, {dtype::f64, {count}}, 0) / double(steps);
  return cast((1 - part) * start + part * stop, t);
}

constexpr var eye(operand x, int rows, std::optional<int> columns, int k,
                  std::optional<dtype> element) {
  const shape s{rows, columns.value_or(rows)};
  if (s[0] < 0 || s[1] < 0)
    return detail::refuse_creation(x, text() << "eye: " << s << " has a negative extent");
  builder& b = *x.owner();
  const tensor_type places{dtype::i32, s};
  return cast(equal(iota(b, places, 1) - iota(b, places, 0), k),
              detail::element_of_creation(x, element));
}

// ---- without a var, by habit: the compiler says what is missing, and goes on with a number

namespace detail {
#define CELLA_NO_GRAPH        \
  __attribute__((unavailable( \
      "let a var or parameter of the net stand first: zeros(x, {2, 3}), arange(x, 8)")))
struct no_graph {
  CELLA_NO_GRAPH constexpr no_graph(double) {}
  CELLA_NO_GRAPH constexpr no_graph(const shape&) {}
  CELLA_NO_GRAPH constexpr no_graph(std::initializer_list<std::int32_t>) {}
};
#undef CELLA_NO_GRAPH
}  // namespace detail

constexpr var zeros(detail::no_graph) { return zero_partial; }
constexpr var ones(detail::no_graph) { return zero_partial; }
constexpr var eye(detail::no_graph) { return zero_partial; }
constexpr var arange(detail::no_graph) { return zero_partial; }
template <class Start>
requires std::is_arithmetic_v<Start>
__attribute__((unavailable("let a var or parameter of the net stand first: arange(x, 0, 8)")))  //
constexpr var
arange(Start, double, double = 1) {
  return zero_partial;
}
constexpr var full(detail::no_graph, double) { return zero_partial; }
constexpr var linspace(detail::no_graph, double, int) { return zero_partial; }

}  // namespace cella
