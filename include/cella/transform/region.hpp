// What transforms do with regions and lists of values: copy a region's nodes, select, join, spread.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/graph/list.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>
#include <initializer_list>

namespace cella::detail {

using type_list = list<tensor_type>;

template <class T>
constexpr list<T> join(std::initializer_list<list<T>> lists) {
  list<T> all;
  for (const list<T>& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}
constexpr ids join_ids(std::initializer_list<ids> lists) { return join<node_id>(lists); }
constexpr type_list join_types(std::initializer_list<type_list> lists) {
  return join<tensor_type>(lists);
}

/// `count` elements from `first` on.
template <class T>
constexpr list<T> cut(const list<T>& all, int first, int count) {
  return {all.begin() + first, all.begin() + first + count};
}
template <class T>
constexpr list<T> tail(const list<T>& all, int first) {
  return {all.begin() + first, all.end()};
}
constexpr ids pick(const ids& all, const list<int>& places) {
  ids r;
  for (int k : places) r.push_back(all[std::size_t(k)]);
  return r;
}

/// first, first + 1, ... `count` numbers.
constexpr list<int> numbers(int first, int count) {
  list<int> r;
  for (int k = 0; k < count; ++k) r.push_back(first + k);
  return r;
}

/// Takes lists off the front of a list, one after the other.
class list_reader {
 public:
  constexpr explicit list_reader(const ids& all) : list_(all) {}
  constexpr ids take(std::size_t count) {
    at_ += int(count);
    return cut(list_, at_ - int(count), int(count));
  }
  constexpr ids rest() { return take(list_.size() - std::size_t(at_)); }

 private:
  ids list_;
  int at_{};
};

// ---- lists with gaps: no_node where there is no value (a tangent or a cotangent that is zero)

constexpr flags which_exist(const ids& all) {
  flags m;
  for (node_id n : all) m.push_back(n >= 0);
  return m;
}
constexpr ids existing(const ids& all) {
  ids r;
  for (node_id n : all) {
    if (n >= 0) r.push_back(n);
  }
  return r;
}
/// Puts values back in the places that are marked.
constexpr ids spread(const ids& all, const flags& marked) {
  ids r;
  std::size_t next = 0;
  for (char m : marked) r.push_back(m ? all[next++] : no_node);
  return r;
}
/// The places in [first, last) that are marked.
constexpr list<int> places(const flags& marked, int first, int last) {
  list<int> r;
  for (int k = first; k < last; ++k) {
    if (marked[std::size_t(k)]) r.push_back(k);
  }
  return r;
}
constexpr flags all_marked(std::size_t count) { return flags(count, 1); }

// ---- nodes and regions

constexpr type_list types_of(const builder& b, const ids& all) {
  type_list t;
  for (node_id n : all) t.push_back(b.g.type(n));
  return t;
}
constexpr type_list result_types(const builder& b, node_id n) {
  type_list t;
  for (int k = 0; k < b.g.nodes[std::size_t(n)].result_count; ++k)
    t.push_back(b.g.result_type(n, k));
  return t;
}
constexpr ids operands_of(const builder& b, node_id n) {
  const auto in = b.g.operands(n);
  return {in.begin(), in.end()};
}
constexpr ids get_all(builder& b, node_id n, int first, int count) {
  ids r;
  for (int k = 0; k < count; ++k) r.push_back(b.get(n, first + k));
  return r;
}
constexpr ids inputs_of(const builder& b, int r) { return b.g.regions[std::size_t(r)].inputs; }
constexpr ids outputs_of(const builder& b, int r) { return b.g.regions[std::size_t(r)].outputs; }
/// The inputs of the open region.
constexpr ids own_inputs(const builder& b) { return inputs_of(b, b.here()); }

/// Appends a control node that is attributed to the place of another.
constexpr node_id emit_like(builder& b, const node& n, const op_info& op, const ids& in,
                            const type_list& results, std::array<std::int32_t, 2> regions,
                            const attributes& options = {}) {
  const node_id r = b.emit_control(op, in, results, regions, options);
  if (b.failed()) return r;
  b.g.nodes[std::size_t(r)].file = n.file;
  b.g.nodes[std::size_t(r)].line = n.line;
  return r;
}
constexpr node_id zeros(builder& b, const tensor_type& t) { return constant(b, 0, t).id; }
constexpr node_id or_zeros(builder& b, node_id n, const tensor_type& t) {
  return n < 0 ? zeros(b, t) : n;
}
constexpr node_id add(builder& b, node_id x, node_id y) { return b.emit(bound<add_op>(), {x, y}); }
constexpr node_id pack(builder& b, const ids& fields, const tensor_type& record) {
  return b.emit(bound<pack_op>(), fields, record_options{record.shape});
}
/// The fields of a record, of these types.
constexpr ids unpack(builder& b, node_id record, const type_list& fields) {
  const std::array in{record};
  const node_id n = b.emit_control(bound<unpack_op>(), in, fields, {-1, -1},
                                   record_options{b.g.type(record).shape});
  return get_all(b, n, 0, int(fields.size()));
}

/// Whether a derivative can flow through a node of this type.
constexpr bool carries_derivative(const node& n) {
  return n.type.element == dtype::tuple || is_differentiable(n.type.element);
}
/// Whether the derivative of an operation is zero by each of its operands.
constexpr bool is_flat(const op_info& op) { return op.zero_derivative && !op.linear_in; }
/// Whether an operation is linear in its operand `i`. Those from the 32nd on are like the last.
constexpr bool is_linear_in(const op_info& op, std::size_t i) {
  return op.linear_in >> (i < 31 ? i : 31) & 1;
}

/// Copies the nodes of a region into the open one, for these arguments, and returns its outputs.
/// Regions that its nodes own are shared, not copied: they are closed.
constexpr ids inline_region(builder& b, int r, const ids& arguments) {
  const ids nodes = b.g.regions[std::size_t(r)].nodes;
  const ids inputs = inputs_of(b, r);
  ids map(nodes.size(), no_node);
  auto place = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  for (std::size_t k = 0; k < inputs.size(); ++k) map[place(inputs[k])] = b.local(arguments[k]);
  ids in;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (b.g.nodes[std::size_t(nodes[i])].op == &input_info_of) continue;
    in.clear();
    for (node_id o : b.g.operands(nodes[i])) in.push_back(map[place(o)]);
    map[i] = copy_node(b, nodes[i], in);
  }
  ids out;
  for (node_id n : outputs_of(b, r)) out.push_back(map[place(n)]);
  return out;
}

/// Which outputs of a region depend on the marked inputs. A control node counts as one: all of its
/// results depend on all of its operands. `differentiably`: through values that carry derivatives.
constexpr flags dependent_outputs(const builder& b, int r, const flags& inputs,
                                  bool differentiably) {
  const region& x = b.g.regions[std::size_t(r)];
  flags depends(x.nodes.size(), 0);
  auto at = [&](node_id n) -> char& {
    return depends[std::size_t(b.g.nodes[std::size_t(n)].position)];
  };
  for (std::size_t k = 0; k < x.inputs.size(); ++k) at(x.inputs[k]) = inputs[k];
  for (std::size_t i = 0; i < x.nodes.size(); ++i) {
    if (differentiably && !carries_derivative(b.g.nodes[std::size_t(x.nodes[i])])) continue;
    for (node_id o : b.g.operands(x.nodes[i])) depends[i] |= at(o);
  }
  flags out;
  for (node_id n : x.outputs) out.push_back(at(n));
  return out;
}

/// For a loop: which carries and other inputs of its body are touched, given those that are touched
/// at first, and which outputs (`out`): a fixpoint over the carries.
constexpr flags loop_dependence(const builder& b, int body, flags inputs, int carries,
                                bool differentiably, flags& out) {
  for (bool again = true; again;) {
    again = false;
    out = dependent_outputs(b, body, inputs, differentiably);
    for (std::size_t k = 0; k < std::size_t(carries); ++k) {
      if (!out[k] || inputs[k]) continue;
      inputs[k] = 1;
      again = true;
    }
  }
  for (std::size_t k = 0; k < std::size_t(carries); ++k) out[k] = inputs[k];
  return inputs;
}

/// Whether a function calls region `target`, directly or through others.
constexpr bool calls(const builder& b, int r, int target, list<int>& seen) {
  for (int s : seen) {
    if (s == r) return false;
  }
  seen.push_back(r);
  for (node_id n : b.g.regions[std::size_t(r)].nodes) {
    for (std::int32_t s : b.g.nodes[std::size_t(n)].regions) {
      if (s >= 0 && (s == target || calls(b, s, target, seen))) return true;
    }
  }
  return false;
}
constexpr bool is_recursive(const builder& b, int r) {
  list<int> seen;
  return calls(b, r, r, seen);
}
/// Whether a region calls a function that calls itself, in a body of its own or of another region.
constexpr bool holds_recursion(const builder& b, int r, list<int>& seen) {
  for (int s : seen) {
    if (s == r) return false;
  }
  seen.push_back(r);
  for (node_id n : b.g.regions[std::size_t(r)].nodes) {
    for (std::int32_t s : b.g.nodes[std::size_t(n)].regions) {
      if (s >= 0 && (is_recursive(b, s) || holds_recursion(b, s, seen))) return true;
    }
  }
  return false;
}
constexpr bool holds_recursion(const builder& b, int r) {
  list<int> seen;
  return holds_recursion(b, r, seen);
}

}  // namespace cella::detail
