// Finds out which steps end as blocked/finish.hpp has it.
#pragma once

#include <cella/backend/cpu/blocked/finish.hpp>
#include <cella/backend/cpu/loops/lift.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/comparison.hpp>

namespace cella::cpu {

/// The form of what a step computes of each result.
template <class Graph>
constexpr finish_form finish_of(const line_finder<Graph>& find) {
  const plan_step& s = find.s;
  const Graph& g = find.g;
  finish_form f;
  if (s.output_count != 1 || s.accumulated < 0 || s.outputs[0].value < 0 || s.outputs[0].part ||
      s.outputs[0].summed)
    return f;
  node_id n = find.value_of(s.outputs[0].value);
  const dtype element = g.type(n).element;
  if (is_storage_only(element) || g.type(s.accumulated).element != element) return f;
  const auto computes = [&](node_id of) { return !find.given(of); };
  if (computes(n) && is<select_op>(find.at(n))) {
    // ReLU6.
    const node_id reached = g.operand(n, 0), bound = find.value_of(g.operand(n, 1)),
                  below = find.value_of(g.operand(n, 2));
    if (!is<greater_equal_op>(find.at(reached)) || !is<constant_op>(find.at(bound)) ||
        !computes(below) || !is<relu_op>(find.at(below)) ||
        find.value_of(g.operand(reached, 0)) != find.value_of(g.operand(below, 0)) ||
        find.value_of(g.operand(reached, 1)) != bound)
      return f;
    f.high = find.at(bound).attributes.template as<constant_op::options>().value;
    if (!(f.high >= 0)) return f;
    n = below;
  }
  if (computes(n) && is<relu_op>(find.at(n))) {
    f.low = 0;
    n = find.value_of(g.operand(n, 0));
  }
  // Sums are added in the order in which the line adds them: the bias first.
  const auto take = [&](access how, int& place) {
    if (!computes(n) || !is<add_op>(find.at(n))) return;
    for (int side = 0; side < 2; ++side) {
      const node_id term = find.value_of(g.operand(n, side));
      const int read = find.is_anchor(term) ? -1 : s.find_read(term);
      if (read < 0 || s.reads[std::size_t(read)].how != how ||
          s.reads[std::size_t(read)].factor >= 0 || g.type(term).element != element)
        continue;
      place = read;
      n = find.value_of(g.operand(n, 1 - side));
      return;
    }
  };
  take(access::same, f.added);
  take(access::row, f.bias);
  f.fits = find.is_anchor(n);
  return f;
}

}  // namespace cella::cpu
