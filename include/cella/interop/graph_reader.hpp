// A graph from a tree of values that came from a file: nothing in it is believed.
#pragma once

#include <algorithm>
#include <cella/graph/check.hpp>
#include <cella/interop/graph_writer.hpp>
#include <cella/interop/named_tensor.hpp>
#include <cella/ops/applicable.hpp>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cella::interop {

/// The operations that a file may name.
using operation_span = span<const op_info* const>;

namespace detail {

/// The name of a source file for nodes, which do not own theirs: kept until the program ends.
inline const char* kept_name(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

class graph_reader {
 public:
  graph_reader(const std::string& label, operation_span known) : label_(label), known_(known) {}

  graph read(const tree& all) {
    where_ = label_;
    if (!all.is_object() || !all.contains("format") || all["format"] != graph_format)
      refuse("is not a graph of Cella", "name a file that save_graph wrote");
    const std::int64_t version = integer(field(all, "version"), "version", 1, 1 << 30);
    if (version > graph_version)
      refuse("is of version " + std::to_string(version) + ", but version " +
                 std::to_string(graph_version) + " is the latest that this Cella reads",
             "read it with a newer Cella");
    expect(all, {"format", "version", "constants", "inputs", "outputs", "regions"});
    for (const tree& c : array(field(all, "constants"), "constants")) read_constant(c);
    const tree& regions = array(field(all, "regions"), "regions");
    if (regions.empty()) refuse("has no main region");
    g_.regions.resize(regions.size());
    for (std::size_t r = 0; r < regions.size(); ++r) read_region(int(r), regions[r]);
    read_inputs(array(field(all, "inputs"), "inputs"));
    read_outputs(array(field(all, "outputs"), "outputs"));
    check_nodes();
    return std::move(g_);
  }

 private:
  // ---- values

  [[noreturn]] void refuse(const std::string& found,
                           const std::string& remedy =
                               "it is damaged or was written by another "
                               "program: fetch it or write it anew") const {
    throw file_error(where_ + " " + found + "; " + remedy);
  }
  void expect(const tree& object, std::initializer_list<std::string_view> fields) const {
    for (const auto& [name, value] : object.items())
      if (std::ranges::find(fields, name) == fields.end())
        refuse("has the unknown field " + in_quotes(name));
  }
  const tree& field(const tree& object, const char* name) const {
    if (!object.is_object()) refuse("is no object");
    const auto found = object.find(name);
    if (found == object.end()) refuse("lacks the field \"" + std::string(name) + "\"");
    return *found;
  }
  const tree& array(const tree& t, const char* what) const {
    if (!t.is_array()) refuse("has no list in its field \"" + std::string(what) + "\"");
    return t;
  }
  std::int64_t integer(const tree& t, const char* what, std::int64_t least,
                       std::int64_t most) const {
    const bool fits = t.is_number_unsigned()
                          ? t.get<std::uint64_t>() <= std::uint64_t(std::max<std::int64_t>(most, 0))
                          : t.is_number_integer() && t.get<std::int64_t>() <= most;
    if (!fits || t.get<std::int64_t>() < least)
      refuse("has in its field \"" + std::string(what) + "\" no integer from " +
             std::to_string(least) + " to " + std::to_string(most));
    return t.get<std::int64_t>();
  }
  std::string text_of(const tree& t, const char* what) const {
    if (!t.is_string()) refuse("has no string in its field \"" + std::string(what) + "\"");
    auto s = t.get<std::string>();
    if (s.find('\0') != s.npos) refuse("has a string that holds NUL");
    return s;
  }
  tensor_type type(const tree& t) const {
    if (!t.is_array() || t.empty() || !t[0].is_string()) refuse("has no type like [\"f32\", 2, 3]");
    const auto wanted = t[0].get<std::string>();
    dtype element = dtype::tuple;
    for (int e = 0; e < int(dtype::tuple); ++e)
      if (name(dtype(e)) == wanted) element = dtype(e);
    if (element == dtype::tuple)
      refuse("has the unknown element type " + in_quotes(wanted),
             "read it with a Cella that has it");
    std::vector<std::uint64_t> extents;
    for (std::size_t d = 1; d < t.size() && extents.size() <= std::size_t(max_rank); ++d)
      extents.push_back(
          std::uint64_t(integer(t[d], "type", 0, std::numeric_limits<std::int32_t>::max())));
    return fitting(element, extents);
  }
  /// One that `size` and `bytes` can tell, also if each element takes 16 bytes or is computed in
  /// doubles.
  tensor_type fitting(dtype element, const std::vector<std::uint64_t>& extents) const {
    (void)checked_type(where_, dtype::c128, extents);
    return checked_type(where_, element, extents);
  }
  /// Nodes of a region by their numbers: [first, end).
  ids numbers(const tree& t, const char* what, node_id first, node_id end) const {
    ids all;
    for (const tree& n : array(t, what)) {
      if (first == end)
        refuse("names in its field \"" + std::string(what) +
               "\" a node before it, "
               "but there is none");
      all.push_back(node_id(integer(n, what, first, end - 1)));
    }
    return all;
  }

  // ---- parts

  void read_constant(const tree& t) {
    where_ = label_ + ": constant tensor " + std::to_string(constants_.size());
    const tensor_type type = this->type(field(t, "type"));
    expect(t, {"type", "bytes"});
    const tree& from = field(t, "bytes");
    const auto size = std::uint64_t(type.bytes());
    std::vector<std::uint8_t> bytes;
    if (size_of(type.element) == 0) refuse("has an element type without bytes");
    if (from.is_binary()) {
      bytes = from.get_binary();
    } else {
      const std::string digits = text_of(from, "bytes");
      if (digits.size() % 2) refuse("has an odd number of hexadecimal digits");
      for (std::size_t i = 0; i < digits.size(); i += 2)
        bytes.push_back(std::uint8_t(digit(digits[i]) << 4 | digit(digits[i + 1])));
    }
    if (bytes.size() != size)
      refuse("has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(size));
    check_booleans(where_, type.element, std::as_bytes(std::span(bytes)));
    // Words are filled up with the first element: see `packed`.
    for (std::size_t i = 0; bytes.size() % 8; ++i)
      bytes.push_back(bytes[i % size_of(type.element)]);
    word_list words(bytes.size() / 8);
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    constants_.push_back(g_.constants.add(type, words));
  }
  unsigned digit(char c) const {
    if (c >= '0' && c <= '9') return unsigned(c - '0');
    if (c >= 'a' && c <= 'f') return unsigned(c - 'a') + 10;
    refuse("has bytes that are not hexadecimal digits of 0-9 and a-f");
  }

  void read_region(int r, const tree& t) {
    where_ = label_ + ": region " + std::to_string(r);
    expect(t, {"nodes", "inputs", "outputs"});
    const auto first = node_id(g_.nodes.size());
    const std::string region = " of region " + std::to_string(r);
    for (const tree& n : array(field(t, "nodes"), "nodes")) {
      where_ = label_ + ": node " + std::to_string(g_.nodes.size()) + region;
      read_node(r, first, n);
    }
    where_ = label_ + ": region " + std::to_string(r);
    const auto end = node_id(g_.nodes.size());
    cella::region& to = g_.regions[std::size_t(r)];
    to.inputs = numbers(field(t, "inputs"), "inputs", first, end);
    to.outputs = numbers(field(t, "outputs"), "outputs", first, end);
    to.declared = std::int32_t(to.inputs.size());
    std::set<node_id> once;
    for (node_id n : to.inputs)
      if (!once.insert(n).second || g_.nodes[std::size_t(n)].op != &input_info_of)
        refuse("lists node " + std::to_string(n) + " as an input, which it is not, or not once");
    for (node_id n : to.outputs)
      if (g_.type(n).element == dtype::tuple)
        refuse("has node " + std::to_string(n) + " as an output, which has several results");
  }
  void read_node(int r, node_id first, const tree& t) {
    const std::string op = text_of(field(t, "op"), "op");
    node n{};
    n.op = operation(op);
    where_ += " (" + std::string(n.op->name) + ")";
    expect(t, {"op", "of", "options", "regions", "results", "type", "cell", "file", "line"});
    if (const auto of = t.find("of"); of != t.end())
      g_.set_operands(n, numbers(*of, "of", first, node_id(g_.nodes.size())));
    else
      g_.set_operands(n, ids{});
    if (const auto o = t.find("options"); o != t.end()) n.attributes = options(*n.op, *o);
    if (const auto owned = t.find("regions"); owned != t.end()) {
      if (array(*owned, "regions").size() > 2) refuse("has more than two regions");
      for (std::size_t k = 0; k < owned->size(); ++k)
        n.regions[k] = std::int32_t(integer((*owned)[k], "regions", 1,
                                            std::max<std::int64_t>(1, std::ssize(g_.regions) - 1)));
      for (std::int32_t q : n.regions)
        if (q >= std::int32_t(g_.regions.size())) refuse("has a region that does not exist");
    }
    if (const auto results = t.find("results"); results != t.end()) {
      list<tensor_type> types;
      for (const tree& k : array(*results, "results")) types.push_back(type(k));
      if (types.empty()) refuse("has an empty list of results");
      if (t.contains("type")) refuse("has both a type and a list of results");
      g_.set_results(n, types);
    } else {
      n.type = type(field(t, "type"));
    }
    if (const auto cell = t.find("cell"); cell != t.end()) n.cell = path(text_of(*cell, "cell"));
    if (const auto line = t.find("line"); line != t.end()) {
      n.line = std::int32_t(integer(*line, "line", 1, std::numeric_limits<std::int32_t>::max()));
      n.file = kept_name(text_of(field(t, "file"), "file"));
    }
    g_.append(n, r);
  }
  const op_info* operation(const std::string& wanted) const {
    if (wanted == input_info_of.name) return &input_info_of;
    if (wanted == get_info_of.name) return &get_info_of;
    for (const op_info* op : known_)
      if (op->name == wanted) return op;
    refuse("applies the unknown operation " + in_quotes(wanted),
           "read it with a Cella that has it, or hand your own operations to load_graph");
  }
  attributes options(const op_info& op, const tree& t) const {
    attributes all;
    try {
      all = options_from_json(op, t);
    } catch (const file_error& e) {
      throw file_error(where_ + ": " + e.what() + "; read it with a Cella of its version");
    }
    if (!op.options) return all;
    const auto bytes = all.as<cella::detail::option_bytes>();
    for (const option_field& f : op.options->fields) {
      if (f.kind != option_kind::extents) continue;
      const auto s = cella::detail::option_at<shape>(bytes, f.offset);
      (void)fitting(dtype::u8, {s.begin(), s.end()});
    }
    if (!op.traits.stored) return all;
    auto values = all.as<values_options>();
    if (values.index < 0 || std::size_t(values.index) >= constants_.size())
      refuse("names the constant tensor " + std::to_string(values.index) +
             ", which does not exist");
    values.index = constants_[std::size_t(values.index)];
    return values;
  }
  name_ref path(const std::string& cell) {
    const auto [found, fresh] = paths_.try_emplace(cell);
    if (fresh) found->second = g_.intern(cell);
    return found->second;
  }

  void read_inputs(const tree& all) {
    where_ = label_;
    const ids inputs = g_.regions[0].inputs;
    if (all.size() != inputs.size())
      refuse("describes " + std::to_string(all.size()) + " inputs, but its main region has " +
             std::to_string(inputs.size()));
    std::array<std::int32_t, role_names.size()> count{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      where_ = label_ + ": input " + std::to_string(i);
      const std::string role = text_of(field(all[i], "role"), "role");
      expect(all[i], {"role", "name"});
      const auto found = std::ranges::find(role_names, role);
      if (found == role_names.end()) refuse("has the unknown role " + in_quotes(role));
      const auto k = std::size_t(found - role_names.begin());
      if (size_of(g_.type(inputs[i]).element) == 0) refuse("has an element type without bytes");
      g_.inputs.push_back(
          {input_role(k), g_.intern(text_of(field(all[i], "name"), "name")), count[k]++});
    }
  }
  void read_outputs(const tree& all) {
    where_ = label_;
    if (all.size() != g_.regions[0].outputs.size())
      refuse("describes " + std::to_string(all.size()) + " outputs, but its main region has " +
             std::to_string(g_.regions[0].outputs.size()));
    for (std::size_t k = 0; k < all.size(); ++k) {
      where_ = label_ + ": output " + std::to_string(k);
      if (!all[k].is_object()) refuse("is no object");
      expect(all[k], {"updates", "name"});
      output_info o;
      if (const auto u = all[k].find("updates"); u != all[k].end()) {
        if (g_.inputs.empty()) refuse("updates an input, but there is none");
        o.updates = std::int32_t(integer(*u, "updates", 0, std::ssize(g_.inputs) - 1));
      }
      if (const auto n = all[k].find("name"); n != all[k].end())
        o.name = g_.intern(text_of(*n, "name"));
      g_.outputs.push_back(o);
    }
  }

  // ---- the whole

  void check_nodes() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (is_applicable(g_, node_id(n))) continue;
      where_ = label_;
      refuse("has a node that its operation does not allow: " +
             std::string(node_line(g_, node_id(n)).view()) +
             cella::detail::options_text(g_.nodes[n]));
    }
    where_ = label_;
    check_owners();
    const text wrong = check(g_);
    if (!wrong.empty()) refuse("does not hold together: " + std::string(wrong.view()));
  }
  /// Only a call may lead back to the region that it stands in: what else owns a region would hold
  /// itself. Regions are walked without recursion, since a file can nest as many as it likes.
  void check_owners() const {
    std::vector<std::vector<int>> owned(g_.regions.size());
    std::vector<int> owners(g_.regions.size());
    for (const node& n : g_.nodes) {
      if (n.op->form == control_form::call) continue;
      for (int q : n.regions)
        if (q >= 0) owned[std::size_t(n.region)].push_back(q), ++owners[std::size_t(q)];
    }
    std::vector<int> free;
    for (std::size_t r = 0; r < owners.size(); ++r)
      if (owners[r] == 0) free.push_back(int(r));
    std::vector<int> depth(owners.size());
    std::size_t done = 0;
    for (; done < free.size(); ++done) {
      const auto r = std::size_t(free[done]);
      if (depth[r] > most_nesting)
        refuse("nests regions deeper than " + std::to_string(most_nesting) + " levels");
      for (int q : owned[r]) {
        depth[std::size_t(q)] = std::max(depth[std::size_t(q)], depth[r] + 1);
        if (--owners[std::size_t(q)] == 0) free.push_back(q);
      }
    }
    if (done < owners.size()) refuse("has a region that owns itself");
  }

  static constexpr int most_nesting = 100;

  const std::string& label_;
  operation_span known_;
  std::string where_;
  graph g_;
  std::vector<std::int32_t> constants_;  ///< places in the graph's pool by those in the file
  std::map<std::string, name_ref, std::less<>> paths_;
};

}  // namespace detail

}  // namespace cella::interop
