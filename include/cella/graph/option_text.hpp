// The options of operations as text: their fields are known by the operation's name.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <charconv>
#include <string>
#include <string_view>

namespace cella::detail {

/// The fields of each operation's options, in order: `name:kind*count=default`. Kinds: f64, i32,
/// `dtype` (i32); `shape`; `axes` (one factor or axis per dimension, -1 ends); `mask` (u32, a
/// set of axes). A field named `-` is not printed, since the result type shows it; neither is one
/// that has its default, nor what lies beyond the rank in lists of eight.
struct option_fields {
  std::string_view op;
  std::string_view fields;
};
// clang-format off
inline constexpr std::string_view pooling_fields =
    "stride:i32*2=1 before:i32*2=0 after:i32*2=0 dilation:i32*2=1 groups:i32=1 kernel:i32*2 extents:i32*2=0 count_padding:i32=1";
inline constexpr std::string_view convolution_fields =
    "stride:i32*2=1 before:i32*2=0 after:i32*2=0 dilation:i32*2=1 groups:i32=1 extents:i32*2=0";
inline constexpr std::array option_table{
    option_fields{"constant",                "value:f64 -:shape -:dtype"},
    option_fields{"iota",                    "-:shape -:dtype axis:i32"},
    option_fields{"broadcast",               "-:shape axes:axes"},
    option_fields{"reshape",                 "-:shape"},
    option_fields{"transpose",               "permutation:axes"},
    option_fields{"slice",                   "-:shape start:i32*8=0 step:i32*8=1"},
    option_fields{"scatter_slice",                   "-:shape start:i32*8=0 step:i32*8=1"},
    option_fields{"concat",                  "axis:i32"},
    option_fields{"cast",                    "-:dtype"},
    option_fields{"one_hot",                 "depth:i32 -:dtype"},
    option_fields{"clamp",                   "low:f64 high:f64"},
    option_fields{"matmul",                  "a:axes b:axes result:axes"},
    option_fields{"conv2d",                  convolution_fields},
    option_fields{"conv2d_input_gradient",   convolution_fields},
    option_fields{"conv2d_weight_gradient",  convolution_fields},
    option_fields{"max_pool",                pooling_fields},
    option_fields{"unpool",                  pooling_fields},
    option_fields{"pool_gather",             pooling_fields},
    option_fields{"average_pool",            pooling_fields},
    option_fields{"average_spread",          pooling_fields},
    option_fields{"sum",                     "axes:mask"},
    option_fields{"max",                     "axes:mask"},
    option_fields{"prod",                    "axes:mask"},
    option_fields{"argmax",                  "axis:i32"},
    option_fields{"cumsum",                  "axis:i32 reverse:i32=0 exclusive:i32=0"},
    option_fields{"softmax",                 "axis:i32"},
    option_fields{"log_softmax",             "axis:i32"},
    option_fields{"random_key",              "stream:i32 step:i32=0 count:i32=0"},
    option_fields{"random_uniform",          "-:shape -:dtype stream:i32"},
    option_fields{"min",                     "axes:mask"},
    option_fields{"argmin",                  "axis:i32"},
    option_fields{"linear_recurrence",       "axis:i32 reverse:i32=0"},
    option_fields{"gather",                  "axis:i32 -:i32 -:i32"},
    option_fields{"scatter",                 "axis:i32 -:i32 -:i32"},
    option_fields{"gather_elements",         "axis:i32 -:i32 -:i32"},
    option_fields{"scatter_elements",        "-:shape axis:i32"},
    option_fields{"get",                     "result:i32"},
    option_fields{"scan",                    "carries:i32 xs:i32 length:i32 reverse:i32=0 recompute:i32=0"},
    option_fields{"while_loop",              "carries:i32 max_steps:i32=0"},
    option_fields{"call",                    "recompute:i32=0"},
    option_fields{"pack",                    "-:shape"},
    option_fields{"unpack",                  "-:shape"},
};
// clang-format on

inline std::string number(double v) {
  std::array<char, 32> s{};
  const auto end = std::to_chars(s.data(), s.data() + s.size(), v).ptr;
  return {s.data(), end};
}

using option_bytes = std::array<signed char, sizeof(attribute_words)>;

/// Reads the values of a node's options, field by field.
class option_reader {
 public:
  struct field {
    std::string name;
    std::string values;  ///< `3`, `[1,2]` or a word; valid JSON unless it is a word
    bool is_word{};
  };

  explicit option_reader(const node& n)
      : bytes_(n.attributes.as<option_bytes>()), rank_(n.type.rank()) {
    for (const option_fields& o : option_table) {
      if (o.op != n.op->name) continue;
      read_all(o.fields);
      return;
    }
    read_unknown();
  }
  const list<field>& fields() const { return fields_; }

 private:
  template <class T>
  T next() {
    T v{};
    std::copy_n(bytes_.begin() + at_, sizeof(T), reinterpret_cast<char*>(&v));
    at_ += std::ptrdiff_t(sizeof(T));
    return v;
  }
  static std::string_view cut(std::string_view& s, char at) {
    const std::size_t n = s.find(at);
    const std::string_view head = s.substr(0, n);
    s = n == s.npos ? std::string_view() : s.substr(n + 1);
    return head;
  }
  void read_all(std::string_view list) {
    while (!list.empty()) {
      std::string_view f = cut(list, ' ');
      const std::string_view label = cut(f, ':');
      std::string_view kind = cut(f, '=');
      const std::string_view one = cut(kind, '*');
      read(label, one, kind.empty() ? 1 : kind[0] - '0', f);
    }
  }
  void read(std::string_view label, std::string_view kind, int count, std::string_view standard) {
    list<std::string> values;
    if (kind == "shape") {
      rank_ = next<std::int32_t>();
      for (int i = 0; i < max_rank; ++i) values.push_back(std::to_string(next<std::int32_t>()));
    } else if (kind == "axes") {
      for (int i = 0; i < max_rank; ++i) {
        const auto axis = next<std::int8_t>();
        if (axis >= 0) values.push_back(std::to_string(int(axis)));
      }
      count = 0;
    } else if (kind == "mask") {
      const auto mask = next<std::uint32_t>();
      for (int i = 0; i < max_rank; ++i) {
        if (mask >> i & 1) values.push_back(std::to_string(i));
      }
      count = 0;
    } else {
      for (int i = 0; i < count; ++i) {
        values.push_back(kind == "f64" ? number(next<double>())
                                       : std::to_string(next<std::int32_t>()));
      }
      if (count == max_rank) values.resize(std::size_t(rank_));
    }
    if (label == "-") return;
    bool is_standard = !standard.empty();
    for (const std::string& v : values) is_standard &= v == standard;
    if (is_standard) return;
    if (count == 1) return fields_.push_back({std::string(label), values[0], false});
    std::string list = "[";
    for (const std::string& v : values) list += (list.size() > 1 ? "," : "") + v;
    fields_.push_back({std::string(label), list + "]", false});
  }
  /// Options of an operation that the table does not know, as words in hexadecimal.
  void read_unknown() {
    attribute_words words{};
    for (std::int32_t& w : words) w = next<std::int32_t>();
    std::size_t used = words.size();
    while (used && words[used - 1] == 0) --used;
    if (used == 0) return;
    std::string s;
    for (std::size_t i = 0; i < used; ++i) {
      std::array<char, 12> hex{};
      std::snprintf(hex.data(), hex.size(), "%s%08x", i ? " " : "", unsigned(words[i]));
      s += hex.data();
    }
    fields_.push_back({"words", s, true});
  }

  option_bytes bytes_;
  std::ptrdiff_t at_{};
  int rank_{};
  list<field> fields_;
};

/// `ij,kj->ik` for the three lists of factors of a contraction.
inline std::string contraction_letters(const node& n) {
  const auto bytes = n.attributes.as<option_bytes>();
  std::string s;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < std::size_t(max_rank); ++i) {
      const int f = bytes[k * std::size_t(max_rank) + i];
      if (f >= 0) s += char('i' + f);
    }
    if (k < 2) s += k == 0 ? "," : "->";
  }
  return s;
}

/// Options behind a node: ` {axis=1}`, empty if there are none to tell.
inline std::string options_text(const node& n) {
  if (n.op->name == "matmul") return " {" + contraction_letters(n) + "}";
  const option_reader options(n);
  std::string s;
  for (const auto& f : options.fields()) {
    s += s.empty() ? " {" : ", ";
    s += f.name + "=" + f.values;
  }
  return s.empty() ? s : s + "}";
}

}  // namespace cella::detail
