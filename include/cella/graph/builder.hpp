// What appends nodes: types are inferred, outer values captured, faults kept as sentences.
#pragma once

#include <array>
#include <cella/graph/error.hpp>
#include <cella/graph/graph.hpp>
#include <initializer_list>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

namespace cella {

using ids = std::vector<node_id>;
using flags = std::vector<char>;

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
  constexpr node_id emit(const op_info& op, std::span<const node_id> in,
                         const attributes& options = {},
                         std::source_location at = std::source_location::current()) {
    if (failed()) return in.empty() ? node_id{0} : in[0];
    bool captures = false;
    for (node_id i : in) captures |= region_of(i) != here();
    ids local_in;
    if (captures) {  // before the pool is touched: capturing appends nodes
      for (node_id i : in) local_in.push_back(local(i));
      in = local_in;
    }
    std::array<tensor_type, 4> few{};
    std::vector<tensor_type> many;
    std::span<tensor_type> types(few.data(), in.size() <= few.size() ? in.size() : 0);
    if (in.size() > few.size()) {
      many.assign(in.size(), tensor_type{});
      types = many;
    }
    for (std::size_t i = 0; i < in.size(); ++i) types[i] = g.type(in[i]);

    node n{};
    n.op = &op;
    n.file = at.file_name();
    n.line = std::int32_t(at.line());
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
    return emit(op, std::span<const node_id>(in.begin(), in.size()), options, at);
  }

  /// Result `k` of a node with several results; the node itself if it has one.
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
    return append(r, in);
  }

  /// The same application on other operands, in the open region; types are inferred again.
  constexpr node_id copy(const graph& from, node_id n, std::span<const node_id> in) {
    const node x = from.nodes[std::size_t(n)];
    if (x.op == &get_info_of) return get(in[0], x.attributes.as<get_attributes>().result);
    const name_ref outer = cell_;
    cell_ = &from == &g ? x.cell : g.intern(from.view(x.cell));
    const node_id r = emit(*x.op, in, x.attributes);
    g.nodes[std::size_t(r)].file = x.file;
    g.nodes[std::size_t(r)].line = x.line;
    cell_ = outer;
    return r;
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
    int index = 0;
    for (const input_info& i : g.inputs) index += i.role == role;
    g.inputs.push_back({role, g.intern(label), index});
    return input(t, 0);
  }

  /// Opens a closed region with the given declared inputs and returns its index.
  constexpr int begin(std::span<const tensor_type> in) {
    const int r = int(g.regions.size());
    g.regions.emplace_back();
    open_.push_back(r);
    for (const tensor_type& t : in) input(t);
    g.regions[std::size_t(r)].declared = std::int32_t(in.size());
    return r;
  }
  /// Closes the open region with these outputs.
  constexpr void end(std::span<const node_id> out) {
    ids l;
    for (node_id i : out) l.push_back(local(i));
    g.regions[std::size_t(here())].outputs = l;
    open_.pop_back();
  }

  /// The id by which the open region may name a value: itself, or the input that stands for an
  /// outer value (made on first use, in every region between).
  constexpr node_id local(node_id id) { return local(id, int(open_.size()) - 1); }

  // ---- cells and their parameters

  /// Declares that the object at `key` is node `id` of the main region.
  constexpr void bind(const void* key, node_id id) { leaves_.push_back({key, id}); }
  /// The node bound to `key`, or no_node.
  constexpr node_id find(const void* key) const {
    for (const leaf& l : leaves_) {
      if (l.key == key) return l.id;
    }
    return no_node;
  }
  /// Declares the path of the cell of a type (by tag, since a cell and its first member share an
  /// address).
  constexpr void declare_cell(const void* key, const void* tag, std::string_view path) {
    cells_.push_back({key, tag, g.intern(path)});
  }
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
  std::vector<update> updates;

  /// The program's random state, i64[2] (seed, step): an input that is made on first use.
  constexpr node_id random_key() {
    if (random_key_ < 0) random_key_ = input({dtype::i64, {2}}, input_role::state, "random");
    return random_key_;
  }
  constexpr bool draws_random_numbers() const { return random_key_ >= 0; }

  /// Numbers the random draws of a program, so that each has a stream of its own.
  constexpr int next_random_stream() { return random_stream_++; }

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

  constexpr node_id append(node n, std::span<const node_id> in) {
    n.first_operand = std::int32_t(g.operand_pool.size());
    n.operand_count = std::int32_t(in.size());
    for (node_id i : in) g.operand_pool.push_back(i);
    const node_id id = place(n, here());
    if (eager) eager->evaluate(*this, id);
    return id;
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
    if (region_of(id) == r) return id;
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

  std::vector<int> open_;
  std::vector<leaf> leaves_;
  std::vector<cell_entry> cells_;
  name_ref cell_{};
  int random_stream_{};
  node_id random_key_ = no_node;
  text fault_;
};

}  // namespace cella
