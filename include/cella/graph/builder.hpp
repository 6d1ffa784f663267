// What appends nodes: types are inferred, outer values captured, faults kept as sentences.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/error.hpp>
#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/span.hpp>
#include <initializer_list>
#include <source_location>
#include <type_traits>
#include <utility>

namespace cella {

using ids = list<node_id>;
using flags = list<char>;

/// `input` and `get` are the leaves that the graph itself knows: a region's input, and one result
/// of a node that has several.
struct get_attributes {
  std::int32_t result{};
};
inline constexpr op_info input_info_of{.name = "input", .kind = op_kind::leaf};
inline constexpr op_info get_info_of{.name = "get", .kind = op_kind::leaf, .cheap = true};

/// Appends nodes to a graph: in constant evaluation (graph mode) or at run time. With an evaluator
/// each node is computed as it is appended (eager mode).
class builder {
 public:
  /// Computes nodes as they are appended. Non-owning; called at run time only.
  struct evaluator {
    virtual void evaluate(builder&, node_id) = 0;
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

  constexpr builder() {
    g.regions.emplace_back();
    open_.push_back(0);
    continues_.push_back(0);
  }
  builder(const builder&) = delete;
  builder& operator=(const builder&) = delete;
  constexpr ~builder() = default;

  // ---- faults

  /// Records the first fault of a trace in constant evaluation; throws it at run time.
  constexpr void fail(const text& sentence) {
    if (!std::is_constant_evaluated()) throw model_error(sentence);
    if (fault_.empty()) fault_ = sentence;
  }
  constexpr bool failed() const { return !fault_.empty(); }
  constexpr const text& fault() const { return fault_; }

  // ---- nodes

  /// Appends an application of `op` to the open region. The public functions of ops/ have checked
  /// the operands. After a fault nothing is appended and an existing id comes back.
  constexpr node_id emit(const op_info& op, span<const node_id> in, const attributes& options = {},
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
    for (std::size_t i = 0; i < in.size(); ++i) types[i] = g.type(in[i]);

    node n{};
    n.op = &op;
    set_place(n, at);
    n.cell = cell_;
    n.attributes = options;
    if (op.results) {
      std::array<tensor_type, 8> out{};
      n.result_count = op.results(types, options, out);
      n.first_result = std::int32_t(g.results.size());
      for (int k = 0; k < n.result_count; ++k) g.results.push_back(out[std::size_t(k)]);
      n.type = {dtype::tuple, {}};
    } else {
      n.type = op.infer(types, options);
    }
    return append(n, in);
  }
  constexpr node_id emit(const op_info& op, std::initializer_list<node_id> in,
                         const attributes& options = {},
                         std::source_location at = std::source_location::current()) {
    return emit(op, span<const node_id>(in.begin(), in.size()), options, at);
  }

  /// Appends an application whose result types no rule infers: a control operation with its
  /// regions, or `unpack`. It has several results, even if that is one.
  constexpr node_id emit_control(const op_info& op, span<const node_id> in,
                                 span<const tensor_type> results,
                                 std::array<std::int32_t, 2> regions = {-1, -1},
                                 const attributes& options = {},
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
    set_results(n, results);
    return append(n, in);
  }

  /// Result `k` of a node with several results; the node itself if it has one. It stands in the
  /// region of `n`, since no region takes a tuple as an input.
  constexpr node_id get(node_id n, int k) {
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

  /// The same application on other operands, in the open region; types are inferred again, regions
  /// are shared.
  constexpr node_id copy(node_id n, span<const node_id> in) {
    const node x = g.nodes[std::size_t(n)];
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
    const node& x = from.nodes[std::size_t(n)];
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
    set_results(n, results);
    n.first_operand = std::int32_t(g.operand_pool.size());
    n.operand_count = std::int32_t(in.size());
    for (node_id i : in) g.operand_pool.push_back(i);
    g.nodes[std::size_t(id)] = n;
    if (evaluates(n.region)) eager->evaluate(*this, id);
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

  // ---- regions

  constexpr int here() const { return open_.back(); }
  constexpr int region_of(node_id n) const { return g.nodes[std::size_t(n)].region; }

  /// An input of region `r` (default: the open one).
  constexpr node_id input(tensor_type t, int r = -1) {
    node n{};
    n.op = &input_info_of;
    n.type = t;
    if (r < 0) r = here();
    const node_id id = place(n, r);
    g.regions[std::size_t(r)].inputs.push_back(id);
    return id;
  }
  /// An input of the main region with a role and a name.
  constexpr node_id input(tensor_type t, input_role role, std::string_view label) {
    // Inputs of a role mostly follow each other.
    int index = 0;
    for (std::size_t i = g.inputs.size(); i-- > 0 && index == 0;) {
      if (g.inputs[i].role == role) index = g.inputs[i].index + 1;
    }
    g.inputs.push_back({role, g.intern(label), index});
    return input(t, 0);
  }

  /// Opens a closed region with the given declared inputs and returns its index.
  constexpr int begin(span<const tensor_type> in) {
    const int r = int(g.regions.size());
    g.regions.emplace_back();
    open_.push_back(r);
    continues_.push_back(0);
    for (const tensor_type& t : in) input(t);
    g.regions[std::size_t(r)].declared = std::int32_t(in.size());
    return r;
  }
  /// Closes the open region with these outputs.
  constexpr void end(span<const node_id> out) {
    ids l;
    for (node_id i : out) l.push_back(local(i));
    g.regions[std::size_t(here())].outputs = l;
    open_.pop_back();
    continues_.pop_back();
  }

  /// The id by which the open region may name a value: itself, or the input that stands for an
  /// outer value (made on first use, in every region between).
  constexpr node_id local(node_id id) { return local(id, int(open_.size()) - 1); }

  /// Makes two closed regions that were opened here take the same captured values, in one order,
  /// which is returned: two regions of one node share its operands.
  constexpr ids unify(int r, int q) {
    const ids captured = g.regions[std::size_t(r)].captured;
    open_.push_back(q);
    for (node_id n : captured) local(n);
    open_.pop_back();
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
      inputs.push_back(at >= 0 ? at : input(g.type(n), r));
    }
    g.regions[std::size_t(r)].inputs = inputs;
    g.regions[std::size_t(r)].captured = order;
    return order;
  }

  /// The open regions, innermost last, from the one that belongs to a function: those above it hold
  /// what follows a native `if` (see transform/branching.hpp), so together they are one straight
  /// line.
  constexpr span<const int> open_line() const {
    std::size_t first = open_.size() - 1;
    while (first > 0 && continues_[first]) --first;
    return span(open_).subspan(first);
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
      fail(place_of(condition) << "if: the condition " << describe(condition) << " is "
                               << g.type(condition)
                               << "; it must be one bool (compare with >, ==, ...; any() or all() "
                                  "make one of many)");
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
    const int r = begin({});
    continues_.back() = 1;
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
  /// Makes an outer value one more output of a closed region that was opened here.
  constexpr void add_output(int r, node_id n) {
    open_.push_back(r);
    const node_id l = local(n);
    open_.pop_back();
    g.regions[std::size_t(r)].outputs.push_back(l);
  }

  /// Forgets a region that served as scratch.
  constexpr void discard(int r) { g.regions[std::size_t(r)] = {}; }
  /// Forgets a region and all that were opened since, which only it knows.
  constexpr void discard_since(int r) {
    for (std::size_t k = std::size_t(r); k < g.regions.size(); ++k) g.regions[k] = {};
    erase_if(derived_, [&](const derived_region& d) { return d.of >= r || d.made >= r; });
    for (named_function& f : functions_) {
      if (f.region >= r) f.region = -1;
    }
  }

  /// Reserves an index, so that a region can be called before it exists. `fill` gives it the
  /// contents of another, which becomes empty.
  constexpr int reserve_region() {
    g.regions.emplace_back();
    return int(g.regions.size()) - 1;
  }
  constexpr void fill(int reserved, int from) {
    g.regions[std::size_t(reserved)] = g.regions[std::size_t(from)];
    g.regions[std::size_t(from)] = {};
    for (node_id n : g.regions[std::size_t(reserved)].nodes)
      g.nodes[std::size_t(n)].region = reserved;
  }

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

  /// Whether nodes that are appended now are computed at once: in eager mode, outside the regions
  /// that transforms trace.
  constexpr bool evaluates() const { return evaluates(here()); }

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
  constexpr name_ref find_cell(const void* key, const void* tag) const {
    for (const cell_entry& c : cells_) {
      if (c.key == key && c.tag == tag) return c.path;
    }
    return cell_;
  }

  /// New value of a main-region input (a parameter or a state), written back after each call.
  struct update {
    std::int32_t input{};
    node_id value{};
  };
  list<update> updates;

  /// Ends with the updates from `first` on: each input once, with its last value.
  constexpr list<update> take_updates(std::size_t first) {
    list<update> taken;
    for (std::size_t k = first; k < updates.size(); ++k) {
      std::size_t at = 0;
      while (at < taken.size() && taken[at].input != updates[k].input) ++at;
      if (at == taken.size()) taken.push_back({updates[k].input, no_node});
      taken[at].value = updates[k].value;
    }
    updates.resize(first);
    return taken;
  }

  // ---- bodies

  /// A body while it is traced, or run in eager mode: of a loop, a branch or a function. Random
  /// numbers are drawn from a key of its own, so that neither steps nor levels of a recursion see
  /// the same ones; its draws are counted from 0, so that other paths do not change them.
  struct body_scope {
    int region = -1;        ///< its region, if that has the key and the states as inputs
    bool repeats{};         ///< it may run many times
    const char* refuses{};  ///< what it is, if no state can be assigned in it
    bool knows_states{};    ///< the region has no other states as inputs than `states`
    std::int32_t stream{};  ///< which of the draws round it stands for its key
    std::int32_t step{};    ///< eager mode: the number of runs before
    node_id key = no_node;  ///< none before it is used
    /// Inputs of the region for states, which are inputs of the main region.
    struct state_input {
      node_id of{};
      node_id input{};
    };
    list<state_input> states{};
    std::size_t first_update{};
    int outer_streams{};
  };
  constexpr void enter(body_scope s) {
    s.first_update = updates.size();
    s.outer_streams = std::exchange(random_stream_, 0);
    scopes_.push_back(s);
  }
  constexpr body_scope leave() {
    const body_scope s = scopes_.back();
    scopes_.pop_back();
    random_stream_ = s.outer_streams;
    return s;
  }
  constexpr std::size_t scopes() const { return scopes_.size(); }
  constexpr body_scope& scope(std::size_t level) { return scopes_[level]; }
  /// Whether what is appended now may run many times.
  constexpr bool repeats() const {
    for (const body_scope& s : scopes_) {
      if (s.repeats) return true;
    }
    return false;
  }
  /// The innermost body in which no state can be assigned; null if they all can.
  constexpr const char* refuses_states() const {
    for (std::size_t k = scopes_.size(); k-- > 0;) {
      if (scopes_[k].refuses) return scopes_[k].refuses;
    }
    return nullptr;
  }

  /// The value that a state has here: what was assigned last, in this body or before it.
  constexpr node_id state_value(node_id state) { return state_value(state, scopes_.size()); }

  /// One more declared input of a region that is being filled.
  constexpr node_id late_input(const tensor_type& t, int r) {
    const node_id n = input(t, r);
    region& owner = g.regions[std::size_t(r)];
    for (std::size_t k = owner.inputs.size() - 1; k > std::size_t(owner.declared); --k)
      owner.inputs[k] = owner.inputs[k - 1];
    owner.inputs[std::size_t(owner.declared++)] = n;
    return n;
  }

  // ---- random numbers

  /// The program's random state, i64[2] (seed, step): an input that is made on first use.
  constexpr node_id random_key() {
    if (random_key_ < 0) random_key_ = input({dtype::i64, {2}}, input_role::state, "random");
    return random_key_;
  }
  constexpr bool draws_random_numbers() const { return random_key_ >= 0; }

  /// Numbers the random draws of a program, so that each has a stream of its own.
  constexpr int next_random_stream() { return random_stream_++; }
  constexpr int random_streams() const { return random_stream_; }
  constexpr void random_streams(int count) { random_stream_ = count; }

  /// Where a node was written: `lenet.cpp:21: `; empty for inputs.
  constexpr text place_of(node_id id) const {
    const node& n = g.nodes[std::size_t(id)];
    if (n.line == 0) return {};
    const std::string_view file = n.file;
    return text() << file.substr(file.rfind('/') + 1) << ":" << n.line << ": ";
  }
  /// How operands are named in sentences: an input by its name, others as `relu result of block1`.
  constexpr text describe(node_id id) const {
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

  constexpr bool evaluates(int r) const { return eager && r == 0; }
  constexpr void set_place(node& n, const std::source_location& at) const {
    n.file = written_.file ? written_.file : at.file_name();
    n.line = written_.file ? written_.line : std::int32_t(at.line());
  }
  constexpr node_id append(node n, span<const node_id> in) { return append(n, in, here()); }
  constexpr node_id append(node n, span<const node_id> in, int r) {
    n.first_operand = std::int32_t(g.operand_pool.size());
    n.operand_count = std::int32_t(in.size());
    for (node_id i : in) g.operand_pool.push_back(i);
    const node_id id = place(n, r);
    if (evaluates(r)) eager->evaluate(*this, id);
    return id;
  }
  constexpr void set_results(node& n, span<const tensor_type> types) {
    n.first_result = std::int32_t(g.results.size());
    n.result_count = std::int32_t(types.size());
    n.type = {dtype::tuple, {}};
    for (const tensor_type& t : types) g.results.push_back(t);
  }
  /// The result types of a node that no rule infers; empty for others.
  static constexpr list<tensor_type> results_of(const graph& from, const node& n) {
    list<tensor_type> types;
    if (n.op->results || n.result_count == 0) return types;
    const auto first = from.results.begin() + n.first_result;
    types.assign(first, first + n.result_count);
    return types;
  }
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
        set_results(n, list<tensor_type>(first, first + n.result_count));
      }
      n.cell = g.intern(from.view(n.cell));
      for (std::int32_t& s : n.regions) {
        if (s >= 0) s = import(from, s, regions);
      }
      map[i] = place(n, q);
    }
    region to = g.regions[std::size_t(q)];
    for (node_id n : x.inputs) to.inputs.push_back(mapped(n));
    for (node_id n : x.outputs) to.outputs.push_back(mapped(n));
    // What the inputs stood for is another graph's business: they are all declared now.
    to.declared = std::int32_t(to.inputs.size());
    g.regions[std::size_t(q)] = to;
    return q;
  }
  constexpr void reorder(int r, const ids& order) {
    g.regions[std::size_t(r)].nodes = order;
    for (std::size_t i = 0; i < order.size(); ++i)
      g.nodes[std::size_t(order[i])].position = std::int32_t(i);
  }
  /// Operands by the names that the open region has for them; `storage` holds them if they differ.
  constexpr span<const node_id> local(span<const node_id> in, ids& storage) {
    bool captures = false;
    for (node_id i : in) captures |= region_of(i) != here();
    if (!captures) return in;
    for (node_id i : in) storage.push_back(local(i));  // before the pool is touched: it appends
    return storage;
  }
  constexpr node_id state_value(node_id state, std::size_t depth) {
    const std::size_t first = depth ? scopes_[depth - 1].first_update : 0;
    for (std::size_t k = updates.size(); k-- > first;) {
      if (g.input(updates[k].input) == state) return updates[k].value;
    }
    if (depth == 0) return state;
    for (const auto& s : scopes_[depth - 1].states) {
      if (s.of == state) return s.input;
    }
    const int r = scopes_[depth - 1].region;
    if (r < 0 || scopes_[depth - 1].knows_states) return state_value(state, depth - 1);
    const node_id n = late_input(g.type(state), r);
    scopes_[depth - 1].states.push_back({state, n});
    return n;
  }
  constexpr node_id place(node n, int r) {
    region& owner = g.regions[std::size_t(r)];
    n.region = r;
    n.position = std::int32_t(owner.nodes.size());
    const auto id = node_id(g.nodes.size());
    g.nodes.push_back(n);
    owner.nodes.push_back(id);
    return id;
  }
  constexpr node_id local(node_id id, int level) {
    const int r = open_[std::size_t(level)];
    if (failed() || region_of(id) == r) return id;
    if (g.nodes[std::size_t(id)].operand_count == 0 &&
        g.nodes[std::size_t(id)].op != &input_info_of) {
      return place(g.nodes[std::size_t(id)], r);  // constants are repeated, not captured
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
    return input(g.type(outer), r);
  }

  list<int> open_;
  flags continues_;  ///< parallel to open_
  list<derived_region> derived_;
  list<named_function> functions_;
  ids early_;
  list<leaf> leaves_;
  std::size_t next_leaf_ = 0;
  const graph* copied_from_{};  ///< of the last copied node: its graph, its cell there and here
  name_ref copied_{};
  name_ref copied_here_{};
  list<cell_entry> cells_;
  name_ref cell_{};
  source_line written_{};
  path_plan* plan_{};
  bool coin_{};
  int random_stream_{};
  list<body_scope> scopes_;
  node_id random_key_ = no_node;
  text fault_;
};

}  // namespace cella
