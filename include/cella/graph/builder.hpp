// What functions on `var`s are traced into: nodes are appended to the open region of a graph, types
// inferred, outer values captured, faults kept as sentences.
#pragma once

#include <array>
#include <cella/graph/body_states.hpp>
#include <cella/graph/cell_table.hpp>
#include <cella/graph/early_nodes.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/function_table.hpp>
#include <cella/graph/graph.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/open_regions.hpp>
#include <cella/graph/optimizer_inputs.hpp>
#include <cella/graph/path_plan.hpp>
#include <cella/graph/shared_nodes.hpp>
#include <initializer_list>
#include <source_location>
#include <type_traits>
#include <utility>

namespace cella {

/// Appends nodes to a graph: in constant evaluation (graph mode) or at run time. With an evaluator
/// each node is computed as it is appended (eager mode).
class builder {
 public:
  /// Computes nodes as they are appended. Non-owning; called at run time only.
  struct evaluator {
    virtual void evaluate(const graph&, node_id) = 0;
    /// Element `i` of a computed value.
    virtual double read(node_id, std::int64_t i) const = 0;

   protected:
    ~evaluator() = default;
  };

  graph g;
  evaluator* eager{};
  /// Cells ask this to tell training from inference (dropout, batch norm).
  bool training{};
  /// Element type of parameters and of literals that stand beside none.
  dtype precision = dtype::f32;

  open_regions open;
  body_states bodies{g};
  cell_table cells;
  function_table functions;
  early_nodes early;
  shared_nodes shared;
  optimizer_inputs of_optimizers;

  CELLA_MADE_ONCE constexpr builder() { g.regions.emplace_back(); }
  builder(const builder&) = delete;
  builder& operator=(const builder&) = delete;
  CELLA_MADE_ONCE constexpr ~builder() {}

  // ---- faults

  /// Records the first fault of a trace in constant evaluation; throws it at run time.
  constexpr void fail(const text& sentence) {
    if (!std::is_constant_evaluated()) throw model_error(sentence);
    if (fault_.empty()) fault_ = sentence;
  }
  /// Puts a sentence that says more in the place of the fault.
  constexpr void restate(const text& sentence) { fault_ = sentence; }
  constexpr bool failed() const { return !fault_.empty(); }
  constexpr const text& fault() const { return fault_; }

  // ---- nodes

  /// Appends an application of `op` to the open region. The public functions of ops/ have checked
  /// the operands. After a fault nothing is appended and an existing id comes back.
  CELLA_ONCE constexpr node_id emit(const op_info& op, span<const node_id> in,
                                    const attributes& options = {},
                                    std::source_location at = std::source_location::current()) {
    if (failed()) return in.empty() ? node_id{0} : in[0];
    ids captured;
    in = local(in, captured);
    std::array<tensor_type, 4> few{};
    list<tensor_type> many;
    span<tensor_type> types(few.data(), in.size() <= few.size() ? in.size() : 0);
    if (in.size() > few.size()) {
      many.assign(in.size(), tensor_type{});
      types = many;
    }
    bool complex = false;
    for (std::size_t i = 0; i < in.size(); ++i) {
      types[i] = g.type(in[i]);
      complex |= is_complex(types[i].element);
    }
    node n{};
    n.op = &op;
    set_place(n, at);
    if (complex && !op.traits.takes_complex && op.kind != op_kind::control)
      return refuse_complex(n, in);
    n.cell = cell_;
    n.attributes = options;
    if (op.results) {
      std::array<tensor_type, 8> out{};
      const int count = op.results(types, options, out);
      g.set_results(n, {out.data(), std::size_t(count)});
    } else {
      n.type = op.infer(types, options);
    }
    return append(n, in, here());
  }
  CELLA_ONCE constexpr node_id emit(const op_info& op, std::initializer_list<node_id> in,
                                    const attributes& options = {},
                                    std::source_location at = std::source_location::current()) {
    return emit(op, span<const node_id>(in.begin(), in.size()), options, at);
  }

  /// Appends an application whose result types no rule infers: a control operation with its
  /// regions, or `unpack`. It has several results, even if that is one.
  CELLA_ONCE constexpr node_id emit_control(
      const op_info& op, span<const node_id> in, span<const tensor_type> results,
      std::array<std::int32_t, 2> regions = {-1, -1}, const attributes& options = {},
      std::source_location at = std::source_location::current()) {
    if (failed()) return in.empty() ? node_id{0} : in[0];
    ids captured;
    in = local(in, captured);
    node n{};
    n.op = &op;
    set_place(n, at);
    n.cell = cell_;
    n.regions = regions;
    n.attributes = options;
    g.set_results(n, results);
    return append(n, in, here());
  }

  /// Result `k` of a node with several results; the node itself if it has one. It stands in the
  /// region of `n`, since no region takes a tuple as an input.
  CELLA_ONCE constexpr node_id get(node_id n, int k) {
    if (failed() || g.nodes[std::size_t(n)].result_count == 0) return n;
    node r{};
    const node& from = g.nodes[std::size_t(n)];
    r.op = &get_info_of;
    r.file = from.file;
    r.line = from.line;
    r.cell = from.cell;
    r.attributes = get_attributes{k};
    r.type = g.result_type(n, k);
    const std::array in{n};
    return append(r, in, from.region);
  }

  /// Appends a node whose type is known to region `r`.
  CELLA_ONCE constexpr node_id append(node n, span<const node_id> in, int r) {
    g.set_operands(n, in);
    const node_id id = g.append(n, r);
    if (evaluates(r)) eager->evaluate(g, id);
    return id;
  }
  /// Puts another application in the place of a control node whose users stay: its first results
  /// must mean what they meant. Operands must precede the node.
  constexpr void overwrite(node_id id, node n, span<const node_id> in,
                           span<const tensor_type> results) {
    g.set_results(n, results);
    g.set_operands(n, in);
    g.nodes[std::size_t(id)] = n;
    if (evaluates(n.region)) eager->evaluate(g, id);
  }

  /// Whether nodes that are appended to a region (default: the open one) are computed at once: in
  /// eager mode, outside the regions that transforms trace.
  constexpr bool evaluates() const { return evaluates(here()); }
  constexpr bool evaluates(int r) const { return eager && r == 0; }

  // ---- regions

  constexpr int here() const { return open.innermost(); }
  constexpr int region_of(node_id n) const { return g.nodes[std::size_t(n)].region; }

  /// An input of the open region.
  constexpr node_id input(const tensor_type& t) { return g.append_input(t, here()); }
  /// An input of the main region with a role and a name.
  constexpr node_id input(const tensor_type& t, input_role role, std::string_view label) {
    return g.append_input(t, role, label);
  }

  /// Opens a closed region with the given declared inputs and returns its index.
  CELLA_ONCE constexpr int begin(span<const tensor_type> in) {
    const int r = int(g.regions.size());
    g.regions.emplace_back();
    open.open(r);
    for (const tensor_type& t : in) input(t);
    g.regions[std::size_t(r)].declared = std::int32_t(in.size());
    return r;
  }
  /// Closes the open region with these outputs.
  CELLA_ONCE constexpr void end(span<const node_id> out) {
    ids l;
    for (node_id i : out) l.push_back(local(i));
    g.regions[std::size_t(here())].outputs = l;
    open.close();
  }

  /// The id by which the open region may name a value: itself, or the input that stands for an
  /// outer value (made on first use, in every region between).
  constexpr node_id local(node_id id) { return local(id, open.depth() - 1); }

  /// Makes two closed regions that were opened here take the same captured values, in one order,
  /// which is returned: two regions of one node share its operands.
  CELLA_ONCE constexpr ids unify(int r, int q) {
    const ids captured = g.regions[std::size_t(r)].captured;
    open.open(q);
    for (node_id n : captured) local(n);
    open.close();
    const ids order = g.regions[std::size_t(q)].captured;
    ids inputs = g.regions[std::size_t(r)].inputs;
    const std::size_t declared = std::size_t(g.regions[std::size_t(r)].declared);
    const ids own(inputs.begin() + std::ptrdiff_t(declared), inputs.end());
    inputs.resize(declared);
    for (node_id n : order) {
      node_id at = no_node;
      for (std::size_t k = 0; k < captured.size(); ++k) {
        if (captured[k] == n) at = own[k];
      }
      inputs.push_back(at >= 0 ? at : g.append_input(g.type(n), r));
    }
    g.regions[std::size_t(r)].inputs = inputs;
    g.regions[std::size_t(r)].captured = order;
    return order;
  }

  /// Makes an outer value one more output of a closed region that was opened here.
  constexpr void add_output(int r, node_id n) {
    open.open(r);
    const node_id l = local(n);
    open.close();
    g.regions[std::size_t(r)].outputs.push_back(l);
  }

  /// Forgets a region that served as scratch.
  CELLA_ONCE constexpr void discard(int r) { g.regions[std::size_t(r)] = {}; }
  /// Reserves an index, so that a region can be called before it exists. `fill` gives it the
  /// contents of another, which becomes empty.
  constexpr int reserve_region() {
    g.regions.emplace_back();
    return int(g.regions.size()) - 1;
  }
  CELLA_ONCE constexpr void fill(int reserved, int from) {
    g.regions[std::size_t(reserved)] = g.regions[std::size_t(from)];
    g.regions[std::size_t(from)] = {};
    for (node_id n : g.regions[std::size_t(reserved)].nodes)
      g.nodes[std::size_t(n)].region = reserved;
  }
  /// Forgets a region and all that were opened since, which only it knows.
  CELLA_ONCE constexpr void discard_since(int r) {
    for (std::size_t k = std::size_t(r); k < g.regions.size(); ++k) g.regions[k] = {};
    functions.forget_since(r);
  }

  // ---- native `if`

  /// Follows this plan from here on (none: tensor values decide nothing); returns the plan before.
  constexpr path_plan* follow(path_plan* plan) { return std::exchange(plan_, plan); }

  /// Which way to go at a native `if` on a tensor that has no value yet.
  CELLA_ONCE constexpr bool decide(node_id condition) {
    // After a fault: now this way, now that way, so that any loop ends.
    if (failed()) return coin_ = !coin_;
    const std::string_view remedy = "; use while_loop() for a loop, cond() for a branch";
    if (g.type(condition).element != dtype::boolean || g.type(condition).size() != 1) {
      const std::string_view file = g.nodes[std::size_t(condition)].file;
      if (file.find("/bits/stl_algo") != std::string_view::npos) {
        fail(text() << "an algorithm of the standard library compares " << g.type(condition)
                    << " at once; for std::max and std::min write maximum(x, y) and minimum(x, y), "
                       "which go element by element");
        return false;
      }
      fail(place_of(condition)
           << "if: the condition " << describe(condition) << " is " << g.type(condition)
           << "; it must be one bool (compare with >, equal, ...; any() or all() make one of many; "
              "select() and logical_and() go element by element)");
      return false;
    }
    if (!plan_) {
      fail(place_of(condition) << "reading a value at compile time: " << describe(condition) << " "
                               << g.type(condition) << " has no value while the model is traced"
                               << remedy);
      return false;
    }
    const std::size_t k = plan_->made.size();
    if (k >= std::size_t(path_plan::max_paths)) {
      fail(place_of(condition) << "if: a function decides more than " << path_plan::max_paths
                               << " times in a row on tensor values" << remedy);
      return false;
    }
    const bool taken = k >= plan_->planned.size() || plan_->planned[k];
    const auto first_behind = node_id(g.nodes.size());
    const int r = int(g.regions.size());
    g.regions.emplace_back();
    open.open_continuation(r);
    plan_->made.push_back({condition, taken, r, first_behind});
    return taken;
  }

  // ---- places in the source, and names

  /// A line of the user's source.
  struct source_line {
    const char* file{};
    std::int32_t line{};
  };
  /// From here on nodes are said to be written at this line (none: where they are emitted): what a
  /// derivative rule appends belongs to the line of the forward node. Returns the line before.
  constexpr source_line attribute_to(source_line s) { return std::exchange(written_, s); }

  constexpr name_ref current_cell() const { return cell_; }
  constexpr void current_cell(name_ref path) { cell_ = path; }

  /// Where a node was written: `lenet.cpp:21: `; empty for inputs.
  CELLA_ONCE constexpr text place_of(node_id id) const {
    const node& n = g.nodes[std::size_t(id)];
    if (n.line == 0) return {};
    const std::string_view file = n.file;
    return text() << file.substr(file.rfind('/') + 1) << ":" << n.line << ": ";
  }
  /// How operands are named in sentences: an input by its name, others as `relu result of block1`.
  CELLA_ONCE constexpr text describe(node_id id) const {
    text t;
    const node& n = g.nodes[std::size_t(id)];
    if (n.op == &get_info_of) return describe(g.operand(id, 0));
    if (n.op == &input_info_of && n.region == 0) {
      for (std::size_t i = 0; i < g.inputs.size(); ++i) {
        if (g.input(int(i)) == id) return t << g.view(g.inputs[i].name);
      }
    }
    if (n.op == &input_info_of) return t << "argument";
    t << n.op->name << " result";
    return n.cell.size ? t << " of " << g.view(n.cell) : t;
  }

 private:
  constexpr void set_place(node& n, const std::source_location& at) const {
    n.file = written_.file ? written_.file : at.file_name();
    n.line = written_.file ? written_.line : std::int32_t(at.line());
  }
  /// The fault of an operation without a meaning for complex numbers.
  constexpr node_id refuse_complex(const node& n, span<const node_id> in) {
    node_id x = no_node;  // the first that is not a number of the user's
    for (node_id i : in) {
      const node& o = g.nodes[std::size_t(i)];
      const bool named = o.operand_count > 0 || o.op == &input_info_of;
      if (is_complex(o.type.element) && (named || x < 0)) x = i;
      if (x == i && named) break;
    }
    const std::string_view file = n.file;
    fail(text() << file.substr(file.rfind('/') + 1) << ":" << n.line << ": " << n.op->name << ": "
                << describe(x) << " is " << g.type(x)
                << "; complex numbers have no such operation: take abs(), real() or imag() of it");
    return in[0];
  }
  /// Operands by the names that the open region has for them; `storage` holds them if they differ.
  constexpr span<const node_id> local(span<const node_id> in, ids& storage) {
    bool captures = false;
    for (node_id i : in) captures |= region_of(i) != here();
    if (!captures) return in;
    for (node_id i : in) storage.push_back(local(i));  // before the pool is touched: it appends
    return storage;
  }
  constexpr node_id local(node_id id, std::size_t level) {
    const int r = open[level];
    if (failed() || region_of(id) == r) return id;
    if (g.nodes[std::size_t(id)].operand_count == 0 &&
        g.nodes[std::size_t(id)].op != &input_info_of) {
      return g.append(g.nodes[std::size_t(id)], r);  // constants are repeated, not captured
    }
    if (level == 0) {
      fail(text() << g.nodes[std::size_t(id)].op->name
                  << ": a value of a closed region (a loop body or a branch) is used outside it; "
                     "return it from the body");
      return g.regions[std::size_t(r)].nodes.front();
    }
    const node_id outer = local(id, level - 1);
    region& inner = g.regions[std::size_t(r)];
    for (std::size_t k = 0; k < inner.captured.size(); ++k) {
      if (inner.captured[k] == outer) return inner.inputs[std::size_t(inner.declared) + k];
    }
    inner.captured.push_back(outer);
    return g.append_input(g.type(outer), r);
  }

  path_plan* plan_{};
  bool coin_{};
  name_ref cell_{};
  source_line written_{};
  text fault_;
};

}  // namespace cella
