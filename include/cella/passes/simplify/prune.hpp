// Dead code across regions: unused results, carries, operands and captured values of control nodes
// go, at every depth. Derivatives leave many of them.
#pragma once

#include <cella/graph/freeze.hpp>
#include <cella/ops/control.hpp>

namespace cella {

namespace detail {

/// Rebuilds a graph from what its outputs need.
class pruner {
 public:
  explicit constexpr pruner(const graph& g) : from_(g) {
    to_.characters = g.characters;
    to_.inputs = g.inputs;
    to_.outputs = g.outputs;
    to_.constants = g.constants;
  }

  constexpr graph run() {
    const region& main = from_.regions[0];
    build(0, flags(main.outputs.size(), 1), flags(main.inputs.size(), 1));
    return std::move(to_);
  }

 private:
  /// What the wanted outputs of a region need, by position; and which results of its control nodes.
  struct liveness {
    flags nodes;
    flags inputs;
    list<flags> results;
  };
  struct live_region {
    int region;
    flags wanted;
    liveness live;
  };
  struct built_region {
    int region;
    flags wanted;
    flags kept;
    int made;
  };

  constexpr std::size_t place(node_id n) const {
    return std::size_t(from_.nodes[std::size_t(n)].position);
  }
  static constexpr bool loses_results(const node& n) {
    return is<cond_op>(n) || is<scan_op>(n) || is<while_op>(n);
  }

  // ---- what is needed

  constexpr liveness live_in(int r, const flags& wanted) {
    for (const live_region& l : live_) {
      if (l.region == r && l.wanted == wanted) return l.live;
    }
    const region& x = from_.regions[std::size_t(r)];
    liveness l{flags(x.nodes.size(), 0), {}, list<flags>(x.nodes.size(), flags())};
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k]) l.nodes[place(x.outputs[k])] = 1;
    }
    for (std::size_t i = x.nodes.size(); i-- > 0;) {
      if (!l.nodes[i]) continue;
      const node& n = from_.nodes[std::size_t(x.nodes[i])];
      const auto in = from_.operands(x.nodes[i]);
      if (n.op == &get_info_of) {
        const node& owner = from_.nodes[std::size_t(in[0])];
        flags& results = l.results[place(in[0])];
        if (results.empty()) results.assign(std::size_t(owner.result_count), 0);
        results[std::size_t(n.attributes.as<get_attributes>().result)] = 1;
      }
      if (!loses_results(n)) {
        for (node_id o : in) l.nodes[place(o)] = 1;
        continue;
      }
      const flags needed = needed_operands(n, l.results[i]);
      for (std::size_t k = 0; k < in.size(); ++k) {
        if (needed[k]) l.nodes[place(in[k])] = 1;
      }
    }
    for (node_id n : x.inputs) l.inputs.push_back(l.nodes[place(n)]);
    live_.push_back({r, wanted, l});
    return l;
  }

  /// The operands that a control node needs for the results in `wanted`, to which a loop adds the
  /// carries that it needs itself.
  constexpr flags needed_operands(const node& n, flags& wanted) {
    if (is<cond_op>(n)) {
      const flags yes = live_in(n.regions[0], wanted).inputs;
      const flags no = live_in(n.regions[1], wanted).inputs;
      flags needed(1, 1);
      for (std::size_t k = 0; k < yes.size(); ++k) needed.push_back(char(yes[k] | no[k]));
      return needed;
    }
    const bool is_scan = is<scan_op>(n);
    const std::size_t carries = std::size_t(is_scan ? n.attributes.as<scan_options>().carries
                                                    : n.attributes.as<while_options>().carries);
    flags needed(std::size_t(n.operand_count), 0);
    if (!is_scan) needed = live_in(n.regions[0], flags(1, 1)).inputs;
    for (bool again = true; again;) {
      again = false;
      const flags inputs = live_in(n.regions[is_scan ? 0 : 1], wanted).inputs;
      for (std::size_t k = 0; k < needed.size(); ++k) {
        if (inputs[k] || (k < carries && wanted[k])) needed[k] = 1;
        if (k >= carries || !needed[k] || wanted[k]) continue;
        wanted[k] = 1;
        again = true;
      }
    }
    return needed;
  }

  // ---- what is made

  /// A region that yields the wanted outputs from the inputs that are kept.
  constexpr int build(int r, const flags& wanted, const flags& kept) {
    for (const built_region& b : built_) {
      if (b.region == r && b.wanted == wanted && b.kept == kept) return b.made;
    }
    const int q = int(to_.regions.size());
    to_.regions.emplace_back();
    built_.push_back({r, wanted, kept, q});  // before it is filled: it may call itself
    const region& x = from_.regions[std::size_t(r)];
    ids map(x.nodes.size(), no_node);
    for (std::size_t k = 0; k < x.inputs.size(); ++k) {
      if (!kept[k]) continue;
      const node_id n = append(from_.nodes[std::size_t(x.inputs[k])], {}, q);
      map[place(x.inputs[k])] = n;
      to_.regions[std::size_t(q)].inputs.push_back(n);
    }
    to_.regions[std::size_t(q)].declared = std::int32_t(to_.regions[std::size_t(q)].inputs.size());
    const ids outputs = rebuild(r, wanted, map, q);
    to_.regions[std::size_t(q)].outputs = outputs;
    return q;
  }

  /// Appends the live nodes of region `r` to the new region `q`; `map` has its inputs.
  constexpr ids rebuild(int r, const flags& wanted, ids& map, int q) {
    const region& x = from_.regions[std::size_t(r)];
    const liveness live = live_in(r, wanted);
    list<ids> several(x.nodes.size(), ids());  // results of what is not one node any more
    for (std::size_t i = 0; i < x.nodes.size(); ++i) {
      node n = from_.nodes[std::size_t(x.nodes[i])];
      if (!live.nodes[i] || n.op == &input_info_of) continue;
      const auto operands = from_.operands(x.nodes[i]);
      if (n.op == &get_info_of) {
        const std::size_t owner = place(operands[0]);
        const auto k = std::size_t(n.attributes.as<get_attributes>().result);
        if (!several[owner].empty()) {
          map[i] = several[owner][k];
          continue;
        }
        n.attributes = get_attributes{kept_before(operands[0], live.results[owner], k)};
      }
      if (is<custom_op>(n)) {
        several[i] = inline_call(n, operands, map, q);
        continue;
      }
      flags needed(operands.size(), 1);
      list<tensor_type> results;
      flags wanted_results = live.results[i];
      if (loses_results(n)) needed = shrink(n, wanted_results);
      for (int k = 0; k < n.result_count; ++k) {
        if (!loses_results(n) || wanted_results[std::size_t(k)])
          results.push_back(from_.result_type(x.nodes[i], k));
      }
      if (is<call_op>(n)) n.regions[0] = build_whole(n.regions[0]);
      ids in;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (needed[k]) in.push_back(map[place(operands[k])]);
      }
      if (n.result_count) to_.set_results(n, results);
      map[i] = append(n, in, q);
    }
    ids out;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k]) out.push_back(map[place(x.outputs[k])]);
    }
    return out;
  }

  /// Gives a control node the regions and options for the results in `wanted`; returns which
  /// operands it keeps.
  constexpr flags shrink(node& n, flags& wanted) {
    const flags needed = needed_operands(n, wanted);
    auto count = [&](int first, int last) {
      std::int32_t c = 0;
      for (int k = first; k < last; ++k) c += needed[std::size_t(k)];
      return c;
    };
    if (is<cond_op>(n)) {
      const flags arguments(needed.begin() + 1, needed.end());
      for (std::int32_t& r : n.regions) r = build(r, wanted, arguments);
    } else if (is<scan_op>(n)) {
      auto o = n.attributes.as<scan_options>();
      n.regions[0] = build(n.regions[0], wanted, needed);
      o.xs = count(o.carries, o.carries + o.xs);
      o.carries = count(0, o.carries);
      n.attributes = o;
    } else {
      auto o = n.attributes.as<while_options>();
      n.regions = {build(n.regions[0], flags(1, 1), needed), build(n.regions[1], wanted, needed)};
      o.carries = count(0, o.carries);
      n.attributes = o;
    }
    return needed;
  }
  /// A function keeps its signature: it may be called from elsewhere.
  constexpr int build_whole(int r) {
    const region& x = from_.regions[std::size_t(r)];
    return build(r, flags(x.outputs.size(), 1), flags(x.inputs.size(), 1));
  }
  /// A function with a derivative of its own is an ordinary one once derivatives are taken.
  constexpr ids inline_call(const node& n, span<const node_id> operands, const ids& outer, int q) {
    const region& x = from_.regions[std::size_t(n.regions[0])];
    ids map(x.nodes.size(), no_node);
    for (std::size_t k = 0; k < operands.size(); ++k)
      map[place(x.inputs[k])] = outer[place(operands[k])];
    return rebuild(n.regions[0], flags(x.outputs.size(), 1), map, q);
  }
  /// Where result `k` of a node is when those that nobody wants are gone.
  constexpr std::int32_t kept_before(node_id owner, flags wanted, std::size_t k) {
    const node& n = from_.nodes[std::size_t(owner)];
    if (!loses_results(n)) return std::int32_t(k);
    needed_operands(n, wanted);
    std::int32_t before = 0;
    for (std::size_t i = 0; i < k; ++i) before += wanted[i];
    return before;
  }

  constexpr node_id append(node n, const ids& in, int q) {
    to_.set_operands(n, in);
    return to_.append(n, q);
  }

  const graph& from_;
  graph to_;
  list<live_region> live_;
  list<built_region> built_;
};

}  // namespace detail

/// The graph without what its outputs do not need, inside of regions too. Inputs of the main region
/// and signatures of called functions stay.
constexpr graph prune(graph g) {
  if (g.regions.size() == 1) return g;
  return detail::pruner(g).run();
}

}  // namespace cella
