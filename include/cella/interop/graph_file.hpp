// Graphs on disk: as JSON to read, compare and edit, and as CBOR, which is smaller. Both hold the
// same tree; docs/graphs_on_disk.md describes it. Needs nlohmann/json.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/interop/graph_reader.hpp>
#include <cella/interop/graph_writer.hpp>
#include <cella/ops/list.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cella {

/// What reading a graph takes for granted.
struct graph_limits {
  /// Larger files are refused: reading takes up to some 30 times their size.
  std::uint64_t bytes = std::uint64_t{1} << 28;
  /// The operations that a file may name: all of the library, unless you have some of your own.
  interop::operation_span operations = all_operations::infos;
};

/// Replaces the file `path` by the graph, atomically: JSON if it ends in `.json`, CBOR if it ends
/// in `.cgraph`. What no output needs is written, too; what no region lists is not. Throws
/// `file_error` if the graph is not well formed or the file cannot be written.
inline void save_graph(const graph& g, const std::filesystem::path& path);

/// The graph of a file, by its suffix. Everything in it is checked: operations, options, types,
/// which are inferred again, and references. Throws `file_error` that names the file, the node and
/// the remedy.
inline graph load_graph(const std::filesystem::path& path, const graph_limits& limits = {});

/// The same in memory. `label` names the source in messages.
inline std::string graph_to_json(const graph& g);
inline graph graph_from_json(std::string_view json, std::string_view label = "graph",
                             const graph_limits& limits = {});
inline std::vector<std::byte> graph_to_bytes(const graph& g);
inline graph graph_from_bytes(std::span<const std::byte> bytes, std::string_view label = "graph",
                              const graph_limits& limits = {});

namespace detail {

/// The tag that says "this is CBOR": RFC 8949, section 3.4.6.
inline constexpr std::string_view cbor_tag = "\xd9\xd9\xf7";

enum class graph_form : std::uint8_t { json, cbor };

inline graph_form form_of(const std::filesystem::path& path) {
  if (path.extension() == ".json") return graph_form::json;
  if (path.extension() == ".cgraph") return graph_form::cbor;
  throw file_error(interop::in_quotes(path.native(), 4096) +
                   " does not say in which form a graph lies in it; end its name in .json or "
                   ".cgraph");
}
inline std::string graph_text(const graph& g, const std::string& label) {
  return interop::to_lines(interop::detail::graph_writer(g, false).write(), 4, label);
}
inline std::string graph_cbor(const graph& g) {
  std::string all(cbor_tag);
  interop::tree::to_cbor(interop::detail::graph_writer(g, true).write(), all);
  return all;
}
inline graph read_graph(std::span<const std::byte> file, const std::string& label, graph_form form,
                        const graph_limits& limits) {
  if (file.size() > limits.bytes)
    throw file_error(label + " has " + std::to_string(file.size()) + " bytes, but at most " +
                     std::to_string(limits.bytes) +
                     " are allowed; raise the limit if you trust its author");
  using format = interop::tree::input_format_t;
  if (form == graph_form::cbor) {
    const auto tag = std::as_bytes(std::span(cbor_tag));
    if (!std::ranges::equal(file.first(std::min(file.size(), tag.size())), tag))
      throw file_error(label +
                       " is no binary graph: it does not begin with the tag of CBOR; name "
                       "a file that save_graph wrote");
    file = file.subspan(tag.size());
  }
  return interop::with_memory(label, file.size(), [&] {
    const interop::tree all =
        interop::read_tree(file, label, form == graph_form::cbor ? format::cbor : format::json);
    return interop::detail::graph_reader(label, limits.operations).read(all);
  });
}

}  // namespace detail

inline std::string graph_to_json(const graph& g) { return detail::graph_text(g, "a graph"); }
inline graph graph_from_json(std::string_view json, std::string_view label,
                             const graph_limits& limits) {
  return detail::read_graph(std::as_bytes(std::span(json)), interop::in_quotes(label, 4096),
                            detail::graph_form::json, limits);
}
inline std::vector<std::byte> graph_to_bytes(const graph& g) {
  const std::string all = detail::graph_cbor(g);
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}
inline graph graph_from_bytes(std::span<const std::byte> bytes, std::string_view label,
                              const graph_limits& limits) {
  return detail::read_graph(bytes, interop::in_quotes(label, 4096), detail::graph_form::cbor,
                            limits);
}

inline void save_graph(const graph& g, const std::filesystem::path& path) {
  const detail::graph_form form = detail::form_of(path);
  const std::string label = interop::in_quotes(path.native(), 4096);
  const text wrong = check(g);
  if (!wrong.empty())
    throw file_error("cannot write " + label + ": the graph does not hold together: " +
                     std::string(wrong.view()) + "; mend it");
  const std::string all =
      form == detail::graph_form::json ? detail::graph_text(g, label) : detail::graph_cbor(g);
  interop::write_atomically(path, [&](interop::output_file& file) { file.write(all); });
}

inline graph load_graph(const std::filesystem::path& path, const graph_limits& limits) {
  const detail::graph_form form = detail::form_of(path);
  const std::vector<std::byte> file = interop::read_file(path, limits.bytes);
  return detail::read_graph(file, interop::in_quotes(path.native(), 4096), form, limits);
}

}  // namespace cella
