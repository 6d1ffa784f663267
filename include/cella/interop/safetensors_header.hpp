// The JSON header of a safetensors file, read from hostile bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cella/interop/named_tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::interop {

using safetensors_metadata = std::map<std::string, std::string>;

namespace detail {

// What the reference implementation writes and reads at most.
inline constexpr std::uint64_t most_safetensors_header = 100'000'000;

/// The element type that a safetensors file calls `wanted`; `tuple` if there is none.
inline dtype safetensors_type(std::string_view wanted) {
  for (int t = 0; t < dtype_count; ++t) {
    const std::string_view known = facts_of(dtype(t)).safetensors;
    if (!known.empty() && known == wanted) return dtype(t);
  }
  return dtype::tuple;
}

struct safetensors_record {
  std::string_view name;  // lives in the index
  tensor_type type{};
  std::uint64_t begin{}, end{};  // [begin, end) of the data that follow the header
};

/// Takes the header's JSON event by event and refuses at once what the format does not allow at
/// that place, so nesting cannot pass three levels and memory is bounded by the header's length. (A
/// document tree would take many times that, and would keep only the last of two equal names.)
class safetensors_header {
 public:
  using json = nlohmann::json;

  safetensors_header(const std::string& label, std::uint64_t data_size)
      : label_(label), data_size_(data_size) {}

  /// Names with their places in `records`, and records in the order of their data.
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<safetensors_record> records;
  safetensors_metadata metadata;

  void parse(std::string_view header) {
    // The format demands the brace, and the parser would take a NUL for the end of its input.
    if (!header.starts_with('{') || header.find('\0') != header.npos) {
      refuse(label_ + " has a header that is not JSON: it must begin with { and hold no NUL");
    }
    json::sax_parse(header.begin(), header.end(), this);
    check_cover();
  }

  bool null() { misplaced("null"); }
  bool boolean(bool) { misplaced("a boolean"); }
  bool number_integer(std::int64_t value) {
    misplaced("the negative number " + std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) {
    if (place_ != place::shape && place_ != place::offsets) misplaced("a number");
    // One more than can be valid is enough to refuse it.
    if (numbers_.size() <= std::size_t(max_rank)) numbers_.push_back(value);
    return true;
  }
  bool number_float(double, const std::string& digits) {
    misplaced("the number " + in_quotes(digits, 40) + ", which is no integer of 64 bits,");
  }
  bool string(std::string& value) {
    if (place_ == place::metadata) {
      if (!metadata.try_emplace(key_, std::move(value)).second) {
        refuse(label_ + " has the metadata " + in_quotes(key_) + " twice");
      }
    } else if (place_ == place::tensor && key_ == "dtype") {
      const dtype known = safetensors_type(value);
      if (known == dtype::tuple) {
        throw file_error(where() + " has the dtype " + in_quotes(value) +
                         ", which cella lacks; save it as one of " +
                         names_of_types(&dtype_facts::safetensors));
      }
      element_ = known;
    } else {
      misplaced("a string");
    }
    return true;
  }
  bool binary(json::binary_t&) { misplaced("binary data"); }
  bool key(std::string& name) {
    key_ = std::move(name);
    if (place_ == place::file) {
      const bool fresh = key_ == "__metadata__" ? !std::exchange(has_metadata_, true)
                                                : index.emplace(key_, records.size()).second;
      if (!fresh) refuse(where() + " is there twice");
    } else if (place_ == place::tensor) {
      const bool known = key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
      if (!known) refuse(where() + " has the unknown field " + in_quotes(key_));
      if (key_ == "dtype" ? element_.has_value() : key_ == "shape" ? has_shape_ : has_offsets_) {
        refuse(where() + " has the field " + in_quotes(key_) + " twice");
      }
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (place_ == place::start) {
      place_ = place::file;
    } else if (place_ == place::file && key_ == "__metadata__") {
      place_ = place::metadata;
    } else if (place_ == place::file) {
      records.push_back({.name = index.find(key_)->first});
      element_.reset();
      has_shape_ = has_offsets_ = false;
      place_ = place::tensor;
    } else {
      misplaced("an object");
    }
    return true;
  }
  bool end_object() {
    if (place_ == place::tensor) finish_tensor();
    place_ = place::file;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ != place::tensor || key_ == "dtype") misplaced("an array");
    place_ = key_ == "shape" ? place::shape : place::offsets;
    numbers_.clear();
    return true;
  }
  bool end_array() {
    if (place_ == place::shape) {
      has_shape_ = true;
      extents_ = numbers_;
    } else {
      if (numbers_.size() != 2) refuse(where() + " has data_offsets that are not two numbers");
      has_offsets_ = true;
      records.back().begin = numbers_[0];
      records.back().end = numbers_[1];
    }
    place_ = place::tensor;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const json::exception& fault) {
    // Only the parser's reason: what it read last, which follows it, can be as long as the file.
    std::string_view reason = fault.what();
    reason.remove_prefix(std::min(reason.find("syntax error "), reason.size()));
    reason = reason.substr(0, reason.find(';'));
    refuse(label_ + " has a header that is not JSON, at its byte " + std::to_string(byte) + ": " +
           std::string(reason));
  }

 private:
  enum class place { start, file, metadata, tensor, shape, offsets };

  [[noreturn]] static void refuse(const std::string& found) {
    throw file_error(found + "; the file is damaged: fetch it or write it anew");
  }
  [[noreturn]] void misplaced(const std::string& what) const {
    const std::string slot = place_ == place::start      ? "top level"
                             : place_ == place::file     ? "entry"
                             : place_ == place::metadata ? "field " + in_quotes(key_)
                             : place_ == place::tensor   ? key_
                             : place_ == place::shape    ? "shape"
                                                         : "data_offsets";
    refuse(where() + " has " + what + " in its " + slot + ", where the format does not allow it");
  }
  std::string where() const {
    if (place_ == place::start) return label_ + ": the header";
    if (place_ == place::metadata) return label_ + ": the metadata";
    if (place_ == place::file) return label_ + ": tensor " + in_quotes(key_);
    return where(records.back());
  }
  std::string where(const safetensors_record& r) const {
    return label_ + ": tensor " + in_quotes(r.name);
  }
  static std::string range(const safetensors_record& r) {
    return "data_offsets [" + std::to_string(r.begin) + "," + std::to_string(r.end) + "]";
  }

  void finish_tensor() {
    auto& r = records.back();
    if (!element_) refuse(where() + " lacks the field \"dtype\"");
    if (!has_shape_) refuse(where() + " lacks the field \"shape\"");
    if (!has_offsets_) refuse(where() + " lacks the field \"data_offsets\"");
    r.type = checked_type(where(), *element_, extents_);
    if (r.begin > r.end) refuse(where() + " has " + range(r) + ", which end before they begin");
    if (r.end > data_size_) {
      refuse(where() + " has " + range(r) + ", but the file holds " + std::to_string(data_size_) +
             " bytes of data");
    }
    if (r.end - r.begin != static_cast<std::uint64_t>(r.type.bytes())) {
      refuse(where() + " is " + std::string((text() << r.type).view()) + ", " +
             std::to_string(r.type.bytes()) + " bytes, but has " + range(r));
    }
  }

  /// Data that no tensor names, or that two tensors share, could smuggle in what nobody checks.
  void check_cover() {
    std::ranges::sort(records, {},
                      [](const auto& r) { return std::tuple(r.begin, r.end, r.name); });
    std::uint64_t covered = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto& r = records[i];
      if (r.begin < covered) {
        refuse(where(r) + " with " + range(r) + " overlaps tensor " +
               in_quotes(records[i - 1].name));
      }
      if (r.begin > covered) {
        refuse(where(r) + " with " + range(r) + " leaves a hole after byte " +
               std::to_string(covered) + " of the data");
      }
      covered = r.end;
      index.find(r.name)->second = i;
    }
    if (covered != data_size_) {
      refuse(label_ + " has " + std::to_string(data_size_) +
             " bytes of data, but its tensors take " + std::to_string(covered));
    }
  }

  const std::string& label_;
  std::uint64_t data_size_;
  place place_ = place::start;
  std::string key_;
  std::vector<std::uint64_t> numbers_, extents_;
  std::optional<dtype> element_;
  bool has_shape_ = false, has_offsets_ = false, has_metadata_ = false;
};

}  // namespace detail

}  // namespace cella::interop
