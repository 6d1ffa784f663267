// Attributes of an ONNX operator as plain values, without protobuf.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cella {

/// What ONNX calls INT, FLOAT (of 32 bits), STRING, INTS, FLOATS, and an element type, which ONNX
/// writes as an INT.
using onnx_value = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                                std::vector<float>, dtype>;

/// TensorProto.DataType of ONNX, and back: -1 and `tuple` for what the other does not have.
constexpr std::int64_t onnx_code(dtype t);
constexpr dtype dtype_of_onnx(std::int64_t code);

/// Named values of one operator, in the order in which they were set. Whoever reads one that is
/// there, but of another kind or beyond what the library can hold, gets a `file_error` that names
/// operator and attribute.
class onnx_attributes {
 public:
  explicit onnx_attributes(std::string_view op) : op_(op) {}

  void set(std::string_view name, onnx_value value) {
    values_.emplace_back(name, std::move(value));
  }
  void set(std::string_view name, std::same_as<std::int32_t> auto value) {
    set(name, onnx_value(std::int64_t{value}));
  }
  const std::vector<std::pair<std::string, onnx_value>>& values() const { return values_; }
  /// Null if it is not there.
  const onnx_value* find(std::string_view name) const {
    const auto v = std::ranges::find(values_, name, &std::pair<std::string, onnx_value>::first);
    return v == values_.end() ? nullptr : &v->second;
  }

  std::int32_t integer(std::string_view name, std::int32_t otherwise) const {
    const onnx_value* v = find(name);
    return v ? narrow(name, get<std::int64_t>(name, *v, "an INT")) : otherwise;
  }
  float number(std::string_view name, float otherwise) const {
    const onnx_value* v = find(name);
    return v ? get<float>(name, *v, "a FLOAT") : otherwise;
  }
  std::string string(std::string_view name, std::string_view otherwise) const {
    const onnx_value* v = find(name);
    return v ? get<std::string>(name, *v, "a STRING") : std::string(otherwise);
  }
  std::vector<std::int32_t> integers(std::string_view name,
                                     std::vector<std::int32_t> otherwise) const {
    const onnx_value* v = find(name);
    if (!v) return otherwise;
    std::vector<std::int32_t> all;
    for (std::int64_t i : get<std::vector<std::int64_t>>(name, *v, "INTS"))
      all.push_back(narrow(name, i));
    return all;
  }
  template <std::size_t N>
  std::array<std::int32_t, N> integers(std::string_view name,
                                       const std::array<std::int32_t, N>& otherwise) const {
    const auto all = integers(name, std::vector(otherwise.begin(), otherwise.end()));
    if (all.size() != N) refuse(name, "has another length than " + std::to_string(N));
    std::array<std::int32_t, N> to{};
    std::ranges::copy(all, to.begin());
    return to;
  }
  /// An element type, which must be there.
  dtype element(std::string_view name) const {
    const onnx_value* v = find(name);
    if (!v) refuse(name, "is missing");
    if (const auto* t = std::get_if<dtype>(v)) return *t;
    const dtype t = dtype_of_onnx(get<std::int64_t>(name, *v, "an INT"));
    if (t == dtype::tuple) refuse(name, "names an element type that Cella lacks");
    return t;
  }
  /// An axis of a tensor of this rank, counted from the first one.
  std::int32_t axis(std::string_view name, std::int32_t otherwise, int rank) const {
    return axis_of(name, integer(name, otherwise), rank);
  }
  std::int32_t axis_of(std::string_view name, std::int32_t axis, int rank) const {
    if (axis < -rank || axis >= rank)
      refuse(name, "names axis " + std::to_string(axis) + " of " + std::to_string(rank));
    return axis < 0 ? axis + rank : axis;
  }

  /// Refuses all attributes but these.
  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : values_)
      if (std::ranges::find(known, name) == known.end()) refuse(name, "is unknown to Cella");
  }
  /// Refuses an integer that is not `value`, the one that the library's operation has.
  void must_be(std::string_view name, std::int32_t value, std::int32_t otherwise) const {
    if (integer(name, otherwise) != value)
      refuse(name, "must be " + std::to_string(value) + " here");
  }
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const {
    throw file_error("the attribute \"" + std::string(name.substr(0, 40)) +
                     "\" of the ONNX operator " + op_ + " " + why);
  }

  friend bool operator==(const onnx_attributes&, const onnx_attributes&) = default;

 private:
  template <class T>
  const T& get(std::string_view name, const onnx_value& v, const char* kind) const {
    if (!std::holds_alternative<T>(v)) refuse(name, std::string("must be ") + kind);
    return std::get<T>(v);
  }
  std::int32_t narrow(std::string_view name, std::int64_t v) const {
    if (v < std::numeric_limits<std::int32_t>::min() ||
        v > std::numeric_limits<std::int32_t>::max())
      refuse(name, "is larger than 32 bits");
    return std::int32_t(v);
  }

  std::string op_;
  std::vector<std::pair<std::string, onnx_value>> values_;
};

namespace detail {
inline constexpr std::array<std::pair<dtype, std::int64_t>, 9> onnx_codes{{{dtype::f32, 1},
                                                                           {dtype::u8, 2},
                                                                           {dtype::i8, 3},
                                                                           {dtype::i32, 6},
                                                                           {dtype::i64, 7},
                                                                           {dtype::boolean, 9},
                                                                           {dtype::f16, 10},
                                                                           {dtype::f64, 11},
                                                                           {dtype::bf16, 16}}};
}  // namespace detail

constexpr std::int64_t onnx_code(dtype t) {
  for (const auto& [element, code] : detail::onnx_codes)
    if (element == t) return code;
  return -1;
}
constexpr dtype dtype_of_onnx(std::int64_t wanted) {
  for (const auto& [element, code] : detail::onnx_codes)
    if (code == wanted) return element;
  return dtype::tuple;
}

}  // namespace cella
