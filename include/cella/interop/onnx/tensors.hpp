// Tensors of ONNX files: TensorProto, and files beside the model that hold its bytes.
#pragma once

#include <onnx/onnx_pb.h>

#include <cella/graph/constants.hpp>
#include <cella/graph/onnx_attributes.hpp>
#include <cella/interop/file.hpp>
#include <cella/interop/named_tensor.hpp>
#include <cella/interop/onnx_model.hpp>
#include <cella/ops/constant.hpp>
#include <charconv>
#include <cstring>

namespace cella::interop {

/// Reads the tensors of one model.
class onnx_tensor_reader {
 public:
  onnx_tensor_reader(std::filesystem::path folder, std::uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  /// `where` begins the messages.
  onnx_tensor read(const ::onnx::TensorProto& t, const std::string& where) {
    const dtype element = element_of(t.data_type(), where);
    std::vector<std::uint64_t> extents;
    for (std::int64_t e : t.dims()) {
      if (e < 0) throw file_error(where + " has a negative extent; write it anew");
      extents.push_back(std::uint64_t(e));
    }
    onnx_tensor all{checked_type(where, element, extents), {}};
    if (t.data_location() == ::onnx::TensorProto::EXTERNAL)
      all.bytes = external(t, where, std::uint64_t(all.type.bytes()));
    else if (t.has_raw_data())
      all.bytes = bytes_of(t.raw_data().data(), t.raw_data().size());
    else
      all.bytes = typed(t, element);
    if (all.bytes.size() != std::size_t(all.type.bytes()))
      throw file_error(where + " is " + std::string((text() << all.type).view()) + ", but has " +
                       std::to_string(all.bytes.size()) + " bytes instead of " +
                       std::to_string(all.type.bytes()) + "; it is damaged: fetch it again");
    check_booleans(where, element, all.bytes);
    return all;
  }

  static dtype element_of(std::int64_t code, const std::string& where) {
    const dtype t = dtype_of_onnx(code);
    if (t == dtype::tuple)
      throw onnx_not_supported(where + " has elements of the type " + name_of_type(code) +
                               ", which Cella lacks; convert it");
    return t;
  }

 private:
  static std::string name_of_type(std::int64_t code) {
    constexpr std::array<std::string_view, 5> small{"float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                                    "float8e5m2fnuz", "uint4"};
    if (code == ::onnx::TensorProto::STRING) return "string";
    if (code >= 17 && code < 22) return std::string(small[std::size_t(code - 17)]);
    return std::to_string(code);
  }
  static std::vector<std::byte> bytes_of(const void* data, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(data);
    return {first, first + size};
  }
  template <class T, class Field>
  static std::vector<std::byte> narrowed(const Field& field) {
    std::vector<T> all;
    for (auto v : field) all.push_back(static_cast<T>(v));
    return bytes_of(all.data(), all.size() * sizeof(T));
  }
  /// The field in which a tensor of this type keeps its elements if not as bytes.
  static std::vector<std::byte> typed(const ::onnx::TensorProto& t, dtype element) {
    switch (element) {
      case dtype::f32:
      case dtype::c64:
        return bytes_of(t.float_data().data(), std::size_t(t.float_data_size()) * 4);
      case dtype::f64:
      case dtype::c128:
        return bytes_of(t.double_data().data(), std::size_t(t.double_data_size()) * 8);
      case dtype::i64:
        return narrowed<std::int64_t>(t.int64_data());
      case dtype::u64:
        return narrowed<std::uint64_t>(t.uint64_data());
      case dtype::u32:
        return narrowed<std::uint32_t>(t.uint64_data());
      default:
        switch (size_of(element)) {
          case 1:
            return narrowed<std::uint8_t>(t.int32_data());
          case 2:
            return narrowed<std::uint16_t>(t.int32_data());
          default:
            return narrowed<std::int32_t>(t.int32_data());
        }
    }
  }

  std::vector<std::byte> external(const ::onnx::TensorProto& t, const std::string& where,
                                  std::uint64_t size) {
    std::string location;
    std::uint64_t offset = 0, length = size;
    for (const auto& entry : t.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = number(entry.value(), where);
      if (entry.key() == "length") length = number(entry.value(), where);
    }
    const std::filesystem::path file = std::filesystem::path(location).lexically_normal();
    if (folder_.empty() || location.empty() || file.is_absolute() || *file.begin() == "..")
      throw file_error(where + " lies in the file " + in_quotes(location) +
                       ", which is not one beside the model; put it there and load the model by "
                       "its path");
    if (location != file_) {
      content_ = read_file(folder_ / file, max_bytes_);
      file_ = location;
    }
    if (length != size || offset > content_.size() || length > content_.size() - offset)
      throw file_error(where + " lies beyond the end of " + in_quotes(location) +
                       "; fetch the file that belongs to the model");
    const auto first = content_.begin() + std::ptrdiff_t(offset);
    return {first, first + std::ptrdiff_t(length)};
  }
  static std::uint64_t number(const std::string& s, const std::string& where) {
    std::uint64_t n = 0;
    const auto end = std::from_chars(s.data(), s.data() + s.size(), n);
    if (end.ec != std::errc() || end.ptr != s.data() + s.size())
      throw file_error(where + " says " + in_quotes(s) + " where its place in a file should be");
    return n;
  }

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  std::string file_;  ///< the last one that was read
  std::vector<std::byte> content_;
};

/// A constant of the graph that has these words.
inline var constant_of_words(builder& b, const tensor_type& t, const word_list& words) {
  const auto a = cella::detail::apply_constant(b.g, t, words);
  return {&b, b.emit(*a.op, span<const node_id>{}, a.options)};
}
inline var constant_of(builder& b, const onnx_tensor& t) {
  word_list words((t.bytes.size() + 7) / 8);
  auto* const to = reinterpret_cast<std::byte*>(words.data());
  if (!t.bytes.empty()) std::memcpy(to, t.bytes.data(), t.bytes.size());
  // The last word is filled up with the first element: see `packed`.
  for (std::size_t k = t.bytes.size(); k < 8 * words.size(); ++k)
    to[k] = to[k % size_of(t.type.element)];
  return constant_of_words(b, t.type, words);
}

}  // namespace cella::interop
