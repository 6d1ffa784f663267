// One operation on plain tensors as kernel records see it: what `program_step` is for compiled
// programs, without a plan, and with nothing fused.
#pragma once

#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/lower/step.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/plan/operands.hpp>

namespace cella::cpu {

/// A graph of one node, whose operands are its inputs.
inline graph graph_of_one(const op_info& op, const attributes& options, span<const tensor_ref> in,
                          span<const tensor_ref> out) {
  graph g;
  g.regions.emplace_back();
  ids operands;
  for (const tensor_ref& t : in) operands.push_back(g.append_input(t.type, 0));
  node n{};
  n.op = &op;
  n.attributes = options;
  if (out.size() == 1) {
    n.type = out[0].type;
  } else {
    list<tensor_type> types;
    for (const tensor_ref& t : out) types.push_back(t.type);
    g.set_results(n, types);
  }
  g.set_operands(n, operands);
  g.append(n, 0);
  return g;
}

/// References to such a graph, to the step that its node is, and to the tensors.
template <class Number>
struct single_step {
  static constexpr bool compiled = false;
  using T = Number;
  static constexpr int L = lanes<T>;

  const graph& g;
  const plan_step& s;
  span<const tensor_ref> operands, results;

  const node& anchor() const { return g.nodes[std::size_t(s.anchor)]; }
  const op_info& operation() const { return *anchor().op; }
  template <class Options>
  Options options() const {
    return anchor().attributes.template as<Options>();
  }
  const attributes& all_options() const { return anchor().attributes; }
  tensor_type operand(int k) const { return operands[std::size_t(k)].type; }
  template <int>
  using operand_type = T;

  template <class U = const T>
  U* in(const memory&, int k) const {
    return reinterpret_cast<U*>(operands[std::size_t(k)].data);
  }
  template <class U = T>
  U* out(const memory&, int k) const {
    return reinterpret_cast<U*>(results[std::size_t(k)].data);
  }
  store_to<T> plain_epilogue(const memory& m, std::byte*) const { return {out(m, 0)}; }
  static constexpr bool passes_caches() { return false; }
};

}  // namespace cella::cpu
