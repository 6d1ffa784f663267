// Sums of products by an equation of letters.
#pragma once

#include <cctype>
#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>

namespace cella::interop {

/// The axes of the operands and of the result by number: a letter each, and what `...` stands for.
class einsum_equation {
 public:
  einsum_equation(const onnx_node& n, const list<var>& operands) : n_(n) {
    std::string text;
    for (char c : n.string("equation", ""))
      if (c != ' ') text.push_back(c);
    const auto arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    std::vector<std::string> terms;
    for (std::size_t from = 0; from <= left.size();) {
      const auto comma = std::min(left.find(',', from), left.size());
      terms.push_back(left.substr(from, comma - from));
      from = comma + 1;
    }
    if (terms.size() != operands.size()) n.refuse("has an equation for another number of operands");
    for (std::size_t k = 0; k < terms.size(); ++k) {
      const auto dots = terms[k].find("...");
      const std::size_t letters = terms[k].size() - (dots == terms[k].npos ? 0 : 3);
      const int hidden = operands[k].rank() - int(letters);
      if (hidden < 0 || (hidden > 0 && dots == terms[k].npos))
        n.refuse("has an equation for operands of another rank");
      most_hidden_ = std::max(most_hidden_, dots == terms[k].npos ? 0 : hidden);
    }
    for (std::size_t k = 0; k < terms.size(); ++k)
      operands_.push_back(axes_of(terms[k], operands[k].rank()));
    if (arrow != text.npos) {
      result_ = axes_of(text.substr(arrow + 2), -1);
      return;
    }
    // Without an arrow: what `...` stands for, then the letters that occur once, in their order.
    for (int d = 0; d < most_hidden_; ++d) result_.push_back(d);
    for (int c = 0; c < 128; ++c)
      if (std::count(left.begin(), left.end(), char(c)) == 1 && std::isalpha(c))
        result_.push_back(c);
  }
  const std::vector<std::vector<int>>& operands() const { return operands_; }
  const std::vector<int>& result() const { return result_; }

 private:
  std::vector<int> axes_of(const std::string& term, int rank) const {
    std::vector<int> axes;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0) {
        const int hidden = rank < 0 ? most_hidden_ : rank - int(term.size() - 3);
        for (int d = most_hidden_ - hidden; d < most_hidden_; ++d) axes.push_back(d);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
        axes.push_back(term[i]);
      } else {
        n_.refuse("has an equation that holds more than letters, \",\", \"...\" and \"->\"");
      }
    }
    if (rank >= 0 && int(axes.size()) != rank) n_.refuse("has \"...\" twice in its equation");
    return axes;
  }

  const onnx_node& n_;
  int most_hidden_ = 0;
  std::vector<std::vector<int>> operands_;
  std::vector<int> result_;
};

/// A tensor whose axes have numbers.
struct numbered {
  var x;
  std::vector<int> axes;
  bool has(int a) const { return std::ranges::find(axes, a) != axes.end(); }
};
/// The diagonal of axes that have the same number.
inline numbered without_repeats(numbered t) {
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    for (std::size_t j = i + 1; j < t.axes.size(); ++j) {
      if (t.axes[i] != t.axes[j]) continue;
      const shape s = t.x.shape();
      const var same =
          equal(iota(*t.x.b, {dtype::i64, s}, int(i)), iota(*t.x.b, {dtype::i64, s}, int(j)));
      t.x = sum(select(same, t.x, zeros_like(t.x)), {int(j)});
      t.axes.erase(t.axes.begin() + std::ptrdiff_t(j));
      --j;
    }
  }
  return t;
}
/// Sums over the axes that nothing else needs.
template <class Needed>
numbered summed(numbered t, Needed needed) {
  std::vector<int> gone, kept;
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    if (needed(t.axes[i]))
      kept.push_back(t.axes[i]);
    else
      gone.push_back(int(i));
  }
  if (gone.empty()) return t;
  return {sum(t.x, axis_list(gone)), kept};
}
/// The sum of products of two tensors; the result has the axes that `needed` asks for.
template <class Needed>
numbered product_of(const onnx_node& n, numbered a, numbered b, Needed needed) {
  a = summed(a, [&](int axis) { return b.has(axis) || needed(axis); });
  b = summed(b, [&](int axis) { return a.has(axis) || needed(axis); });
  // An axis of one element beside one of more is broadcast: it goes.
  auto narrow = [](numbered& t, const numbered& other) {
    for (std::size_t i = 0; i < t.axes.size(); ++i) {
      const auto at = std::ranges::find(other.axes, t.axes[i]);
      if (t.x.extent(int(i)) != 1 || at == other.axes.end()) continue;
      if (other.x.extent(int(at - other.axes.begin())) == 1) continue;
      t.x = squeeze(t.x, int(i));
      t.axes.erase(t.axes.begin() + std::ptrdiff_t(i--));
    }
  };
  narrow(a, b);
  narrow(b, a);
  std::vector<int> all = a.axes, result;
  for (int axis : b.axes)
    if (!a.has(axis)) all.push_back(axis);
  if (all.size() > std::size_t(max_rank))
    n.not_supported("a sum of products over more than 8 axes");
  for (int axis : all)
    if (needed(axis)) result.push_back(axis);
  auto factors = [&](const std::vector<int>& axes) {
    iteration_space::axes f = iteration_space::no_axes;
    for (std::size_t i = 0; i < axes.size(); ++i)
      f[i] = std::int8_t(std::ranges::find(all, axes[i]) - all.begin());
    return f;
  };
  matmul_op::options o;
  o.a = factors(a.axes);
  o.b = factors(b.axes);
  o.result = factors(result);
  return {emit<matmul_op>(o, std::source_location::current(), a.x, b.x), result};
}
inline list<var> einsum_rule(onnx_node& n) {
  const list<var> in = n.inputs();
  const einsum_equation equation(n, in);
  const std::vector<int>& result = equation.result();
  std::vector<numbered> left;
  for (std::size_t k = 0; k < in.size(); ++k)
    left.push_back(without_repeats({in[k], equation.operands()[k]}));
  auto in_result = [&](int axis) { return std::ranges::find(result, axis) != result.end(); };
  numbered all = left[0];
  for (std::size_t k = 1; k < left.size(); ++k) {
    all = product_of(n, all, left[k], [&](int axis) {
      bool needed = in_result(axis);
      for (std::size_t j = k + 1; j < left.size(); ++j) needed = needed || left[j].has(axis);
      return needed;
    });
  }
  all = summed(all, in_result);
  std::vector<int> order;
  for (int axis : result) {
    const auto at = std::ranges::find(all.axes, axis);
    if (at == all.axes.end()) n.refuse("has an equation whose result names an axis of no operand");
    order.push_back(int(at - all.axes.begin()));
  }
  if (order.size() != all.axes.size()) n.refuse("has an equation whose result names an axis twice");
  return {permuted(all.x, order)};
}

inline constexpr named_onnx_rule einsum_rules[] = {
    {"Einsum", einsum_rule},
};

}  // namespace cella::interop
