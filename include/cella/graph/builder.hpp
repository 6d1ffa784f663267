// What functions on `var`s are traced into: regions of nodes (region_builder.hpp), with states and
// random numbers (body_builder.hpp), cells and their parameters, native branches, functions by
// name.
#pragma once

#include <cella/graph/body_builder.hpp>

namespace cella {

/// Appends nodes to a graph: in constant evaluation (graph mode) or at run time. With an evaluator
/// each node is computed as it is appended (eager mode).
class builder : public body_builder {
 public:
  /// Cells ask this to tell training from inference (dropout, batch norm).
  bool training{};
  /// Element type of parameters and of literals that stand beside none.
  dtype precision = dtype::f32;

  // ---- cells and their parameters

  /// Declares that the object at `key` is node `id` of the main region.
  constexpr void bind(const void* key, node_id id) { leaves_.push_back({key, id}); }
  /// The node bound to `key`, or no_node.
  constexpr node_id find(const void* key) {
    // Parameters are asked for in the order in which they were bound, more or less; comparing
    // addresses is slow in constant evaluation.
    const std::size_t n = leaves_.size();
    for (std::size_t k = 0, i = next_leaf_; k < n; ++k, ++i) {
      if (i >= n) i = 0;
      if (leaves_[i].key != key) continue;
      next_leaf_ = i + 1;
      return leaves_[i].id;
    }
    return no_node;
  }
  constexpr bool binds() const { return !leaves_.empty(); }
  /// Declares the path of the cell of a type (by tag, since a cell and its first member share an
  /// address).
  constexpr void declare_cell(const void* key, const void* tag, std::string_view path) {
    cells_.push_back({key, tag, g.intern(path)});
  }
  constexpr name_ref find_cell(const void* key, const void* tag) const {
    for (const cell_entry& c : cells_) {
      if (c.key == key && c.tag == tag) return c.path;
    }
    return cell_;
  }

  // ---- nodes of other graphs, and in place of others

  /// The same application on other operands, in the open region; types are inferred again, regions
  /// are shared.
  constexpr node_id copy(node_id n, span<const node_id> in) {
    return copy(n, in, g.nodes[std::size_t(n)].attributes);
  }
  /// The same with other options.
  constexpr node_id copy(node_id n, span<const node_id> in, const attributes& options) {
    node x = g.nodes[std::size_t(n)];
    x.attributes = options;
    return copy(x, results_of(g, x), in, x.cell, x.regions);
  }
  /// The same for a node of any graph.
  constexpr node_id copy(const graph& from, node_id n, span<const node_id> in) {
    if (&from == &g) return copy(n, in);
    list<int> regions(from.regions.size(), -1);
    return copy(from, n, in, regions);
  }
  /// The same for many nodes of another graph: `regions` remembers which of its regions were copied
  /// and where they are now. It has one entry per region, -1 at first.
  constexpr node_id copy(const graph& from, node_id n, span<const node_id> in, list<int>& regions) {
    node x = from.nodes[std::size_t(n)];
    g.adopt_values(x, from.constants);
    std::array<std::int32_t, 2> own = x.regions;
    for (std::int32_t& r : own) {
      if (r >= 0) r = import(from, r, regions);
    }
    if (&from != copied_from_ || x.cell.first != copied_.first || x.cell.size != copied_.size) {
      copied_from_ = &from;
      copied_ = x.cell;
      copied_here_ = g.intern(from.view(x.cell));
    }
    return copy(x, results_of(from, x), in, copied_here_, own);
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
  /// An application without operands that will stand in front of region `r`, so that a node that is
  /// overwritten can use it. `settle` moves it there.
  constexpr node_id emit_early(const op_info& op, const attributes& options, int r) {
    node n{};
    n.op = &op;
    n.attributes = options;
    n.type = op.infer({}, options);
    const node_id id = append(n, {}, r);
    early_.push_back(id);
    return id;
  }
  constexpr void settle(int r) {
    ids order;
    ids elsewhere;
    for (node_id n : early_) (region_of(n) == r ? order : elsewhere).push_back(n);
    if (order.empty()) return;
    flags moved(g.regions[std::size_t(r)].nodes.size(), 0);
    for (node_id n : order) moved[std::size_t(g.nodes[std::size_t(n)].position)] = 1;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (!moved[i]) order.push_back(g.regions[std::size_t(r)].nodes[i]);
    }
    reorder(r, order);
    early_ = elsewhere;
  }

  // ---- native `if`

  /// A decision of a function that is run once per path: what follows it goes into a region of its
  /// own.
  struct decision {
    node_id condition = no_node;
    bool taken{};
    int region{};            ///< what follows
    node_id first_behind{};  ///< nodes from here on are made behind the decision
  };
  /// The run of one path: what decisions to take, and those that were taken. Decisions beyond the
  /// planned ones are taken to hold.
  struct path_plan {
    flags planned;
    list<decision> made;
  };
  /// Decisions on one path, and paths through one function.
  static constexpr int max_paths = 64;

  /// Follows this plan from here on (none: tensor values decide nothing); returns the plan before.
  constexpr path_plan* follow(path_plan* plan) { return std::exchange(plan_, plan); }

  /// Which way to go at a native `if` on a tensor that has no value yet.
  constexpr bool decide(node_id condition) {
    // After a fault: now this way, now that way, so that any loop ends.
    if (failed()) return coin_ = !coin_;
    const std::string_view remedy = "; use while_loop() for a loop, cond() for a branch";
    if (g.type(condition).element != dtype::boolean || g.type(condition).size() != 1) {
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
    if (k >= std::size_t(max_paths)) {
      fail(place_of(condition) << "if: a function decides more than " << max_paths
                               << " times in a row on tensor values" << remedy);
      return false;
    }
    const bool taken = k >= plan_->planned.size() || plan_->planned[k];
    const auto first_behind = node_id(g.nodes.size());
    const int r = begin_continuation();
    plan_->made.push_back({condition, taken, r, first_behind});
    return taken;
  }

  /// The open regions from `depth` on are set aside, or opened again.
  constexpr std::size_t depth() const { return open_.size(); }
  constexpr list<int> set_aside(std::size_t depth) {
    const auto first = open_.begin() + std::ptrdiff_t(depth);
    const list<int> aside(first, open_.end());
    open_.erase(first, open_.end());
    continues_.resize(depth);
    return aside;
  }
  constexpr void open_again(span<const int> aside) {
    for (int r : aside) {
      open_.push_back(r);
      continues_.push_back(1);
    }
  }
  /// Takes the nodes that were appended since `first`, other than inputs, off the open region.
  constexpr void take_back(node_id first) {
    ids order;
    for (node_id n : g.regions[std::size_t(here())].nodes) {
      if (n < first || g.nodes[std::size_t(n)].op == &input_info_of) order.push_back(n);
    }
    reorder(here(), order);
  }
  // ---- functions

  /// Regions that transforms derived from a function that is called by name: made once per function
  /// and set of marked inputs, found again by recursion and by other callers.
  enum class derivation : std::uint8_t { forward_mode, halves };
  constexpr int find_derived(derivation kind, int of, const flags& marked) const {
    for (const derived_region& d : derived_) {
      if (d.kind == kind && d.of == of && d.marked == marked) return d.made;
    }
    return -1;
  }
  constexpr void remember_derived(derivation kind, int of, const flags& marked, int made) {
    derived_.push_back({kind, of, marked, made});
  }

  /// A function that is called by name, for arguments of these types.
  struct named_function {
    const void* key;
    list<tensor_type> types;
    int region = -1;         ///< none before it is traced
    bool draws{};            ///< random numbers: a key is its last argument
    bool called_too_soon{};  ///< without a key, by itself, before it was known to draw
  };
  /// The index of a function, which need not have been traced.
  constexpr std::size_t find_function(const void* key, span<const tensor_type> types) {
    std::size_t k = 0;
    for (; k < functions_.size(); ++k) {
      const named_function& f = functions_[k];
      if (f.key == key && std::equal(f.types.begin(), f.types.end(), types.begin(), types.end()))
        return k;
    }
    functions_.push_back({key, {types.begin(), types.end()}});
    return k;
  }
  constexpr named_function& function(std::size_t index) { return functions_[index]; }

  /// Forgets a region and all that were opened since, which only it knows.
  constexpr void discard_since(int r) {
    for (std::size_t k = std::size_t(r); k < g.regions.size(); ++k) g.regions[k] = {};
    erase_if(derived_, [&](const derived_region& d) { return d.of >= r || d.made >= r; });
    for (named_function& f : functions_) {
      if (f.region >= r) f.region = -1;
    }
  }

 private:
  struct leaf {
    const void* key;
    node_id id;
  };
  struct cell_entry {
    const void* key;
    const void* tag;
    name_ref path;
  };
  struct derived_region {
    derivation kind;
    int of;
    flags marked;
    int made;
  };

  constexpr node_id copy(node x, span<const tensor_type> results, span<const node_id> in,
                         name_ref cell, std::array<std::int32_t, 2> regions) {
    if (x.op == &get_info_of) return get(in[0], x.attributes.as<get_attributes>().result);
    const name_ref outer = cell_;
    cell_ = cell;
    const node_id r = results.empty() ? emit(*x.op, in, x.attributes)
                                      : emit_control(*x.op, in, results, regions, x.attributes);
    cell_ = outer;
    if (failed()) return r;
    g.nodes[std::size_t(r)].file = x.file;
    g.nodes[std::size_t(r)].line = x.line;
    return r;
  }
  /// Copies a region of another graph. Its index is known before it is filled: it may call itself.
  constexpr int import(const graph& from, int r, list<int>& regions) {
    int& made = regions[std::size_t(r)];
    if (made >= 0) return made;
    const int q = made = reserve_region();
    const region& x = from.regions[std::size_t(r)];
    ids map(x.nodes.size(), no_node);
    auto mapped = [&](node_id n) { return map[std::size_t(from.nodes[std::size_t(n)].position)]; };
    for (std::size_t i = 0; i < x.nodes.size(); ++i) {
      node n = from.nodes[std::size_t(x.nodes[i])];
      n.first_operand = std::int32_t(g.operand_pool.size());
      for (node_id o : from.operands(x.nodes[i])) g.operand_pool.push_back(mapped(o));
      if (n.result_count) {
        const auto first = from.results.begin() + n.first_result;
        g.set_results(n, list<tensor_type>(first, first + n.result_count));
      }
      n.cell = g.intern(from.view(n.cell));
      g.adopt_values(n, from.constants);
      for (std::int32_t& s : n.regions) {
        if (s >= 0) s = import(from, s, regions);
      }
      map[i] = g.append(n, q);
    }
    region to = g.regions[std::size_t(q)];
    for (node_id n : x.inputs) to.inputs.push_back(mapped(n));
    for (node_id n : x.outputs) to.outputs.push_back(mapped(n));
    // What the inputs stood for is another graph's business: they are all declared now.
    to.declared = std::int32_t(to.inputs.size());
    g.regions[std::size_t(q)] = to;
    return q;
  }

  list<leaf> leaves_;
  std::size_t next_leaf_ = 0;
  list<cell_entry> cells_;
  const graph* copied_from_{};  ///< of the last copied node: its graph, its cell there and here
  name_ref copied_{};
  name_ref copied_here_{};
  ids early_;
  path_plan* plan_{};
  bool coin_{};
  list<derived_region> derived_;
  list<named_function> functions_;
};

}  // namespace cella
