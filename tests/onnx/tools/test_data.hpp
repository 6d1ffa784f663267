// The data of ONNX's own tests: `input_0.pb`, `output_0.pb` ... of a folder, each a tensor, a
// sequence or an optional value, as the model says.
#pragma once

#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>

#include <cella/interop/onnx/inputs.hpp>
#include <cella/interop/onnx/tensors.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cella::test {

template <class Message>
Message read_message(const std::filesystem::path& file) {
  Message m;
  std::ifstream in(file, std::ios::binary);
  if (!m.ParseFromIstream(&in)) throw std::runtime_error("cannot parse " + file.string());
  return m;
}

/// What a model takes or hands out: its tensors, by the names of arguments and results of its
/// graph.
struct test_data {
  std::vector<std::string> names;
  std::vector<onnx_tensor> tensors;
  decltype(onnx_settings::elements) elements;

  void add(const std::string& name, onnx_tensor t) {
    names.push_back(name);
    tensors.push_back(std::move(t));
  }
  /// One value of a model from a file.
  void read(const std::filesystem::path& file, const ::onnx::ValueInfoProto& v) {
    const std::string& name = v.name();
    if (v.type().has_tensor_type()) return add(name, load_onnx_tensor(file).second);
    if (v.type().has_sequence_type())
      return read(name, read_message<::onnx::SequenceProto>(file), file);
    const auto optional = read_message<::onnx::OptionalProto>(file);
    if (optional.has_sequence_value()) return read(name, optional.sequence_value(), file);
    elements[name] = std::nullopt;
    if (!optional.has_tensor_value()) return;
    add(name, tensor_of(optional.tensor_value(), file));
    elements[name] = {tensors.back().type.shape};
  }

 private:
  static onnx_tensor tensor_of(const ::onnx::TensorProto& t, const std::filesystem::path& file) {
    return interop::onnx_tensor_reader({}, std::uint64_t{1} << 33)
        .read(t, interop::in_quotes(file.native(), 4096));
  }
  void read(const std::string& name, const ::onnx::SequenceProto& s,
            const std::filesystem::path& file) {
    std::vector<shape> shapes;
    for (int k = 0; k < s.tensor_values_size(); ++k) {
      add(interop::name_of_element(name, std::size_t(k)), tensor_of(s.tensor_values(k), file));
      shapes.push_back(tensors.back().type.shape);
    }
    elements[name] = shapes;
  }
};

/// The files of a kind, `input` or `output`, in a folder, for values of a model in their order.
inline test_data read_data(const std::filesystem::path& folder, const std::string& kind,
                           const std::vector<::onnx::ValueInfoProto>& values) {
  test_data all;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto file = folder / (kind + "_" + std::to_string(k) + ".pb");
    if (std::filesystem::exists(file)) all.read(file, values[k]);
  }
  return all;
}

}  // namespace cella::test
