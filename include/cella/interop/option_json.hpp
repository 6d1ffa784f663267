// Options as JSON that is complete, both ways: an object with a member for each field. Needs
// nlohmann/json.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/graph/error.hpp>
#include <cella/graph/option_text.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace cella {

/// The fields of options in their order: numbers as numbers, those that JSON lacks as "inf",
/// "-inf", "nan", and by its bits, "nan:fff8000000000001", if it is not the usual NaN; extents,
/// axes, sets of axes and several integers as lists; element types by name; strings as they are.
/// Without options: an empty object.
inline nlohmann::ordered_json options_to_json(const op_info& op, const attributes& options);

/// The options that `options_to_json` wrote, or somebody else in any order: a field that is missing
/// has its default. Throws `file_error` if a field is unknown or has a value that it cannot have;
/// the sentence names the operation and the field.
inline attributes options_from_json(const op_info& op, const nlohmann::ordered_json& from);

namespace detail {

using json_value = nlohmann::ordered_json;

/// How JSON spells the numbers that it lacks.
struct named_number {
  std::string_view name;
  double value{};
};
inline constexpr std::array<named_number, 3> named_numbers{
    {{"inf", std::numeric_limits<double>::infinity()},
     {"-inf", -std::numeric_limits<double>::infinity()},
     {"nan", std::numeric_limits<double>::quiet_NaN()}}};

/// In front of the bits of a NaN that is not the usual one: its sign or its payload says something.
inline constexpr std::string_view other_nan = "nan:";

inline json_value number_to_json(double v) {
  if (std::isfinite(v)) return v;
  for (const named_number& n : named_numbers)
    if (std::bit_cast<std::uint64_t>(v) == std::bit_cast<std::uint64_t>(n.value)) return n.name;
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), std::bit_cast<std::uint64_t>(v), 16);
  return std::string(other_nan).append(digits.begin(), end.ptr);
}
/// The NaN that `number_to_json` spelled by its bits; 0 if it spelled none so.
inline double nan_called(std::string_view s) {
  if (!s.starts_with(other_nan)) return 0;
  s.remove_prefix(other_nan.size());
  std::uint64_t bits = 0;
  const auto end = std::from_chars(s.data(), s.data() + s.size(), bits, 16);
  const auto v = std::bit_cast<double>(bits);
  return end.ec == std::errc{} && end.ptr == s.data() + s.size() && std::isnan(v) ? v : 0;
}

/// The values of a list with room for `count`, as far as `is_value` holds.
template <class List, class Condition>
json_value list_to_json(const List& values, std::size_t count, Condition is_value) {
  json_value all = json_value::array();
  for (std::size_t i = 0; i < count && is_value(values[i]); ++i) all.push_back(values[i]);
  return all;
}

inline json_value option_to_json(const option_bytes& bytes, const option_field& f) {
  switch (f.kind) {
    case option_kind::number:
      return number_to_json(option_at<double>(bytes, f.offset));
    case option_kind::integer: {
      if (f.count == 1) return option_at<std::int32_t>(bytes, f.offset);
      json_value all = json_value::array();
      for (int i = 0; i < f.count; ++i)
        all.push_back(option_at<std::int32_t>(bytes, f.offset + 4 * i));
      return all;
    }
    case option_kind::element:
      return name(option_at<stored_dtype>(bytes, f.offset));
    case option_kind::extents: {
      const auto s = option_at<shape>(bytes, f.offset);
      return list_to_json(s.extents, std::size_t(s.rank), [](int) { return true; });
    }
    case option_kind::axes: {
      const auto axes = option_at<std::array<std::int8_t, max_rank>>(bytes, f.offset);
      return list_to_json(axes, axes.size(), [](std::int8_t a) { return a >= 0; });
    }
    case option_kind::axis_set: {
      json_value all = json_value::array();
      for (int i = 0; i < 32; ++i)
        if (option_at<std::uint32_t>(bytes, f.offset) >> i & 1) all.push_back(i);
      return all;
    }
    case option_kind::characters: {
      const std::string_view all(bytes.data() + f.offset, std::size_t(f.count));
      return all.substr(0, all.find('\0'));
    }
  }
  return nullptr;
}

/// Reads one field, and says which one it is when the value is none that it can have.
class option_json_reader {
 public:
  option_json_reader(const op_info& op, const option_field& f, const json_value& from)
      : op_(op), field_(f), from_(from) {}

  void read(option_bytes& bytes) const {
    auto put = [&](const auto& value) {
      std::memcpy(bytes.data() + field_.offset, &value, sizeof value);
    };
    switch (field_.kind) {
      case option_kind::number:
        put(number());
        break;
      case option_kind::integer: {
        if (field_.count == 1) {
          put(integer(from_, lowest, highest));
          break;
        }
        const auto all = integers(std::size_t(field_.count), lowest, highest);
        if (all.size() != std::size_t(field_.count)) refuse();
        std::memcpy(bytes.data() + field_.offset, all.data(), 4 * all.size());
        break;
      }
      case option_kind::element:
        put(element());
        break;
      case option_kind::extents: {
        shape s;
        for (std::int32_t e : integers(max_rank, 0, highest)) s.push_back(e);
        put(s);
        break;
      }
      case option_kind::axes: {
        std::array<std::int8_t, max_rank> axes;
        axes.fill(-1);
        std::ranges::transform(integers(max_rank, 0, 127), axes.begin(),
                               [](std::int32_t a) { return std::int8_t(a); });
        put(axes);
        break;
      }
      case option_kind::axis_set: {
        std::uint32_t set = 0;
        for (std::int32_t a : integers(32, 0, 31)) set |= 1u << a;
        put(set);
        break;
      }
      case option_kind::characters: {
        if (!from_.is_string()) refuse();
        const auto s = from_.get<std::string>();
        // A zero ends a string, so one must fit behind it.
        if (s.size() >= std::size_t(field_.count) || s.find('\0') != s.npos) refuse();
        const auto to = bytes.begin() + field_.offset;
        std::fill_n(std::copy(s.begin(), s.end(), to), std::size_t(field_.count) - s.size(), '\0');
        break;
      }
    }
  }

 private:
  static constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  static constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

  double number() const {
    if (from_.is_number()) return from_.get<double>();
    for (const named_number& n : named_numbers)
      if (from_ == n.name) return n.value;
    const double v = from_.is_string() ? nan_called(from_.get_ref<const std::string&>()) : 0;
    if (!std::isnan(v)) refuse();
    return v;
  }
  std::int32_t integer(const json_value& v, std::int32_t low, std::int32_t high) const {
    // What does not fit 64 bits is a floating-point number to the parser, or unsigned.
    if (!v.is_number_integer()) refuse();
    if (v.is_number_unsigned() && v.get<std::uint64_t>() > std::uint64_t(high)) refuse();
    const auto i = v.get<std::int64_t>();
    if (i < low || i > high) refuse();
    return std::int32_t(i);
  }
  std::vector<std::int32_t> integers(std::size_t most, std::int32_t low, std::int32_t high) const {
    if (!from_.is_array() || from_.size() > most) refuse();
    std::vector<std::int32_t> all;
    for (const json_value& v : from_) all.push_back(integer(v, low, high));
    return all;
  }
  stored_dtype element() const {
    for (int t = 0; t < dtype_count; ++t)
      if (from_ == name(dtype(t))) return {t};
    refuse();
  }
  std::string wanted() const {
    const std::string count = std::to_string(field_.count);
    switch (field_.kind) {
      case option_kind::number:
        return R"(a number, "inf", "-inf" or "nan")";
      case option_kind::integer:
        return field_.count == 1 ? "an integer of 32 bits" : "a list of " + count + " integers";
      case option_kind::element:
        return "the name of an element type";
      case option_kind::extents:
        return "a list of at most 8 extents";
      case option_kind::axes:
        return "a list of at most 8 axes";
      case option_kind::axis_set:
        return "a list of axes";
      case option_kind::characters:
        return "a string of less than " + count + " bytes";
    }
    return "";
  }
  [[noreturn]] void refuse() const {
    const std::string value = from_.dump(-1, ' ', false, json_value::error_handler_t::replace);
    throw file_error("the options of the operation \"" + std::string(op_.name) +
                     "\" have in the field \"" + std::string(field_.name) + "\" the value " +
                     value.substr(0, 60) + "; it must be " + wanted());
  }

  const op_info& op_;
  const option_field& field_;
  const json_value& from_;
};

}  // namespace detail

inline nlohmann::ordered_json options_to_json(const op_info& op, const attributes& options) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  if (!op.options) return all;
  const auto bytes = options.as<detail::option_bytes>();
  for (const option_field& f : op.options->fields)
    all[std::string(f.name)] = detail::option_to_json(bytes, f);
  return all;
}

inline attributes options_from_json(const op_info& op, const nlohmann::ordered_json& from) {
  const std::string these = "the options of the operation \"" + std::string(op.name) + "\" ";
  if (!from.is_object()) throw file_error(these + "are no JSON object");
  const span<const option_field> fields =
      op.options ? op.options->fields : span<const option_field>{};
  detail::option_bytes bytes{};
  if (op.options) bytes = op.options->defaults.as<detail::option_bytes>();
  for (const auto& [name, value] : from.items()) {
    const auto f = std::ranges::find(fields, std::string_view(name), &option_field::name);
    if (f == fields.end())
      throw file_error(these + "have an unknown field \"" + name.substr(0, 40) + "\"");
    detail::option_json_reader(op, *f, value).read(bytes);
  }
  return std::bit_cast<attributes>(bytes);
}

}  // namespace cella
