// Trees of values from files that nobody trusts: JSON, and CBOR (RFC 8949), its binary counterpart.
// Needs nlohmann/json.
#pragma once

#include <algorithm>
#include <cella/graph/error.hpp>
#include <cella/interop/file.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::interop {

using tree = nlohmann::ordered_json;

/// Reads JSON or CBOR; `label` (already quoted) names the file in messages. Memory is taken for
/// what the file holds, not for what it claims to hold: at most some 30 times its size. Throws
/// `file_error` if it is damaged, nested deeper than 16 levels, or if an object has more than 64
/// members or one of them twice.
tree read_tree(std::span<const std::byte> file, const std::string& label,
               tree::input_format_t format);

/// JSON with a line for each element of what holds lists or objects, down to that many levels.
/// Throws `file_error` if a string is not UTF-8.
std::string to_lines(const tree& t, int levels, const std::string& label);

namespace detail {

/// Builds a tree from the parser's events. The parser itself recurses in CBOR, so that depth must
/// be refused while it reads.
class tree_builder {
 public:
  using number_integer_t = tree::number_integer_t;

  explicit tree_builder(const std::string& label) : label_(label) {}
  tree take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool v) { return put(v); }
  bool number_integer(std::int64_t v) { return put(v); }
  bool number_unsigned(std::uint64_t v) { return put(v); }
  bool number_float(double v, const std::string&) { return put(v); }
  bool string(std::string& v) { return put(std::move(v)); }
  bool binary(tree::binary_t& v) { return put(tree::binary(std::move(v))); }
  bool key(std::string& name) {
    tree& object = *open_.back();
    if (object.size() == most_members) refuse("holds an object of more than 64 members");
    if (object.contains(name)) refuse("has the field " + in_quotes(name) + " twice");
    member_ = &object[std::move(name)];
    return true;
  }
  bool start_object(std::size_t) { return open(tree::object()); }
  bool start_array(std::size_t) { return open(tree::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t byte, const std::string&, const tree::exception& fault) {
    // Only the parser's reason: what it read last, which follows it, can be as long as the file.
    std::string_view reason = fault.what();
    reason.remove_prefix(std::min(reason.find("syntax error "), reason.size()));
    reason = reason.substr(0, std::min(reason.find(';'), std::size_t{80}));
    refuse("is cut or damaged at its byte " + std::to_string(byte) +
           (reason.empty() ? "" : ": " + std::string(reason)));
  }

 private:
  static constexpr std::size_t most_levels = 16, most_members = 64;

  tree* place(tree&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &(*member_ = std::move(value));
  }
  bool put(tree&& value) {
    place(std::move(value));
    return true;
  }
  bool open(tree&& value) {
    if (open_.size() == most_levels) refuse("is nested deeper than 16 levels");
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  [[noreturn]] void refuse(const std::string& found) const {
    throw file_error(label_ + " " + found + "; fetch it or write it anew");
  }

  const std::string& label_;
  tree root_;
  std::vector<tree*> open_;  ///< what is being filled; only the last one grows
  tree* member_{};
};

inline void append_lines(std::string& out, const tree& t, int levels) {
  const auto nested = [](const tree& element) { return element.is_structured(); };
  if (levels == 0 || std::none_of(t.begin(), t.end(), nested)) {
    out += t.dump();
    return;
  }
  bool first = true;
  out += t.is_object() ? "{" : "[";
  for (const auto& [name, value] : t.items()) {
    out += std::exchange(first, false) ? "\n" : ",\n";
    if (t.is_object()) out += tree(name).dump() + ":";
    append_lines(out, value, levels - 1);
  }
  out += t.is_object() ? "}" : "]";
}

}  // namespace detail

inline tree read_tree(std::span<const std::byte> file, const std::string& label,
                      tree::input_format_t format) {
  return with_memory(label, file.size(), [&] {
    detail::tree_builder built(label);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(file.data());
    tree::sax_parse(first, first + file.size(), &built, format);
    return built.take();
  });
}

inline std::string to_lines(const tree& t, int levels, const std::string& label) {
  try {
    std::string out;
    detail::append_lines(out, t, levels);
    return out + "\n";
  } catch (const tree::type_error&) {
    throw file_error("cannot write " + label + ": a name is not UTF-8; rename it");
  }
}

}  // namespace cella::interop
