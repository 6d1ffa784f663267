// Sums of products by an equation of letters.
#pragma once

#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <string_view>

namespace cella {

namespace detail {

/// The axes of operands and result by number, which is that of a letter; what `...` stands for has
/// the numbers 0, 1, ...
struct einsum_equation {
  list<list<int>> operands;
  list<int> result;
  std::string_view wrong{};  ///< empty if nothing is

  constexpr einsum_equation(std::string_view text, span<const var> in) {
    const auto arrow = text.find("->");
    const std::string_view left = text.substr(0, arrow);
    list<std::string_view> terms;
    for (std::size_t from = 0; from <= left.size();) {
      std::size_t comma = from;
      while (comma < left.size() && left[comma] != ',') ++comma;
      terms.push_back(left.substr(from, comma - from));
      from = comma + 1;
    }
    if (terms.size() != in.size()) wrong = "has another number of terms than operands";
    for (std::size_t k = 0; wrong.empty() && k < terms.size(); ++k)
      hidden_ = std::max(hidden_, in[k].rank() - letters_of(terms[k]));
    for (std::size_t k = 0; wrong.empty() && k < terms.size(); ++k)
      operands.push_back(axes_of(terms[k], in[k].rank()));
    if (!wrong.empty()) return;
    if (arrow != text.npos) {
      result = axes_of(text.substr(arrow + 2), -1);
      return;
    }
    // Without an arrow: what `...` stands for, then the letters that occur once, in their order.
    for (int d = 0; d < hidden_; ++d) result.push_back(d);
    for (int c = 'A'; c <= 'z'; ++c)
      if (is_letter(char(c)) && std::count(left.begin(), left.end(), char(c)) == 1)
        result.push_back(c);
  }

 private:
  static constexpr bool is_letter(char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
  }
  static constexpr int letters_of(std::string_view term) {
    int n = 0;
    for (char c : term) n += is_letter(c);
    return n;
  }
  /// `rank` is that of an operand, or -1: the result has all that `...` stands for.
  constexpr list<int> axes_of(std::string_view term, int rank) {
    list<int> axes;
    const int hidden = rank < 0 ? hidden_ : rank - letters_of(term);
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (term.substr(i, 3) == "...") {
        for (int d = hidden_ - hidden; d < hidden_; ++d) axes.push_back(d);
        i += 2;
      } else if (is_letter(term[i])) {
        axes.push_back(term[i]);
      } else if (term[i] != ' ') {
        wrong = "holds more than letters, \",\", \"...\" and \"->\"";
      }
    }
    if (rank >= 0 && int(axes.size()) != rank) wrong = "does not fit an operand's rank";
    return axes;
  }

  int hidden_ = 0;
};

/// Not constexpr on purpose, as in concat.
inline no_place einsum_is_given_no_operands(std::source_location at) {
  throw model_error(text() << at << ": einsum is given no operands");
}
struct no_einsum_braces {
  __attribute__((unavailable("write the operands in braces: einsum(\"ij,jk->ik\", {x, y})")))  //
  constexpr no_einsum_braces(const var& v)
      : x(v) {}
  var x;
};
/// A tensor whose axes have numbers.
struct numbered {
  var x{};
  list<int> axes;

  constexpr int place(int number) const {
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] == number) return int(i);
    return -1;
  }
  constexpr bool has(int number) const { return place(number) >= 0; }
};
constexpr bool contains(const list<int>& all, int number) {
  for (int a : all)
    if (a == number) return true;
  return false;
}

/// The diagonal of axes that have the same number.
constexpr numbered without_repeats(numbered t, std::source_location at) {
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    for (std::size_t j = i + 1; j < t.axes.size(); ++j) {
      if (t.axes[i] != t.axes[j]) continue;
      if (t.x.extent(int(i)) != t.x.extent(int(j))) {
        t.x.b->fail(text() << at << ": einsum: a letter stands for the axes " << int(i) << " and "
                           << int(j) << " of " << t.x.b->describe(t.x.id) << " " << t.x.shape()
                           << ", whose diagonal needs equal extents");
        return t;
      }
      const tensor_type places{dtype::i64, t.x.shape()};
      const var same = equal(iota(*t.x.b, places, int(i)), iota(*t.x.b, places, int(j)));
      t.x = sum(select(same, t.x, zeros_like(t.x)), {int(j)});
      t.axes.erase(t.axes.begin() + j--);
    }
  }
  return t;
}
/// Sums over the axes that nothing else needs.
template <class Needed>
constexpr numbered summed_but(numbered t, Needed needed) {
  list<int> gone, kept;
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    if (needed(t.axes[i]))
      kept.push_back(t.axes[i]);
    else
      gone.push_back(int(i));
  }
  if (gone.empty()) return t;
  return {sum(t.x, axis_list(gone)), kept};
}
/// Without axes of one element that are longer in the other tensor: there they are broadcast.
constexpr numbered without_narrow(numbered t, const numbered& other) {
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    const int at = other.place(t.axes[i]);
    if (t.x.extent(int(i)) != 1 || at < 0 || other.x.extent(at) == 1) continue;
    t.x = squeeze(t.x, int(i));
    t.axes.erase(t.axes.begin() + i--);
  }
  return t;
}
/// The sum of products of two tensors; the result has the axes that `needed` asks for.
template <class Needed>
constexpr numbered product_of(numbered a, numbered b, std::source_location at, Needed needed) {
  a = summed_but(a, [&](int axis) { return b.has(axis) || needed(axis); });
  b = summed_but(b, [&](int axis) { return a.has(axis) || needed(axis); });
  const numbered wide = a;
  a = without_narrow(a, b);
  b = without_narrow(b, wide);
  builder& g = *a.x.b;
  list<int> all = a.axes, result;
  for (int axis : b.axes) {
    if (!a.has(axis)) all.push_back(axis);
    if (a.has(axis) && a.x.extent(a.place(axis)) != b.x.extent(b.place(axis)))
      g.fail(text() << at << ": einsum: an axis of " << g.describe(a.x.id) << " " << a.x.shape()
                    << " has another extent in " << g.describe(b.x.id) << " " << b.x.shape());
  }
  for (int axis : all)
    if (needed(axis)) result.push_back(axis);
  if (result.size() > std::size_t(max_rank) || a.x.element() != b.x.element())
    g.fail(text() << at << ": einsum: " << g.describe(a.x.id) << " is " << a.x.type() << ", "
                  << g.describe(b.x.id) << " is " << b.x.type()
                  << "; their element types must agree, and a product has at most " << max_rank
                  << " axes");
  if (g.failed()) return a;
  auto factors = [&](const list<int>& axes) {
    iteration_space::axes f = iteration_space::no_axes;
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (std::size_t k = 0; k < all.size(); ++k)
        if (all[k] == axes[i]) f[i] = std::int8_t(k);
    return f;
  };
  return {emit<matmul_op>(matmul_op::options{factors(a.axes), factors(b.axes), factors(result)}, at,
                          a.x, b.x),
          result};
}

}  // namespace detail

/// Sums of products: each operand's axes have letters, those of the result stand behind "->", and
/// what it lacks is summed over: einsum("bij,bjk->bik", {x, y}). A letter twice in a term takes the
/// diagonal, "..." stands for further axes, which are broadcast. Without "->" the result has the
/// letters that occur once, in alphabetical order. Operands are multiplied from left to right.
constexpr var einsum(std::string_view equation, span<const var> operands,
                     std::source_location at = std::source_location::current()) {
  if (operands.empty()) const no_place stop = detail::einsum_is_given_no_operands(at);
  builder& b = *operands[0].b;
  const detail::einsum_equation e(equation, operands);
  auto refuse = [&](std::string_view why) {
    b.fail(text() << at << ": einsum: the equation \"" << equation << "\" " << why);
    return operands[0];
  };
  if (!e.wrong.empty()) return refuse(e.wrong);
  list<detail::numbered> left;
  for (std::size_t k = 0; k < operands.size(); ++k)
    left.push_back(detail::without_repeats({operands[k], e.operands[k]}, at));
  detail::numbered all = left[0];
  for (std::size_t k = 1; k < left.size() && !b.failed(); ++k) {
    all = detail::product_of(all, left[k], at, [&](int axis) {
      bool needed = detail::contains(e.result, axis);
      for (std::size_t j = k + 1; j < left.size(); ++j) needed = needed || left[j].has(axis);
      return needed;
    });
  }
  if (b.failed()) return operands[0];
  all = detail::summed_but(all, [&](int axis) { return detail::contains(e.result, axis); });
  list<int> order;
  for (int axis : e.result) {
    if (!all.has(axis)) return refuse("has a result that names an axis of no operand");
    order.push_back(all.place(axis));
  }
  if (order.size() != all.axes.size()) return refuse("has a result that names an axis twice");
  return order.empty() ? all.x : transpose({all.x, at}, axis_list(order));
}
/// A number or a parameter may stand among them.
constexpr var einsum(std::string_view equation, std::initializer_list<operand> operands,
                     std::source_location at = std::source_location::current()) {
  builder* b = nullptr;
  for (const operand& x : operands) b = b ? b : x.owner();
  list<var> all;
  for (const operand& x : operands) all.push_back(x.in(*b));
  return einsum(equation, all, at);
}
/// Braces are easily forgotten.
constexpr var einsum(std::string_view, detail::no_einsum_braces first, const auto&...) {
  return first.x;
}

}  // namespace cella
