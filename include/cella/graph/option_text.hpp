// The options of a node as text and as JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/graph.hpp>
#include <cella/graph/options.hpp>
#include <charconv>
#include <string>
#include <vector>

namespace cella::detail {

/// The shortest text that reads as the same number of this type.
template <class T>
std::string number(T v) {
  std::array<char, 32> s{};
  const auto end = std::to_chars(s.data(), s.data() + s.size(), v).ptr;
  return {s.data(), end};
}

using option_bytes = std::array<char, sizeof(attribute_words)>;

template <class T>
T option_at(const option_bytes& bytes, int offset) {
  T v{};
  std::copy_n(bytes.data() + offset, sizeof(T), reinterpret_cast<char*>(&v));
  return v;
}

/// The values of a field, each as it is printed.
inline std::vector<std::string> option_values(const option_bytes& from, const option_field& f) {
  std::vector<std::string> all;
  switch (f.kind) {
    case option_kind::number:
      all.push_back(number(option_at<double>(from, f.offset)));
      break;
    case option_kind::integer:
      for (int i = 0; i < f.count; ++i)
        all.push_back(std::to_string(option_at<std::int32_t>(from, f.offset + 4 * i)));
      break;
    case option_kind::element:
      all.emplace_back(name(option_at<stored_dtype>(from, f.offset)));
      break;
    case option_kind::extents: {
      const auto s = option_at<shape>(from, f.offset);
      for (std::int32_t e : s) all.push_back(std::to_string(e));
      break;
    }
    case option_kind::axes:
      for (std::int8_t a : option_at<std::array<std::int8_t, max_rank>>(from, f.offset))
        if (a >= 0) all.push_back(std::to_string(int(a)));
      break;
    case option_kind::axis_set:
      for (int i = 0; i < max_rank; ++i)
        if (option_at<std::uint32_t>(from, f.offset) >> i & 1) all.push_back(std::to_string(i));
      break;
    case option_kind::characters:
      all.emplace_back(from.data() + f.offset);
      break;
  }
  return all;
}

/// An option that is worth telling: `[1,2]` or a word.
struct told_option {
  std::string_view name;
  std::string value;
  bool quoted{};  ///< JSON lacks infinities and NaN, and strings have quotes
};

/// Not told are types and extents, which the node's type shows, what has its default (an axis has
/// none), and what lies beyond the tensor's rank in lists of an entry for each axis.
inline std::vector<told_option> told_options(const node& n) {
  std::vector<told_option> told;
  if (!n.op->options || n.op->traits.stored) return told;
  const auto bytes = n.attributes.as<option_bytes>();
  const auto defaults = n.op->options->defaults.as<option_bytes>();
  int rank = n.type.rank();
  for (const option_field& f : n.op->options->fields) {
    if (f.kind == option_kind::extents) rank = option_at<shape>(bytes, f.offset).rank;
    if (f.kind == option_kind::extents || f.kind == option_kind::element) continue;
    auto values = option_values(bytes, f);
    const bool has_default =
        (f.kind == option_kind::integer && f.name != "axis" && f.name != "result") ||
        f.kind == option_kind::characters;
    if (has_default && values == option_values(defaults, f)) continue;
    if (f.count == max_rank) values.resize(std::size_t(rank));
    const bool word = f.kind == option_kind::characters ||
                      (f.kind == option_kind::number && values[0].find('n') != std::string::npos);
    const bool single = f.kind == option_kind::number || f.kind == option_kind::characters ||
                        (f.kind == option_kind::integer && f.count == 1);
    std::string list = single ? values[0] : "[";
    for (std::size_t i = 0; !single && i < values.size(); ++i) list += (i ? "," : "") + values[i];
    told.push_back({f.name, single ? list : list + "]", word});
  }
  return told;
}

/// A constant tensor's first values, as many as are worth telling.
inline std::vector<std::string> first_values(const graph& g, node_id id) {
  constexpr std::size_t most = 8;
  const tensor_type t = g.type(id);
  std::vector<std::string> all;
  with_element(t.element, [&]<class T>() {
    for_each_element<T>(
        g.values_of(id), std::min(most, std::size_t(t.size())), [&](std::size_t, T x) {
          if constexpr (std::is_integral_v<T>)
            all.push_back(std::to_string(x));
          else if constexpr (is_complex(dtype_of<T>))
            all.push_back("(" + number(x.real()) + "," + number(x.imag()) + ")");
          else
            all.push_back(number(std::conditional_t<sizeof(T) == 8, double, float>(x)));
        });
  });
  return all;
}
/// What a constant tensor holds: ` {0.5, 1, 2}`; of many values the first and how many there are:
/// ` {0, 1, 2, 3, 4, 5, 6, 7, ... 4096 values}`. Empty for other nodes.
inline std::string values_text(const graph& g, node_id id) {
  if (!g.nodes[std::size_t(id)].op->traits.stored) return {};
  const auto first = first_values(g, id);
  std::string s;
  for (const std::string& v : first) s += (s.empty() ? " {" : ", ") + v;
  const auto count = std::size_t(g.type(id).size());
  if (count > first.size()) s += ", ... " + std::to_string(count) + " values";
  return s + "}";
}

/// Whether options are the three lists of factors of a contraction.
inline bool is_contraction(const node& n) {
  return n.op->options && n.op->options->fields.size() == 3 &&
         std::ranges::all_of(n.op->options->fields,
                             [](const option_field& f) { return f.kind == option_kind::axes; });
}
/// `ij,kj->ik`
inline std::string contraction_letters(const node& n) {
  const auto bytes = n.attributes.as<option_bytes>();
  std::string s;
  for (std::size_t k = 0; k < 3; ++k) {
    for (int f :
         option_at<std::array<std::int8_t, max_rank>>(bytes, n.op->options->fields[k].offset))
      if (f >= 0) s += char('i' + f);
    if (k < 2) s += k == 0 ? "," : "->";
  }
  return s;
}

/// Options behind a node: ` {axis=1}`, empty if there are none to tell.
inline std::string options_text(const node& n) {
  if (is_contraction(n)) return " {" + contraction_letters(n) + "}";
  std::string s;
  for (const told_option& o : told_options(n))
    s += (s.empty() ? " {" : ", ") + std::string(o.name) + "=" + o.value;
  return s.empty() ? s : s + "}";
}

}  // namespace cella::detail
