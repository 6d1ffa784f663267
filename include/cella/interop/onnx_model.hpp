// Models from ONNX files, and to them: what they compute becomes a graph, which is optimized,
// planned and run as one that was traced. docs/onnx.md lists the operators.
//
// Both take protobuf and ONNX's own description of its files, which are not in this header:
// link `cella::onnx`, which is made of onnx.cpp.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/graph/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella {

/// A tensor of a file in memory: elements row-major, little-endian.
struct onnx_tensor {
  tensor_type type{};
  std::vector<std::byte> bytes;
};

/// What is known of a model before it runs. Shapes in Cella are fixed, so what they depend on must
/// be.
struct onnx_settings {
  /// Extents that the model only names, {"batch", 1}, and those of inputs that it leaves open,
  /// {"input.0", 1}, by the input's name and the axis.
  std::map<std::string, std::int64_t> extents{};
  /// Inputs that become constants: axes, new shapes, numbers of repetitions.
  std::map<std::string, onnx_tensor> values{};
  /// Inputs that are sequences or optional values, by the shapes of the tensors that they consist
  /// of. Each is an argument: {"frames", {{{2, 3}, {4, 3}}}} makes "frames[0]" and "frames[1]",
  /// whose values may be given above. {"mask", std::nullopt} is an optional value that is empty.
  std::map<std::string, std::optional<std::vector<shape>>> elements{};
  /// Larger files are refused, those included in which a model keeps its tensors.
  std::uint64_t max_bytes = std::uint64_t{1} << 33;
};

/// An operator takes from the value of an input what the shape of its result is.
struct onnx_value_needed : file_error {
  onnx_value_needed(const std::string& what, std::string of) : file_error(what), input(of) {}
  std::string input;  ///< to be given as `onnx_settings::values[input]`
};
/// An operator, or a form of it, that Cella does not have.
struct onnx_not_supported : file_error {
  using file_error::file_error;
};

/// The graph of a model. Its arguments are the model's inputs in their order, its results the
/// model's outputs, a sequence being as many as it has elements; initializers are constants. Nodes
/// of the graph bear the names of the model's. Throws `file_error` that names the file, the node
/// and the remedy.
graph load_onnx(const std::filesystem::path& path, const onnx_settings& settings = {});
/// The same from memory. `label` names the source in messages; `folder` is where files lie that the
/// model refers to, none if empty.
graph onnx_from_bytes(std::span<const std::byte> bytes, const onnx_settings& settings = {},
                      std::string_view label = "ONNX model",
                      const std::filesystem::path& folder = {});

/// The bytes of a parameter or state by its name, row-major; empty if there is none.
using onnx_values = std::function<std::span<const std::byte>(std::string_view, const tensor_type&)>;

/// Replaces the file `path` by a model of opset 18 that computes what the graph does, atomically.
/// Parameters and states become initializers, in a file `path` + ".data" beside it if they are
/// large. Results keep their names. Throws `error` that names the operation if one of them has no
/// counterpart: loops, gradients of some layers, random numbers.
void save_onnx(const graph& g, const std::filesystem::path& path, const onnx_values& values = {});
/// The same for a graph whose parameters lie in a `parameter_store`.
template <class Store>
requires requires(const Store& s) { s.value(*s.find("")); }
void save_onnx(const graph& g, const std::filesystem::path& path, const Store& store) {
  save_onnx(g, path, onnx_values([&](std::string_view name, const tensor_type& t) {
              const auto* p = store.find(name);
              if (!p || p->type != t) return std::span<const std::byte>{};
              return std::span<const std::byte>(store.value(*p).data, std::size_t(t.bytes()));
            }));
}
/// The same in memory, at most 2 GiB.
std::vector<std::byte> onnx_to_bytes(const graph& g, const onnx_values& values = {});

/// A tensor in a file of its own, as ONNX's tests have them (`input_0.pb`), and its name.
std::pair<std::string, onnx_tensor> load_onnx_tensor(const std::filesystem::path& path);

/// The operators that models may use, sorted; those of other domains than ONNX's own begin with
/// the domain: `ai.onnx.preview.training.Adam`.
std::vector<std::string> onnx_operators();

}  // namespace cella
