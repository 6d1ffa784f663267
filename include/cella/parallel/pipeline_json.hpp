// Pipelines as JSON: to keep, to compare, and to run another time without a search. Needs
// nlohmann/json.
#pragma once

#include <cella/parallel/make_pipeline.hpp>
#include <cella/parallel/plan_json.hpp>
#include <cella/parallel/plan_text.hpp>

namespace cella::parallel {

/// The mesh with its topology, how the step is divided into microbatches and stages, what is
/// decided of each node of `g`, and the rows of the table.
inline std::string plan_to_json(const graph& g, const pipeline_plan& p);

/// The pipeline of `g` that `plan_to_json` wrote, on the mesh that stands there: its cut is that of
/// the file, its costs are counted anew. Throws `file_error` if the text is no plan, or that of
/// another graph, and `model_error` if what stands there cannot be done.
inline pipeline_plan pipeline_from_json(const graph& g, std::string_view json);

// ------------------------------------------------------------------------------------------------

inline std::string plan_to_json(const graph& g, const pipeline_plan& p) {
  using detail::plan_json;
  plan_json j;
  j["mesh"] = detail::to_json(p.mesh);
  j["mode"] = detail::pipeline_mode;
  j["axis"] = p.mesh[p.axis].name.view();
  j["schedule"] = schedule_name(p.schedule);
  j["chunks"] = p.chunks;
  j["microbatches"] = p.microbatches();
  j["seconds"] = p.seconds;
  j["bubble"] = p.bubble;
  j["bytes_on_device"] = p.bytes_on_device();
  j["stages"] = plan_json::array();
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const pipeline_stage& one = p.stages[s];
    j["stages"].push_back({{"operations", p.cut[s]},
                           {"cells", detail::stage_cells(p, int(s))},
                           {"forward_seconds", one.forward_seconds},
                           {"backward_seconds", one.backward_seconds},
                           {"weights_seconds", one.weights_seconds},
                           {"update_seconds", one.update_seconds},
                           {"bytes_received", one.forward_bytes + one.backward_bytes},
                           {"microbatches_kept", one.kept},
                           {"bytes_kept", one.most_kept_bytes},
                           {"parameter_bytes", one.parameter_bytes}});
  }
  j["nodes"] = detail::choices_to_json(g, p.choices, p.mesh.axis_count);
  return j.dump(1) + "\n";
}

inline pipeline_plan pipeline_from_json(const graph& g, std::string_view json) {
  device_mesh m;
  std::string axis;
  pipeline_options o;
  detail::pipeline_decisions decided;
  detail::with_plan(json, [&](const detail::plan_json& j) {
    m = detail::mesh_from_json(j.at("mesh"));
    if (const auto how = j.at("mode").get<std::string>(); how != detail::pipeline_mode)
      throw file_error(text() << "this is a plan of mode " << how
                              << ", and no pipeline; plan_from_json reads it");
    axis = j.at("axis").get<std::string>();
    if (m.find(axis) < 0)
      throw file_error(text() << "this plan has stages along an axis " << axis
                              << ", which its mesh " << mesh_text(m) << " does not have");
    o.axis = axis;
    o.schedule = schedule_called(j.at("schedule").get<std::string>());
    const auto count = [&](const detail::plan_json& from, const char* what) {
      const auto n = from.at(what).get<std::int64_t>();
      if (n < 1 || n > 65536) throw file_error(text() << "this plan has " << n << " as " << what);
      return int(n);
    };
    o.chunks = count(j, "chunks");
    o.microbatches = count(j, "microbatches");
    for (const auto& s : j.at("stages")) decided.cut.push_back(count(s, "operations"));
    decided.choices = detail::choices_from_json(g, j.at("nodes"));
  });
  return detail::pipeline_maker(g, m, o, &decided).run();
}

}  // namespace cella::parallel
