// Plans as JSON: to keep, to compare, and to run another time without a search. Needs
// nlohmann/json.
#pragma once

#include <cella/parallel/divide.hpp>
#include <cella/parallel/plan.hpp>
#include <cella/parallel/topology.hpp>
#include <string>
#include <string_view>

namespace cella::parallel {

/// The mesh with its topology, what is decided of each node of `g`, and the rows of the table.
inline std::string plan_to_json(const graph& g, const parallel_plan& p);

/// The plan of `g` that `plan_to_json` wrote, on the mesh that stands there. Throws `file_error` if
/// the text is no plan, or that of another graph, and `model_error` if a choice is impossible.
inline parallel_plan plan_from_json(const graph& g, std::string_view json);

/// What `divide(g, m, s)` returned, whose plan this text is: the ranks of a job need not search,
/// each for itself, for what one of them has found. Throws as `plan_from_json` does, and
/// `file_error` if the plan is for another mesh or of another mode.
inline divided_graph divided_from_json(const graph& g, const device_mesh& m, const strategy& s,
                                       std::string_view json);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Where the plan of a pipeline has what is the mode of another.
inline constexpr std::string_view pipeline_mode = "pipeline";

/// The first entries of a list of one for each mesh axis.
inline plan_json axes_to_json(const std::array<std::int8_t, max_mesh_axes>& a, int count) {
  plan_json j = plan_json::array();
  for (int i = 0; i < count; ++i) j.push_back(int(a[std::size_t(i)]));
  return j;
}
inline std::array<std::int8_t, max_mesh_axes> axes_from_json(const plan_json& j) {
  std::array<std::int8_t, max_mesh_axes> a{-1, -1, -1};
  if (j.size() > a.size()) throw file_error("this plan has more than three mesh axes");
  for (std::size_t i = 0; i < j.size(); ++i) {
    const int v = j[i].get<int>();
    if (v < partial || v > 2 * max_rank)
      throw file_error(text() << "this plan has " << v << " where a dimension or a loop is meant");
    a[i] = std::int8_t(v);
  }
  return a;
}

/// What is decided of each node.
inline plan_json choices_to_json(const graph& g, const assignment& choices, int axis_count) {
  plan_json j = plan_json::array();
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    plan_json results = plan_json::array();
    for (const layout& l : choices[n].results) results.push_back(axes_to_json(l.axes, axis_count));
    j.push_back({{"op", g.nodes[n].op->name},
                 {"loops", axes_to_json(choices[n].cut.factors, axis_count)},
                 {"results", std::move(results)}});
  }
  return j;
}
/// Whether the graph has the nodes of which the plan tells the choices.
inline bool is_plan_of(const graph& g, const plan_json& nodes) {
  bool same = nodes.size() == g.nodes.size();
  for (std::size_t n = 0; same && n < nodes.size(); ++n)
    same = nodes[n].at("op").get<std::string>() == g.nodes[n].op->name;
  return same;
}
inline assignment choices_from_json(const graph& g, const plan_json& nodes) {
  if (nodes.size() != g.nodes.size())
    throw file_error(text() << "this plan is of another graph: it has " << nodes.size()
                            << " nodes, the graph " << g.nodes.size());
  assignment choices;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto op = nodes[n].at("op").get<std::string>();
    if (op != g.nodes[n].op->name)
      throw file_error(text() << "this plan is of another graph: node " << n << " is " << op
                              << " there, and " << g.nodes[n].op->name << " here");
    node_choice c{{axes_from_json(nodes[n].at("loops"))}, {}};
    for (const auto& l : nodes[n].at("results")) c.results.push_back({axes_from_json(l)});
    if (c.results.size() != std::size_t(result_count(g.nodes[n])))
      throw file_error(text() << "this plan is of another graph: node " << n << ", " << op
                              << ", has " << c.results.size() << " results there");
    choices.push_back(std::move(c));
  }
  return choices;
}

}  // namespace detail

inline std::string plan_to_json(const graph& g, const parallel_plan& p) {
  using detail::plan_json;
  plan_json j;
  j["mesh"] = detail::to_json(p.mesh);
  j["mode"] = mode_name(p.mode);
  j["bucket_bytes"] = p.bucket_bytes;
  j["seconds"] = p.seconds();
  j["bytes_on_device"] = p.bytes_on_device;
  j["cells"] = plan_json::array();
  for (const cell_cost& c : p.costs())
    j["cells"].push_back({{"cell", c.cell},
                          {"bytes_moved", c.moved_bytes},
                          {"move_seconds", c.move_seconds},
                          {"compute_seconds", c.compute_seconds}});
  j["nodes"] = detail::choices_to_json(g, p.choices, p.mesh.axis_count);
  return j.dump(1) + "\n";
}

namespace detail {

/// f(the plan). What is missing there, or of another type, is a `file_error`.
template <class F>
auto with_plan(std::string_view json, F f) {
  try {
    return f(plan_json::parse(json));
  } catch (const nlohmann::json::exception& e) {
    throw file_error(text() << "this is no plan: " << e.what());
  }
}
inline parallel_plan read_plan(const graph& g, const plan_json& j) {
  parallel_plan p;
  p.mesh = mesh_from_json(j.at("mesh"));
  const auto how = j.at("mode").get<std::string>();
  if (how == pipeline_mode)
    throw file_error("this is the plan of a pipeline, which pipeline_from_json reads");
  p.mode = mode_called(how);
  p.bucket_bytes = j.at("bucket_bytes").get<std::int64_t>();
  p.bytes_on_device = j.at("bytes_on_device").get<double>();
  p.choices = choices_from_json(g, j.at("nodes"));
  p.rank = rank_of(p, g, shown_rank(p, g));
  p.fault = p.rank.fault;
  if (!p.fault.empty()) throw model_error(p.fault);
  return p;
}

}  // namespace detail

inline parallel_plan plan_from_json(const graph& g, std::string_view json) {
  return detail::with_plan(json,
                           [&](const detail::plan_json& j) { return detail::read_plan(g, j); });
}

inline divided_graph divided_from_json(const graph& g, const device_mesh& m, const strategy& s,
                                       std::string_view json) {
  return detail::with_plan(json, [&](const detail::plan_json& j) {
    const device_mesh written = detail::mesh_from_json(j.at("mesh"));
    if (mesh_text(written).view() != mesh_text(m).view())
      throw file_error(text() << "this plan is for the mesh " << mesh_text(written) << ", not "
                              << mesh_text(m));
    if (const auto how = j.at("mode").get<std::string>(); how != mode_name(s.mode))
      throw file_error(text() << "this is a plan of mode " << how << ", not " << mode_name(s.mode));
    divided_graph d;
    for (const divided_form& form : forms_for(s)) {
      d = {divisible(g, s, form), {}, form};
      if (detail::is_plan_of(d.graph, j.at("nodes"))) break;
    }
    d.plan = detail::read_plan(d.graph, j);
    return d;
  });
}

}  // namespace cella::parallel
