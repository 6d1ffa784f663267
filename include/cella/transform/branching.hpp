// A native `if` on a tensor value becomes a `cond` node: the function that is traced runs once per
// path. What precedes a decision stands in the graph once; what follows it becomes a region per
// way. Every function that enters tracing goes through here, so users write no wrapper.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/transform/region.hpp>
#include <cella/transform/values.hpp>

namespace cella::detail {

/// New values of these inputs of the main region.
constexpr void assign_all(builder& b, const list<std::int32_t>& inputs, const ids& values) {
  for (std::size_t k = 0; k < inputs.size(); ++k)
    b.bodies.updates.push_back({inputs[k], values[k]});
}

/// Two closed regions, of which one will run, yield behind their results the new values of these
/// inputs of the main region: makes both yield those of either, and returns which. A state that
/// only one side assigns keeps its value on the other.
CELLA_ONCE constexpr list<std::int32_t> join_updates(builder& b, int r, list<std::int32_t> in_r,
                                                     int q, const list<std::int32_t>& in_q) {
  auto index_of = [](const list<std::int32_t>& all, std::int32_t x) {
    std::size_t k = 0;
    while (k < all.size() && all[k] != x) ++k;
    return k;
  };
  const ids outputs = outputs_of(b, q);
  const std::size_t results = outputs.size() - in_q.size();
  for (std::int32_t u : in_q) {
    if (index_of(in_r, u) < in_r.size()) continue;
    b.add_output(r, b.bodies.state_value(b.g.input(u)));
    in_r.push_back(u);
  }
  b.g.regions[std::size_t(q)].outputs = cut(outputs, 0, int(results));
  for (std::int32_t u : in_r) {
    const std::size_t k = index_of(in_q, u);
    if (k < in_q.size())
      b.g.regions[std::size_t(q)].outputs.push_back(outputs[results + k]);
    else
      b.add_output(q, b.bodies.state_value(b.g.input(u)));
  }
  return in_r;
}

/// A function that emits nodes and whose results are the values that it returns. Whatever it is,
/// its paths are explored by the same code.
struct path_function {
  constexpr virtual ids operator()() = 0;

 protected:
  constexpr ~path_function() = default;
};

/// Runs a function for every path. Each run emits anew what precedes its decisions; nodes of a
/// later run are recognized as those of the first by their order, and taken back.
class path_explorer {
 public:
  constexpr path_explorer(builder& b, path_function& run)
      : b_(b),
        run_(run),
        base_(b.open.depth()),
        updates_(b.bodies.updates.size()),
        streams_(b.bodies.random_streams()) {}

  /// The results, in the region that is open.
  CELLA_ONCE constexpr ids explore() {
    const outcome o = explore({});
    b_.bodies.random_streams(most_streams_);
    const int results = int(o.values.size() - o.updated.size());
    assign_all(b_, o.updated, tail(o.values, results));
    return cut(o.values, 0, results);
  }

 private:
  /// Results, and behind them the new values of these inputs of the main region.
  struct outcome {
    ids values;
    list<std::int32_t> updated;
    list<path_plan::decision> made;
  };

  /// Runs the paths that begin as planned. Afterwards the regions behind the planned decisions are
  /// open, and the results are values of the innermost.
  constexpr outcome explore(const flags& planned) {
    path_plan plan{planned, {}};
    const node_id start = node_id(b_.g.nodes.size());
    outcome o = run_once(plan);
    const auto& made = o.made = plan.made;
    for (std::size_t i = made.size(); i-- > planned.size() && !b_.failed();) {
      b_.end(o.values);
      flags other;
      for (std::size_t k = 0; k < i; ++k) other.push_back(made[k].taken);
      other.push_back(!made[i].taken);
      list<int> chain = b_.open.set_aside(base_);
      const node_id again = node_id(b_.g.nodes.size());
      const int region = made[i].region;
      place_ = b_.place_of(made[i].condition);
      outcome p = explore(other);
      if (b_.failed()) break;
      const int otherwise = b_.here();
      b_.end(p.values);
      const list<int> repeated = b_.open.set_aside(base_);
      ids captured;
      for (node_id n : b_.g.regions[std::size_t(otherwise)].captured)
        captured.push_back(first_run_of(n, p.made, made, start, again));
      for (int r : repeated) b_.discard(r);
      take_back(again);
      b_.open.open_again(chain);
      for (node_id& n : captured) n = b_.local(n);
      b_.g.regions[std::size_t(otherwise)].captured = captured;
      o.updated = join_updates(b_, region, o.updated, otherwise, p.updated);
      o.values = emit_cond(made[i], region, otherwise);
    }
    if (b_.failed()) b_.open.set_aside(base_);
    return o;
  }

  constexpr outcome run_once(path_plan& plan) {
    outcome o;
    if (++paths_ > path_plan::max_paths) {
      b_.fail(text(place_) << "if: more than " << path_plan::max_paths
                           << " paths lead through a function that decides on tensor values; use "
                              "while_loop() for a loop, cond() for a branch");
      return o;
    }
    b_.bodies.random_streams(streams_);
    b_.shared.forget();  // or a later run would make fewer nodes than the first
    path_plan* const outer = b_.follow(&plan);
    o.values = run_();
    b_.follow(outer);
    b_.shared.forget();
    if (b_.bodies.random_streams() > most_streams_) most_streams_ = b_.bodies.random_streams();
    for (const input_update& u : b_.bodies.take_updates(updates_)) {
      o.updated.push_back(u.input);
      o.values.push_back(u.value);
    }
    return o;
  }

  /// Takes the nodes that were appended since `first`, other than inputs, off the open region.
  constexpr void take_back(node_id first) {
    ids order;
    for (node_id n : b_.g.regions[std::size_t(b_.here())].nodes) {
      if (n < first || b_.g.nodes[std::size_t(n)].op == &input_info_of) order.push_back(n);
    }
    b_.g.reorder(b_.here(), order);
  }

  /// What a value of a repeated run was in the first one. Regions of both runs correspond; so do
  /// their nodes in the order in which they were made, inputs aside: those name outer values.
  constexpr node_id first_run_of(node_id n, const list<path_plan::decision>& repeated,
                                 const list<path_plan::decision>& made, node_id start,
                                 node_id again) {
    int r = b_.here();
    int first_r = r;
    std::size_t next = 0;  // the decision that ends the region of n
    for (std::size_t level = repeated.size(); level-- > 0;) {
      if (b_.region_of(n) != repeated[level].region) continue;
      if (b_.g.nodes[std::size_t(n)].op != &input_info_of) {
        r = repeated[level].region;
        first_r = made[level].region;
        next = level + 1;
        break;
      }
      const region& x = b_.g.regions[std::size_t(repeated[level].region)];
      std::size_t k = 0;
      while (x.inputs[k] != n) ++k;
      n = x.captured[k];
    }
    if (n < again || b_.g.nodes[std::size_t(n)].op == &input_info_of) return n;
    if (n >= repeated[next].first_behind) {
      b_.fail(b_.place_of(n) << b_.g.nodes[std::size_t(n)].op->name
                             << ": its derivative is taken behind a native if that follows it; "
                                "use grad() of a function that holds both");
      return n;
    }
    return nth_made(first_r, start, count_made(r, again, n));
  }
  /// How many nodes of region `r` were made from `first` to before `last`.
  constexpr int count_made(int r, node_id first, node_id last) const {
    int count = 0;
    for (node_id n = first; n < last; ++n) count += is_made_in(r, n);
    return count;
  }
  constexpr node_id nth_made(int r, node_id first, int count) const {
    node_id n = first;
    while (!is_made_in(r, n) || count-- > 0) ++n;
    return n;
  }
  constexpr bool is_made_in(int r, node_id n) const {
    return b_.region_of(n) == r && b_.g.nodes[std::size_t(n)].op != &input_info_of;
  }

  constexpr ids emit_cond(const path_plan::decision& d, int region, int other) {
    const type_list types = types_of(b_, outputs_of(b_, region));
    const type_list others = types_of(b_, outputs_of(b_, other));
    for (std::size_t k = 0; k < types.size() || k < others.size(); ++k) {
      if (k < types.size() && k < others.size() && types[k] == others[k]) continue;
      text sentence = b_.place_of(d.condition) << "if: the function returns ";
      if (types.size() != others.size())
        sentence << types.size() << " values on one path and " << others.size() << " on another";
      else
        sentence << types[k] << " on one path and " << others[k] << " on another";
      b_.fail(sentence << "; all paths must return the same types");
      return ids(types.size(), d.condition);
    }
    ids in{reshape(var{&b_, d.condition}, {}).id};
    if (!d.taken) std::swap(region, other);
    const ids captured = b_.unify(region, other);
    in.insert(in.end(), captured.begin(), captured.end());
    const node_id n = b_.emit_control(bound<cond_op>(), in, types, {region, other});
    b_.g.nodes[std::size_t(n)].file = b_.g.nodes[std::size_t(d.condition)].file;
    b_.g.nodes[std::size_t(n)].line = b_.g.nodes[std::size_t(d.condition)].line;
    return get_all(b_, n, 0, int(types.size()));
  }

  builder& b_;
  path_function& run_;
  std::size_t base_;  ///< open regions below those of decisions
  std::size_t updates_;
  int streams_;
  int most_streams_{};
  int paths_{};
  text place_;  ///< of the decision whose other way is explored
};

/// A function whose result has vars in it.
template <class Run>
struct valued_path_function final : path_function {
  Run& run;
  std::decay_t<std::invoke_result_t<Run&>> value{};

  constexpr explicit valued_path_function(Run& r) : run(r) {}
  constexpr ids operator()() override {
    value = run();
    return flatten_value(value);
  }
};

/// The value that `run()` returns, on whichever path: its vars are values of the open region.
template <class Run>
constexpr auto run_paths(builder& b, Run run) {
  if (b.evaluates()) return run();
  valued_path_function<Run> function(run);
  auto& value = function.value;
  const ids found = path_explorer(b, function).explore();
  if (b.failed()) return std::move(value);
  return rebuild_value(value, b, found);
}

/// Traces `run()` into a region with declared inputs of these types, where it finds them as
/// own_inputs(b). Returns what it returned. Behind its results the region yields the new values of
/// the states in `assigned` (inputs of the main region).
template <class Run>
constexpr auto trace_region(builder& b, const type_list& inputs, int& region,
                            list<std::int32_t>& assigned, Run run) {
  region = b.begin(inputs);
  const std::size_t first = b.bodies.updates.size();
  auto value = run_paths(b, run);
  ids out = flatten_value(value);
  for (const input_update& u : b.bodies.take_updates(first)) {
    assigned.push_back(u.input);
    out.push_back(u.value);
  }
  b.end(out);
  return value;
}
/// The same of a function that assigns none.
template <class Run>
constexpr auto trace_region(builder& b, const type_list& inputs, int& region, Run run) {
  list<std::int32_t> none;
  return trace_region(b, inputs, region, none, run);
}

}  // namespace cella::detail
