// Operations that own regions: cond, scan, while_loop, call; and records, in which loops of unknown
// length and recursion keep what their backward pass reads.
//
// Regions are closed: a body sees its inputs only, and every outer value that it uses is an operand
// of its node. How bodies are traced stands in transform/control.hpp.
#pragma once

#include <cella/graph/builder.hpp>
#include <cella/ops/op.hpp>

namespace cella {

/// Operands: a predicate (bool[]), arguments. Regions: {then, otherwise}, both of the arguments.
/// The results are the outputs of the region that the predicate chooses.
struct cond_op : control<cond_op> {
  static constexpr control_form form = control_form::branch;
  static constexpr std::string_view name = "cond";
  static constexpr std::string_view torch = "torch.cond";
  static constexpr std::string_view formula =
      "region 0 or region 1, by the truth of the first operand";
  static constexpr text validate(const graph& g, node_id n);
};

/// Operands: carries, xs, constants. Region: body(carries, a slice of each x, constants) ->
/// carries, a slice of each y. It runs `length` times along the leading axis of xs and ys. Results:
/// the final carries, the ys.
struct scan_options {
  std::int32_t carries{};
  std::int32_t xs{};
  std::int32_t length{};
  std::int32_t reverse{};    ///< the last slice first; ys keep their places
  std::int32_t recompute{};  ///< the backward pass computes bodies again rather than store them

  /// The slice that a turn works on.
  constexpr int place(int turn) const { return reverse ? length - 1 - turn : turn; }
};
struct scan_op : control<scan_op> {
  static constexpr control_form form = control_form::scan;
  static constexpr std::string_view name = "scan";
  static constexpr std::string_view torch = "torch.scan";
  static constexpr std::string_view formula =
      "a region for each slice, with carries from one to the next";
  using options = scan_options;
  static constexpr text validate(const graph& g, node_id n);
};

/// Operands: carries, constants. Regions: {condition, body}, both of (carries, constants). The body
/// replaces the carries while the condition yields true. Results: the final carries.
struct while_options {
  std::int32_t carries{};
  std::int32_t max_steps{};  ///< the loop ends after so many; 0: it need not end
};
struct while_op : control<while_op> {
  static constexpr control_form form = control_form::loop;
  static constexpr std::string_view name = "while_loop";
  static constexpr std::string_view torch = "torch.while_loop";
  static constexpr std::string_view formula = "region 1 as long as region 0 yields true";
  using options = while_options;
  static constexpr text validate(const graph& g, node_id n);
};

/// Operands: arguments. Region: the function that is called. Functions may call themselves.
struct call_options {
  std::int32_t recompute{};  ///< the backward pass calls the function again rather than store
};
struct call_op : control<call_op> {
  static constexpr control_form form = control_form::call;
  static constexpr std::string_view name = "call";
  static constexpr std::string_view formula = "a region, which other nodes may call, too";
  using options = call_options;
  static constexpr text validate(const graph& g, node_id n);
};

/// Operands: arguments, constants. Regions: {function, rule}: function(arguments, constants) yields
/// the results; rule(arguments, results, cotangents of the results, constants) yields the
/// cotangents of the arguments. It is gone after differentiation: see passes/simplify/prune.hpp.
struct custom_options {
  std::int32_t arguments{};
};
struct custom_op : control<custom_op> {
  static constexpr control_form form = control_form::custom;
  static constexpr std::string_view name = "custom";
  static constexpr std::string_view torch = "torch.autograd.Function";
  static constexpr std::string_view formula = "a region, with another one as its derivative";
  using options = custom_options;
  static constexpr text validate(const graph& g, node_id n);
};

/// Any number of tensors -> a record that holds them. Their leading axes are those of `shape`, with
/// one record per index.
struct record_options {
  cella::shape shape{};
};
struct pack_op : control<pack_op> {
  static constexpr control_form form = control_form::pack;
  static constexpr std::string_view name = "pack";
  static constexpr std::string_view formula = "a record that holds the operands";
  using options = record_options;
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    return {dtype::record, o.as<options>().shape};
  }
  static constexpr text validate(const graph& g, node_id n);
};
/// A record -> the tensors that it holds. A constant record holds zeros of whatever type is asked.
struct unpack_op : control<unpack_op> {
  static constexpr control_form form = control_form::unpack;
  static constexpr std::string_view name = "unpack";
  static constexpr std::string_view formula = "what a record holds";
  static constexpr int operands = 1;
  using options = record_options;
  static constexpr text validate(const graph& g, node_id n);
};

/// How memory holds a tensor of type `t`: an element of type `record` is a 64-bit number.
constexpr tensor_type stored(tensor_type t) {
  if (t.element == dtype::record) t.element = dtype::i64;
  return t;
}
/// `t` with one more leading axis, and without its leading axis.
constexpr tensor_type with_leading(int extent, tensor_type t) {
  t.shape.insert(0, extent);
  return t;
}
constexpr tensor_type without_leading(tensor_type t) {
  t.shape.erase(0);
  return t;
}

// ---- what must hold between a node and its regions

namespace detail {

/// Compares types one by one and keeps the first difference as a sentence.
class type_match {
 public:
  explicit constexpr type_match(const graph& g) : g_(g) {}

  constexpr void expect(bool holds, std::string_view sentence) {
    if (!holds && wrong_.empty()) wrong_ << sentence;
  }
  constexpr void expect(std::string_view what, int k, const tensor_type& found,
                        const tensor_type& wanted) {
    if (found == wanted || !wrong_.empty()) return;
    wrong_ << what << " " << k << " is " << found << " instead of " << wanted;
  }
  /// Inputs of region `r` from `first` on are of the types of `operands`.
  constexpr void takes(int r, span<const node_id> operands) {
    if (!has_region(r)) return;
    const ids& in = g_.regions[std::size_t(r)].inputs;
    expect(in.size() == operands.size(),
           "its operands and the inputs of its region differ in number");
    for (std::size_t k = 0; k < in.size() && wrong_.empty(); ++k)
      expect("the region's input", int(k), g_.type(in[k]), g_.type(operands[k]));
  }
  /// Outputs of region `r` are of the given types.
  template <class TypeOf>
  constexpr void yields(int r, int count, TypeOf type_of) {
    if (!has_region(r)) return;
    const ids& out = g_.regions[std::size_t(r)].outputs;
    expect(out.size() == std::size_t(count), "its region yields another number of results");
    for (std::size_t k = 0; k < out.size() && wrong_.empty(); ++k)
      expect("the region's output", int(k), g_.type(out[k]), type_of(int(k)));
  }
  constexpr const text& wrong() const { return wrong_; }

 private:
  constexpr bool has_region(int r) {
    expect(r >= 0, "it lacks a region");
    return r >= 0 && wrong_.empty();
  }

  const graph& g_;
  text wrong_;
};

}  // namespace detail

constexpr text cond_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  detail::type_match m(g);
  m.expect(n.operand_count > 0, "it lacks its predicate");
  if (!m.wrong().empty()) return m.wrong();
  m.expect("operand", 0, g.type(g.operand(id, 0)), {dtype::boolean, {}});
  for (int r : n.regions) {
    m.takes(r, g.operands(id).subspan(1));
    m.yields(r, n.result_count, [&](int k) { return g.result_type(id, k); });
  }
  return m.wrong();
}

constexpr text scan_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  const auto o = n.attributes.as<options>();
  detail::type_match m(g);
  m.expect(n.regions[0] >= 0, "it lacks a region");
  m.expect(o.carries >= 0 && o.xs >= 0 && o.length >= 0 && o.carries <= n.result_count &&
               std::int64_t{o.carries} + o.xs <= n.operand_count,
           "its options do not fit its operands");
  if (!m.wrong().empty()) return m.wrong();
  const ids& in = g.regions[std::size_t(n.regions[0])].inputs;
  m.expect(in.size() == std::size_t(n.operand_count),
           "its operands and the inputs of its region differ in number");
  for (int k = 0; k < n.operand_count && m.wrong().empty(); ++k) {
    const bool sliced = k >= o.carries && k < o.carries + o.xs;
    const tensor_type t = g.type(in[std::size_t(k)]);
    m.expect(!sliced || t.rank() < max_rank, "a slice has no room for the axis of the slices");
    if (m.wrong().empty())
      m.expect("operand", k, g.type(g.operand(id, k)), sliced ? with_leading(o.length, t) : t);
  }
  for (int k = o.carries; k < n.result_count; ++k)
    m.expect(g.result_type(id, k).rank() > 0, "what it stacks lacks the axis of the slices");
  m.yields(n.regions[0], n.result_count, [&](int k) {
    const tensor_type t = g.result_type(id, k);
    return k < o.carries ? t : without_leading(t);
  });
  return m.wrong();
}

constexpr text while_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  const int carries = n.attributes.as<options>().carries;
  detail::type_match m(g);
  m.expect(carries == n.result_count && carries <= n.operand_count,
           "its options do not fit its operands");
  for (int r : n.regions) m.takes(r, g.operands(id));
  m.yields(n.regions[0], 1, [](int) { return tensor_type{dtype::boolean, {}}; });
  m.yields(n.regions[1], carries, [&](int k) { return g.type(g.operand(id, k)); });
  for (int k = 0; k < carries && m.wrong().empty(); ++k)
    m.expect("result", k, g.result_type(id, k), g.type(g.operand(id, k)));
  return m.wrong();
}

constexpr text call_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  detail::type_match m(g);
  m.takes(n.regions[0], g.operands(id));
  m.yields(n.regions[0], n.result_count, [&](int k) { return g.result_type(id, k); });
  return m.wrong();
}

constexpr text custom_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  const int arguments = n.attributes.as<options>().arguments;
  detail::type_match m(g);
  m.expect(arguments >= 0 && arguments <= n.operand_count, "its options do not fit its operands");
  m.takes(n.regions[0], g.operands(id));
  m.yields(n.regions[0], n.result_count, [&](int k) { return g.result_type(id, k); });
  m.yields(n.regions[1], arguments, [&](int k) { return g.type(g.operand(id, k)); });
  if (!m.wrong().empty()) return m.wrong();
  list<tensor_type> wanted;
  for (int k = 0; k < arguments; ++k) wanted.push_back(g.type(g.operand(id, k)));
  for (int k = 0; k < 2 * n.result_count; ++k)
    wanted.push_back(g.result_type(id, k % n.result_count));
  for (int k = arguments; k < n.operand_count; ++k) wanted.push_back(g.type(g.operand(id, k)));
  const ids& in = g.regions[std::size_t(n.regions[1])].inputs;
  m.expect(in.size() == wanted.size(), "its rule takes another number of inputs");
  for (std::size_t k = 0; k < in.size() && m.wrong().empty(); ++k)
    m.expect("the rule's input", int(k), g.type(in[k]), wanted[k]);
  return m.wrong();
}

constexpr text pack_op::validate(const graph& g, node_id id) {
  const shape lead = g.type(id).shape;
  detail::type_match m(g);
  for (node_id o : g.operands(id))
    m.expect(begins_with(g.type(o).shape, lead, lead.rank), "an operand lacks the record's axes");
  return m.wrong();
}

constexpr text unpack_op::validate(const graph& g, node_id id) {
  const node n = g.nodes[std::size_t(id)];
  const shape lead = n.attributes.as<options>().shape;
  detail::type_match m(g);
  m.expect(n.operand_count == 1, "it takes one record");
  if (m.wrong().empty()) m.expect("operand", 0, g.type(g.operand(id, 0)), {dtype::record, lead});
  for (int k = 0; k < n.result_count; ++k)
    m.expect(begins_with(g.result_type(id, k).shape, lead, lead.rank),
             "a result lacks the record's axes");
  return m.wrong();
}

}  // namespace cella
