// What was measured of a mesh, as a small file of JSON. Needs nlohmann/json.
#pragma once

#include <cella/parallel/mesh.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace cella::parallel {

/// A mesh with all that is known of it.
inline std::string topology_to_json(const device_mesh& m);
/// The mesh that `topology_to_json` wrote. Throws `file_error` if the text is none, or has numbers
/// that no machine has.
inline device_mesh topology_from_json(std::string_view json);

/// Writes it to a file: under another name first, so that nobody reads half of it.
inline void save_topology(const device_mesh& m, const std::string& path);
inline device_mesh load_topology(const std::string& path);

/// The mesh `m` with what `known` says of the axes of the same names and of devices: the sizes of
/// axes may be others. Throws `error` if it says nothing of an axis.
inline device_mesh with_topology(device_mesh m, const device_mesh& known) {
  for (int a = 0; a < m.axis_count; ++a) {
    const int k = known.find(m[a].name.view());
    if (k < 0 && m[a].size > 1)
      throw error(text() << "topology: nothing is known of the axis " << m[a].name.view()
                         << " of the mesh " << mesh_text(m) << ", only of " << mesh_text(known)
                         << "; measure a mesh that has it with cella-measure-mesh");
    if (k < 0) continue;
    const int size = m[a].size;
    m.axes[std::size_t(a)] = known[k];
    m.axes[std::size_t(a)].size = size;
  }
  m.each = known.each;
  return m;
}

// ------------------------------------------------------------------------------------------------

namespace detail {

using plan_json = nlohmann::ordered_json;

inline plan_json to_json(const link_speed& s) {
  return {{"bytes_per_second", s.bytes_per_second}, {"latency", s.latency}};
}
inline plan_json to_json(const device_mesh& m) {
  plan_json j;
  j["axes"] = plan_json::array();
  for (int a = 0; a < m.axis_count; ++a) {
    plan_json axis{{"name", m[a].name.view()}, {"size", m[a].size}};
    axis.update(to_json(link_speed{m[a].bytes_per_second, m[a].latency}));
    axis["overlap"] = m[a].overlap;
    for (int k = 0; k < move_kinds; ++k)
      if (const link_speed& s = m[a].measured[std::size_t(k)]; s.bytes_per_second > 0)
        axis["measured"][std::string(move_name(move_kind(k)))] = to_json(s);
    if (m[a].started.bytes_per_second > 0)
      axis["measured"]["started_all_reduce"] = to_json(m[a].started);
    j["axes"].push_back(std::move(axis));
  }
  j["flops_per_second"] = m.each.flops_per_second;
  j["memory_bytes_per_second"] = m.each.memory_bytes_per_second;
  j["memory_bytes"] = m.each.memory_bytes;
  return j;
}

/// A number above `least`, or from it on.
inline double number_of(const plan_json& j, const char* key, bool may_be_zero = false) {
  const double v = j.at(key).get<double>();
  if (!std::isfinite(v) || v < 0 || (v == 0 && !may_be_zero))
    throw file_error(text() << "this mesh has " << v << " as " << key);
  return v;
}
inline link_speed speed_from_json(const plan_json& j) {
  return {number_of(j, "bytes_per_second"), number_of(j, "latency", true)};
}
inline device_mesh mesh_from_json(const plan_json& j) {
  device_mesh m;
  for (const plan_json& a : j.at("axes")) {
    if (m.axis_count == max_mesh_axes) throw file_error("this mesh has more than three axes");
    const auto name = a.at("name").get<std::string>();
    const int size = a.at("size").get<int>();
    if (size < 1 || size > 4096 || name.empty() || name.size() >= axis_name::capacity)
      throw file_error(text() << "this mesh has an axis " << name << " of " << size << " ranks");
    if (m.find(name) >= 0) throw file_error(text() << "this mesh has two axes called " << name);
    mesh_axis& axis = m.axes[std::size_t(m.axis_count++)];
    const link_speed messages = speed_from_json(a);
    axis = {axis_name(std::string_view(name)), size, messages.bytes_per_second, messages.latency};
    axis.overlap = number_of(a, "overlap", true);
    if (axis.overlap > 1)
      throw file_error(text() << "this mesh has " << axis.overlap << " as overlap");
    if (!a.contains("measured")) continue;
    const plan_json& measured = a.at("measured");
    for (int k = 0; k < move_kinds; ++k)
      if (const auto one = measured.find(move_name(move_kind(k))); one != measured.end())
        axis.measured[std::size_t(k)] = speed_from_json(*one);
    if (measured.contains("started_all_reduce"))
      axis.started = speed_from_json(measured.at("started_all_reduce"));
  }
  if (m.axis_count == 0) throw file_error("this mesh has no axes");
  m.each = {number_of(j, "flops_per_second"), number_of(j, "memory_bytes_per_second"),
            number_of(j, "memory_bytes")};
  return m;
}

}  // namespace detail

inline std::string topology_to_json(const device_mesh& m) {
  return detail::to_json(m).dump(1) + "\n";
}
inline device_mesh topology_from_json(std::string_view json) {
  try {
    return detail::mesh_from_json(detail::plan_json::parse(json));
  } catch (const nlohmann::json::exception& e) {
    throw file_error(text() << "this is no topology: " << e.what());
  }
}

inline void save_topology(const device_mesh& m, const std::string& path) {
  const std::string draft = path + ".new";
  std::ofstream out(draft);
  out << topology_to_json(m);
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(draft, path, failed);
  if (!out || failed) throw file_error("cannot write \"" + path + "\"");
}
inline device_mesh load_topology(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream all;
  all << in.rdbuf();
  if (!in) throw file_error("cannot read \"" + path + "\"");
  try {
    return topology_from_json(all.str());
  } catch (const file_error& e) { throw file_error(path + ": " + e.what()); }
}

}  // namespace cella::parallel
