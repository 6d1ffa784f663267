// Attributes of an ONNX operator as plain values, without protobuf.
#pragma once

#include <array>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace cella {

/// What ONNX calls INT, FLOAT (of 32 bits), STRING, INTS and FLOATS, and an element type, which
/// ONNX writes as an INT.
enum class onnx_kind : std::uint8_t { integer, number, string, integers, numbers, element };

/// A value of one of these kinds. Not a std::variant, which every file with operations would have
/// to parse.
struct onnx_value {
  onnx_kind kind{};
  dtype element{};
  float number{};
  std::int64_t integer{};
  std::string string;
  list<std::int64_t> integers;
  list<float> numbers;

  onnx_value(std::int64_t v) : kind(onnx_kind::integer), integer(v) {}
  onnx_value(std::int32_t v) : onnx_value(std::int64_t{v}) {}
  onnx_value(float v) : kind(onnx_kind::number), number(v) {}
  onnx_value(std::string v) : kind(onnx_kind::string), string(std::move(v)) {}
  onnx_value(const char* v) : onnx_value(std::string(v)) {}
  onnx_value(list<std::int64_t> v) : kind(onnx_kind::integers), integers(std::move(v)) {}
  onnx_value(list<float> v) : kind(onnx_kind::numbers), numbers(std::move(v)) {}
  onnx_value(dtype v) : kind(onnx_kind::element), element(v) {}

  friend bool operator==(const onnx_value&, const onnx_value&) = default;
};
struct onnx_attribute {
  std::string name;
  onnx_value value;
  friend bool operator==(const onnx_attribute&, const onnx_attribute&) = default;
};

/// TensorProto.DataType of ONNX, and back: -1 and `tuple` for what the other does not have.
constexpr std::int64_t onnx_code(dtype t);
constexpr dtype dtype_of_onnx(std::int64_t code);

/// Named values of one operator, in the order in which they were set. Whoever reads one that is
/// there, but of another kind or beyond what the library can hold, gets a `file_error` that names
/// operator and attribute.
class onnx_attributes {
 public:
  explicit onnx_attributes(std::string_view op) : op_(op) {}

  void set(std::string_view name, onnx_value value);
  const list<onnx_attribute>& values() const { return values_; }
  /// Null if it is not there.
  const onnx_value* find(std::string_view name) const;

  std::int32_t integer(std::string_view name, std::int32_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::string string(std::string_view name, const char* otherwise) const;
  /// Empty if it is not there.
  list<std::int32_t> integers(std::string_view name) const;
  template <std::size_t N>
  std::array<std::int32_t, N> integers(std::string_view name,
                                       std::array<std::int32_t, N> otherwise) const {
    if (!find(name)) return otherwise;
    const list<std::int32_t> all = integers(name);
    if (all.size() != N) refuse(name, "has another length than " + std::to_string(N));
    for (std::size_t i = 0; i < N; ++i) otherwise[i] = all[i];
    return otherwise;
  }
  /// An element type, which must be there.
  dtype element(std::string_view name) const;
  /// An axis of a tensor of this rank, counted from the first one.
  std::int32_t axis(std::string_view name, std::int32_t otherwise, int rank) const;
  std::int32_t axis_of(std::string_view name, std::int32_t axis, int rank) const;

  /// Refuses all attributes but these.
  void only(std::initializer_list<std::string_view> known) const;
  /// Refuses an integer that is not `value`, the one that the library's operation has.
  void must_be(std::string_view name, std::int32_t value, std::int32_t otherwise) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const;

  friend bool operator==(const onnx_attributes&, const onnx_attributes&) = default;

 private:
  const onnx_value* find(std::string_view name, onnx_kind kind, const char* called) const;
  std::int32_t narrow(std::string_view name, std::int64_t v) const;

  std::string op_;
  list<onnx_attribute> values_;
};

namespace detail {
inline constexpr std::array<std::pair<dtype, std::int64_t>, 15> onnx_codes{{{dtype::f32, 1},
                                                                            {dtype::u8, 2},
                                                                            {dtype::i8, 3},
                                                                            {dtype::u16, 4},
                                                                            {dtype::i16, 5},
                                                                            {dtype::i32, 6},
                                                                            {dtype::i64, 7},
                                                                            {dtype::boolean, 9},
                                                                            {dtype::f16, 10},
                                                                            {dtype::f64, 11},
                                                                            {dtype::u32, 12},
                                                                            {dtype::u64, 13},
                                                                            {dtype::c64, 14},
                                                                            {dtype::c128, 15},
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

#if CELLA_HAS_BODIES
#include <cella/graph/onnx_attributes_body.hpp>
#endif
