// What was measured of a mesh, as a small file: JSON, or a header for the compiler. Needs
// nlohmann/json.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/parallel/mesh.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace cella::parallel {

/// A mesh with all that is known of it.
inline std::string topology_to_json(const device_mesh& m);
/// The mesh that `topology_to_json` wrote. Throws `file_error` if the text is none, or has numbers
/// that no machine has.
inline device_mesh topology_from_json(std::string_view json);

/// The same as a header that the compiler reads: a struct `name` whose `value` is the mesh, for
/// `measured_mesh`.
inline std::string topology_to_header(const device_mesh& m, std::string_view name);
/// The struct in the header of this path: `topology_of_machine` in `machine.hpp`.
inline std::string topology_name(const std::string& path);

/// Writes it to a file, whole or not at all: where `path` ends in `.hpp` a header, elsewhere JSON.
/// Throws `file_error`.
inline void save_topology(const device_mesh& m, const std::string& path);
/// Reads the JSON. Throws `file_error`.
inline device_mesh load_topology(const std::string& path);

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

/// A number of C++ in its shortest form that is read as the same.
inline std::string literal(double v) {
  char s[32];
  const std::string digits(s, std::to_chars(s, s + sizeof s, v).ptr);
  return digits.find_first_of(".e") == digits.npos ? digits + ".0" : digits;
}
inline std::string literal(const link_speed& s) {
  return "{" + literal(s.bytes_per_second) + ", " + literal(s.latency) + "}";
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

inline std::string topology_to_header(const device_mesh& m, std::string_view name) {
  using detail::literal;
  std::ostringstream out;
  out << "// What cella-measure-mesh measured of " << mesh_text(m).view()
      << ": bytes per second and seconds.\n#pragma once\n\n#include <cella/parallel/mesh.hpp>\n\n"
      << "struct " << name << " {\n  static constexpr cella::parallel::device_mesh value = [] {\n"
      << "    using namespace cella::parallel;\n    device_mesh m;\n"
      << "    m.axis_count = " << m.axis_count << ";\n";
  for (int a = 0; a < m.axis_count; ++a) {
    const std::string axis = "    m.axes[" + std::to_string(a) + "]";
    out << axis << " = {.name = " << std::quoted(std::string(m[a].name.view()))
        << ", .size = " << m[a].size << "};\n"
        << axis << ".bytes_per_second = " << literal(m[a].bytes_per_second) << ";\n"
        << axis << ".latency = " << literal(m[a].latency) << ";\n"
        << axis << ".overlap = " << literal(m[a].overlap) << ";\n";
    for (int k = 0; k < move_kinds; ++k)
      if (const link_speed& s = m[a].measured[std::size_t(k)]; s.bytes_per_second > 0)
        out << axis << ".measured[std::size_t(move_kind::" << move_name(move_kind(k))
            << ")] = " << literal(s) << ";\n";
    if (m[a].started.bytes_per_second > 0)
      out << axis << ".started = " << literal(m[a].started) << ";\n";
  }
  out << "    m.each.flops_per_second = " << literal(m.each.flops_per_second) << ";\n"
      << "    m.each.memory_bytes_per_second = " << literal(m.each.memory_bytes_per_second) << ";\n"
      << "    m.each.memory_bytes = " << literal(m.each.memory_bytes)
      << ";\n    return m;\n  }();\n};\n";
  return out.str();
}
inline std::string topology_name(const std::string& path) {
  std::string name = "topology_of";
  bool is_gap = true;
  for (char c : std::filesystem::path(path).stem().string()) {
    const bool is_part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_part && is_gap) name += '_';
    if (is_part) name += c;
    is_gap = !is_part;
  }
  return name;
}

inline void save_topology(const device_mesh& m, const std::string& path) {
  const std::string content =
      path.ends_with(".hpp") ? topology_to_header(m, topology_name(path)) : topology_to_json(m);
  interop::write_atomically(path, [&](interop::output_file& out) { out.write(content); });
}
inline device_mesh load_topology(const std::string& path) {
  constexpr std::uint64_t most_bytes = 1 << 20;  // a mesh has a few numbers for each axis
  const std::vector<std::byte> file = interop::read_file(path, most_bytes);
  try {
    return topology_from_json({reinterpret_cast<const char*>(file.data()), file.size()});
  } catch (const file_error& e) { throw file_error(path + ": " + e.what()); }
}

}  // namespace cella::parallel
