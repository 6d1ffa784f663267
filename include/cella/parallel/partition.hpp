// From the graph of a program for one device to the graph that each rank of a mesh runs.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/parallel/collective.hpp>
#include <cella/parallel/divided_attention.hpp>
#include <cella/parallel/redistribution.hpp>
#include <cella/parallel/sharding.hpp>
#include <cella/passes/simplify/dce.hpp>

namespace cella::parallel {

/// What is decided of a node: which loops are cut, and how its results lie when they are kept.
/// Sums that the cut leaves open are made in between. An input is cut by how it lies alone.
struct node_choice {
  loop_cut cut;
  list<layout> results{};  ///< one for each result

  friend constexpr bool operator==(const node_choice&, const node_choice&) = default;
};
/// One for each node of a graph, by id. Those of regions, of `get` nodes and of nodes without a use
/// do not count.
using assignment = list<node_choice>;

/// Nothing is cut: every rank computes everything.
constexpr assignment replicate(const graph& g) {
  assignment all;
  for (const node& n : g.nodes)
    all.push_back({{}, list<layout>(std::size_t(detail::result_count(n)))});
  return all;
}

/// The graph of one rank; where all cuts are even, it is the same for all. Its inputs and outputs
/// are those of the whole graph, in their order; of inputs, and of their new values, a rank has its
/// part.
struct partitioned {
  cella::graph graph;
  list<layout> inputs;
  /// Layouts of the outputs: those of the inputs that they replace, and results are whole.
  list<layout> outputs;
  text fault{};
};

/// Divides the main region of `g` among the ranks of a mesh: every node becomes the part that a
/// rank computes, and where the parts of an operand lie otherwise than a node reads them,
/// collective operations bring them there. Regions of control nodes are run by all ranks alike.
/// The fault says which choice is impossible. If `gathers_again`, what is gathered of parameters is
/// kept only until another cell gathers its own: less memory, and the backward pass gathers again.
constexpr partitioned partition(const graph& g, const device_mesh& m, const assignment& choices,
                                int rank = 0, bool gathers_again = false);

// ------------------------------------------------------------------------------------------------

namespace detail {

class partitioner {
 public:
  constexpr partitioner(const graph& g, const device_mesh& m, const assignment& choices, int rank,
                        bool gathers_again)
      : g_(g),
        m_(m),
        choices_(choices),
        rank_(rank),
        gathers_again_(gathers_again),
        importer_(b_, g),
        attention_(b_, g, m, rank),
        values_(g.nodes.size()) {}

  constexpr partitioned run() {
    partitioned p;
    const region& main = g_.regions[0];
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const node_id n = g_.input(int(i));
      const layout l = choices_[std::size_t(n)].results[0];
      const tensor_type t = g_.type(n);
      if (!can_lie(t.shape, l, m_) || l.is_partial()) {
        p.fault = text() << "the input " << g_.view(g_.inputs[i].name) << " " << t
                         << " cannot lie as " << layout_text(t.shape, l, m_) << " on the mesh "
                         << mesh_text(m_) << "; each rank needs a part";
        return p;
      }
      p.inputs.push_back(l);
      const node_id here =
          b_.input(part_of(t, l, m_, rank_), g_.inputs[i].role, g_.view(g_.inputs[i].name));
      values_[std::size_t(n)].push_back({l, here});
    }
    for (node_id n : main.nodes) {
      if (g_.nodes[std::size_t(n)].op == &input_info_of) continue;
      p.fault = add(n);
      if (!p.fault.empty()) return p;
    }
    ids outputs;
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const output_info& o = g_.outputs[k];
      const layout l = o.updates >= 0 ? p.inputs[std::size_t(o.updates)] : layout{};
      p.outputs.push_back(l);
      outputs.push_back(value(main.outputs[k], l));
      b_.g.outputs.push_back({o.updates, b_.g.intern(g_.view(o.name))});
    }
    b_.end(outputs);
    p.fault = b_.fault();
    if (has_attention_)
      p.graph = dce(std::move(b_.g));
    else
      p.graph = std::move(b_.g);
    return p;
  }

 private:
  struct placed {
    layout at;
    node_id id{};
  };

  constexpr text add(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    if (x.op == &get_info_of) return {};  // made with the node that it reads
    if (is<constant_op>(x)) return {};    // made where it is read, in whatever layout
    const node_choice& c = choices_[std::size_t(n)];
    const node_part part = cut_node(g_, n, c.cut, m_, rank_);
    if (!part.possible) return refuse(n, c);
    const auto in = g_.operands(n);
    reader_ = x.cell;
    ids operands;
    for (std::size_t k = 0; k < in.size(); ++k) operands.push_back(value(in[k], part.operands[k]));
    enter_cell(x);
    node_id made = no_node;
    ids results;
    if (is_attention(x)) {
      results = attention_.add(n, c.cut, operands);
      has_attention_ = true;
    } else if (c.cut.is_whole()) {
      made = importer_.copy(n, operands);
    } else {
      node local = x;
      local.attributes = part.options;
      made = cella::detail::emit_copy(b_, g_, local, operands, cell_here_, x.regions);
    }
    for (int k = 0; k < result_count(x); ++k) {
      const node_id result = !results.empty()     ? results[std::size_t(k)]
                             : x.result_count > 0 ? b_.get(made, k)
                                                  : made;
      const layout wanted = c.results[std::size_t(k)];
      const tensor_type whole = result_type(g_, n, k);
      if (!can_lie(whole.shape, wanted, m_) || wanted.is_partial()) return refuse(n, c);
      placed& p = result_of(n, k).emplace_back(placed{part.results[std::size_t(k)], result});
      p = {wanted, move(p, whole, wanted)};
    }
    return {};
  }
  /// Where the values of a result are kept: with the node, or with the `get` node that reads it.
  constexpr list<placed>& result_of(node_id n, int k) {
    if (g_.nodes[std::size_t(n)].result_count == 0) return values_[std::size_t(n)];
    for (std::size_t i = 0; i < more_.size(); ++i)
      if (more_[i].n == n && more_[i].k == k) return more_[i].values;
    return more_.emplace_back(several{n, k, {}}).values;
  }
  /// An old node's value in this layout.
  constexpr node_id value(node_id n, const layout& wanted) {
    const node& x = g_.nodes[std::size_t(n)];
    enter_cell(x);
    list<placed>& known =
        x.op == &get_info_of ? result_of(g_.operand(n, 0), x.attributes.as<get_attributes>().result)
                             : values_[std::size_t(n)];
    for (const placed& p : known)
      if (p.at == wanted) return p.id;
    if (is<constant_op>(x)) {
      const attributes part =
          constant_op::part_options(x.attributes, part_of(x.type.shape, wanted, m_, rank_));
      known.push_back({wanted, b_.emit(bound<constant_op>(), span<const node_id>{}, part)});
      return known.back().id;
    }
    // From whichever of its layouts is nearest.
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const double t = redistribution_cost(x.type, known[i].at, wanted, m_).seconds;
      if (i > 0 && t >= least) continue;
      best = i;
      least = t;
    }
    if (gathers_again_ && x.op == &input_info_of) forget_others();
    const node_id made = move(known[best], x.type, wanted);
    known.push_back({wanted, made});
    if (gathers_again_ && x.op == &input_info_of) gathered_.push_back({n, reader_});
    return made;
  }
  /// Inputs that other cells than the reader have gathered are not there any more.
  constexpr void forget_others() {
    list<gathered> kept;
    for (const gathered& o : gathered_) {
      if (o.cell.first == reader_.first && o.cell.size == reader_.size)
        kept.push_back(o);
      else
        values_[std::size_t(o.n)].resize(1);
    }
    gathered_ = kept;
  }
  /// Appends the moves from one layout of a tensor to another.
  constexpr node_id move(const placed& from, const tensor_type& whole, const layout& to) {
    node_id n = from.id;
    layout l = from.at;
    for (const layout_move& s : cheapest_chain(whole, from.at, to, m_).moves) {
      l[s.mesh_axis] = s.to;
      const int size = m_[s.mesh_axis].size;
      if (size == 1) continue;
      const bool joins = s.kind == move_kind::all_gather || s.kind == move_kind::all_to_all;
      const std::int32_t dimension = joins ? s.from : std::max<int>(s.to, 0);
      const std::int32_t other = s.kind == move_kind::all_to_all ? s.to : dimension;
      const shape made = part_of(whole.shape, l, m_, rank_);
      collective_options o{s.mesh_axis, size, dimension, other};
      if (made.rank > 0) {
        o.extent = made[dimension];
        o.other_extent = made[other];
      }
      n = b_.emit(*operation_of(s.kind), {n}, o);
    }
    return n;
  }
  static constexpr const op_info* operation_of(move_kind k) {
    switch (k) {
      case move_kind::own_part:
        return &bound<own_part_op>();
      case move_kind::all_gather:
        return &bound<all_gather_op>();
      case move_kind::all_to_all:
        return &bound<all_to_all_op>();
      case move_kind::reduce_scatter:
        return &bound<reduce_scatter_op>();
      default:
        return &bound<all_reduce_op>();
    }
  }
  /// What follows belongs to the cell of an old node.
  constexpr void enter_cell(const node& x) {
    if (x.cell.first != cell_.first || x.cell.size != cell_.size) {
      cell_ = x.cell;
      cell_here_ = b_.g.intern(g_.view(x.cell));
    }
    b_.current_cell(cell_here_);
  }
  constexpr text refuse(node_id n, const node_choice& c) const {
    const node& x = g_.nodes[std::size_t(n)];
    text t;
    t << x.op->name;
    if (x.cell.size) t << " of " << g_.view(x.cell);
    t << ": this part of the mesh " << mesh_text(m_) << " is impossible: cuts of loops {";
    for (int a = 0; a < m_.axis_count; ++a) t << (a ? "," : "") << int(c.cut[a]);
    t << "}, and results";
    for (int k = 0; k < result_count(x); ++k)
      t << " " << layout_text(result_type(g_, n, k).shape, c.results[std::size_t(k)], m_);
    return t << "; see possible_cuts";
  }

  struct gathered {
    node_id n{};
    name_ref cell;  ///< of whom it was gathered for
  };
  struct several {
    node_id n{};
    int k{};
    list<placed> values;
  };

  const graph& g_;
  const device_mesh& m_;
  const assignment& choices_;
  const int rank_;
  const bool gathers_again_;
  builder b_;
  graph_importer importer_;
  attention_divider attention_;
  bool has_attention_ = false;  ///< of which not all results are read
  list<list<placed>> values_;   ///< what is there of each old node
  list<several> more_;          ///< of results of nodes that have several
  list<gathered> gathered_;     ///< inputs that there are in other layouts than their own
  name_ref reader_{-1, 0};
  name_ref cell_{-1, 0};
  name_ref cell_here_{};
};

}  // namespace detail

constexpr partitioned partition(const graph& g, const device_mesh& m, const assignment& choices,
                                int rank, bool gathers_again) {
  return detail::partitioner(g, m, choices, rank, gathers_again).run();
}

}  // namespace cella::parallel
