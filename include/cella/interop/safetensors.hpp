// Reader and writer of safetensors files: 8 bytes of header length, a JSON header, raw tensors.
// Format: https://huggingface.co/docs/safetensors. A file is never trusted.
#pragma once

#include <algorithm>
#include <cella/interop/file.hpp>
#include <cella/interop/named_tensor.hpp>
#include <cella/interop/safetensors_header.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::interop {

/// How many bytes of header are read unless the caller allows more; 250 000 tensors fit. A header
/// of that size takes at most 240 MB and a second, whatever stands in it.
inline constexpr std::uint64_t default_safetensors_header = 25'000'000;

/// A safetensors file in memory. It is read whole, not mapped: a mapped file that another process
/// cuts kills its reader with SIGBUS, and one that is overwritten changes after it was checked.
class safetensors_file {
 public:
  /// Reads and checks a file; the header is checked before memory for the tensors is allocated.
  /// Throws `file_error`, which names the file, the tensor, what was found and the remedy.
  static safetensors_file open(const std::filesystem::path& path,
                               std::uint64_t max_header = default_safetensors_header);
  /// The same for a file that lies in memory already; `label` names it in messages.
  static safetensors_file parse(std::span<const std::byte> file, std::string_view label,
                                std::uint64_t max_header = default_safetensors_header);

  safetensors_file(safetensors_file&&) = default;
  safetensors_file& operator=(safetensors_file&&) = default;

  /// All tensors in the order of their data. They live as long as this object, also if it is moved.
  std::span<const named_tensor> tensors() const { return tensors_; }
  std::optional<named_tensor> find(std::string_view name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) return std::nullopt;
    return tensors_[found->second];
  }
  /// Throws `file_error` if there is no such tensor.
  named_tensor at(std::string_view name) const {
    if (auto tensor = find(name)) return *tensor;
    throw file_error(label_ + " has no tensor " + in_quotes(name) + " among its " +
                     std::to_string(tensors_.size()) +
                     "; load the file that belongs to this model");
  }
  const safetensors_metadata& metadata() const { return metadata_; }

 private:
  safetensors_file() = default;
  template <class Read>
  static safetensors_file load(const std::string& label, std::uint64_t size,
                               std::uint64_t max_header, Read&& read);

  std::string label_;
  std::vector<std::byte> data_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<named_tensor> tensors_;
  safetensors_metadata metadata_;
};

/// Replaces `path` by a file with these tensors, atomically: see `write_atomically`. The bytes are
/// those that the reference implementation writes: greatest alignment first, then by name.
/// Throws `file_error` if a name is taken twice, a size is wrong, or the file cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const named_tensor> tensors,
                       const safetensors_metadata& metadata = {});

namespace detail {

/// Checks what a user wants to write.
[[gnu::cold]] inline void check_writable(const named_tensor& t) {
  const std::string where = "cannot write tensor " + in_quotes(t.name);
  if (facts_of(t.type.element).safetensors.empty()) {
    throw file_error(where + " of dtype " + std::string(name(t.type.element)) +
                     ": safetensors has none like it; write its parts");
  }
  if (t.name == "__metadata__") {
    throw file_error(where + ": the format keeps this name for itself; choose another");
  }
  // A negative extent becomes one that is too large.
  const std::vector<std::uint64_t> extents(t.type.shape.begin(), t.type.shape.end());
  const tensor_type type = checked_type(where + ": it", t.type.element, extents);
  if (static_cast<std::uint64_t>(type.bytes()) != t.bytes.size()) {
    throw file_error(text() << where << ": " << type << " takes " << type.bytes() << " bytes, but "
                            << t.bytes.size() << " were given; pass all of it");
  }
  check_booleans(where + ": it", t.type.element, t.bytes);
}

}  // namespace detail

template <class Read>
safetensors_file safetensors_file::load(const std::string& label, std::uint64_t size,
                                        std::uint64_t max_header, Read&& read) {
  const auto refuse = [&](const std::string& found, const std::string& remedy =
                                                        "it is cut or no safetensors file: fetch "
                                                        "it or write it anew") {
    throw file_error(label + " " + found + "; " + remedy);
  };
  std::uint64_t length = 0;
  if (size < sizeof length) {
    refuse("has " + std::to_string(size) + " bytes, but a safetensors file has at least 8");
  }
  std::memcpy(&length, read(sizeof length).data(), sizeof length);
  if (length > size - sizeof length) {
    constexpr std::uint64_t zip = 0x04034b50, hdf5 = 0x0a1a0a0d46444889;  // PK..., .HDF...
    if ((length & 0xffffffff) == zip || length == hdf5) {
      refuse(length == hdf5 ? "is an HDF5 file, as Keras writes them"
                            : "is a zip archive, as torch.save and np.savez write them",
             "write the weights by save_file of Python's package safetensors");
    }
    refuse("claims a header of " + std::to_string(length) + " bytes, but only " +
           std::to_string(size - sizeof length) + " follow");
  }
  if (length > max_header) {
    refuse("has a header of " + std::to_string(length) + " bytes, but at most " +
               std::to_string(max_header) + " are allowed",
           "raise max_header of safetensors_file::open if you trust the file");
  }
  const std::uint64_t data_size = size - sizeof length - length;
  safetensors_file file;
  file.label_ = label;
  with_memory(label, size, [&] {
    detail::safetensors_header header(label, data_size);
    {
      const std::vector<std::byte> bytes = read(length);
      header.parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    file.data_ = read(data_size);
    file.index_ = std::move(header.index);
    file.metadata_ = std::move(header.metadata);
    file.tensors_.reserve(header.records.size());
    for (const auto& r : header.records) {
      const std::span bytes = std::span(file.data_).subspan(r.begin, r.end - r.begin);
      check_booleans(label + ": tensor " + in_quotes(r.name), r.type.element, bytes);
      file.tensors_.push_back({r.name, r.type, bytes});
    }
  });
  return file;
}

inline safetensors_file safetensors_file::open(const std::filesystem::path& path,
                                               std::uint64_t max_header) {
  input_file file(path);
  return load(file.label(), file.size(), max_header,
              [&](std::uint64_t count) { return file.read(count); });
}

inline safetensors_file safetensors_file::parse(std::span<const std::byte> file,
                                                std::string_view label, std::uint64_t max_header) {
  return load(in_quotes(label, 4096), file.size(), max_header, [&](std::uint64_t count) {
    const auto head = file.first(count);
    file = file.subspan(count);
    return std::vector<std::byte>(head.begin(), head.end());
  });
}

[[gnu::cold]] inline void write_safetensors(const std::filesystem::path& path,
                                            std::span<const named_tensor> tensors,
                                            const safetensors_metadata& metadata) {
  std::vector<std::pair<int, const named_tensor*>> order;
  for (const auto& t : tensors) {
    detail::check_writable(t);
    order.emplace_back(facts_of(t.type.element).safetensors_rank, &t);
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->name < b.second->name;
  });
  std::set<std::string_view> names;
  std::string header = "{";
  std::uint64_t begin = 0;
  try {
    if (!metadata.empty()) header += "\"__metadata__\":" + nlohmann::json(metadata).dump() + ",";
    for (const auto& [rank, t] : order) {
      if (!names.insert(t->name).second) {
        throw file_error("cannot write tensor " + in_quotes(t->name) +
                         ": its name is taken twice; rename one");
      }
      const std::uint64_t end = begin + t->bytes.size();
      header += nlohmann::json(t->name).dump();
      header.append(":{\"dtype\":\"").append(facts_of(t->type.element).safetensors);
      header.append("\",\"shape\":").append((text() << t->type.shape).view());
      header.append(",\"data_offsets\":[").append(std::to_string(begin));
      header.append(",").append(std::to_string(end)).append("]},");
      begin = end;
    }
  } catch (const nlohmann::json::type_error&) {
    throw file_error("cannot write " + in_quotes(path.native(), 4096) +
                     ": a name or metadata is not UTF-8; rename it");
  }
  if (header.back() == ',') header.pop_back();
  header += "}";
  // Data behind a padded header lie aligned for every dtype.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  if (length > detail::most_safetensors_header) {
    throw file_error("cannot write " + in_quotes(path.native(), 4096) + ": its header of " +
                     std::to_string(length) + " bytes passes the format's limit of " +
                     std::to_string(detail::most_safetensors_header) + "; split the file");
  }
  write_atomically(path, [&](output_file& file) {
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    for (const auto& [rank, t] : order) file.write(t->bytes);
  });
}

}  // namespace cella::interop
