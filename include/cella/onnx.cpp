// Models from ONNX files, compiled once: the target cella::onnx.
// Whoever builds without CMake adds this file to the program and links onnx_proto and protobuf.
#include <cella/interop/onnx/exporter.hpp>
#include <cella/interop/onnx/importer.hpp>
#include <limits>

namespace cella {

namespace {

template <class Message>
void parse(Message& m, std::span<const std::byte> bytes, const std::string& label) {
  if (bytes.size() > std::size_t(std::numeric_limits<int>::max()))
    throw file_error(label +
                     " has more than 2 GiB, which protobuf does not read; write the model "
                     "with its tensors in files beside it");
  if (!m.ParseFromArray(bytes.data(), int(bytes.size())))
    throw file_error(label + " is no ONNX file, or is damaged; fetch it or write it anew");
}

}  // namespace

graph onnx_from_bytes(std::span<const std::byte> bytes, const onnx_settings& settings,
                      std::string_view label, const std::filesystem::path& folder) {
  ::onnx::ModelProto model;
  parse(model, bytes, std::string(label));
  return interop::with_memory(std::string(label), bytes.size(), [&] {
    return interop::onnx_importer(std::string(label), folder, settings).read(model);
  });
}

graph load_onnx(const std::filesystem::path& path, const onnx_settings& settings) {
  const std::string label = interop::in_quotes(path.native(), 4096);
  const auto bytes = interop::read_file(path, settings.max_bytes);
  const auto folder = path.parent_path();
  return onnx_from_bytes(bytes, settings, label, folder.empty() ? "." : folder);
}

namespace {

/// What a message of protobuf may have.
constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 20);

std::uint64_t bytes_of_initializers(const ::onnx::ModelProto& m) {
  std::uint64_t all = 0;
  for (const auto& t : m.graph().initializer()) all += t.raw_data().size();
  return all;
}
/// Moves the initializers to a file beside the model.
void move_out(::onnx::ModelProto& m, const std::filesystem::path& file) {
  interop::write_atomically(file, [&](interop::output_file& out) {
    std::uint64_t offset = 0;
    for (auto& t : *m.mutable_graph()->mutable_initializer()) {
      out.write(t.raw_data());
      t.set_data_location(::onnx::TensorProto::EXTERNAL);
      auto say = [&](const char* key, const std::string& value) {
        auto* e = t.add_external_data();
        e->set_key(key);
        e->set_value(value);
      };
      say("location", file.filename().string());
      say("offset", std::to_string(offset));
      say("length", std::to_string(t.raw_data().size()));
      offset += t.raw_data().size();
      t.clear_raw_data();
    }
  });
}

}  // namespace

void save_onnx(const graph& g, const std::filesystem::path& path, const onnx_values& values) {
  ::onnx::ModelProto m = interop::onnx_exporter(g, values).write();
  if (bytes_of_initializers(m) > most_bytes) {
    std::filesystem::path beside = path;
    move_out(m, beside += ".data");
  }
  interop::write_atomically(path, [&](interop::output_file& f) { f.write(m.SerializeAsString()); });
}

std::vector<std::byte> onnx_to_bytes(const graph& g, const onnx_values& values) {
  const ::onnx::ModelProto m = interop::onnx_exporter(g, values).write();
  if (bytes_of_initializers(m) > most_bytes)
    throw error(
        "onnx_to_bytes: the model has more than 2 GiB; use save_onnx, which puts its tensors "
        "into a file of their own");
  std::vector<std::byte> all(m.ByteSizeLong());
  m.SerializeToArray(all.data(), int(all.size()));
  return all;
}

std::pair<std::string, onnx_tensor> load_onnx_tensor(const std::filesystem::path& path) {
  const std::string label = interop::in_quotes(path.native(), 4096);
  ::onnx::TensorProto t;
  parse(t, interop::read_file(path, std::uint64_t{1} << 33), label);
  interop::onnx_tensor_reader reader(path.parent_path(), std::uint64_t{1} << 33);
  return {t.name(), reader.read(t, label)};
}

std::vector<std::string> onnx_operators() {
  std::vector<std::string> all;
  interop::for_each_onnx_rule([&](const interop::named_onnx_rule& r) {
    all.push_back(interop::onnx_importer::full_name(std::string(r.domain), std::string(r.op)));
  });
  std::ranges::sort(all);
  return all;
}

}  // namespace cella
