// Options of operations as attributes of ONNX operators, and back.
#pragma once

#include <cella/graph/onnx_attributes.hpp>
#include <cella/graph/option_text.hpp>
#include <cstring>

namespace cella {

/// The attributes of the ONNX operator that `op.onnx` names, for options of an operation on
/// operands of these types: by its rule, or a field each where it has none. Throws `error` where
/// ONNX has no such operator, or has operands and tensors in place of the options.
inline onnx_attributes onnx_attributes_of(const op_info& op, span<const tensor_type> types,
                                          const attributes& options);

/// The options that attributes of the ONNX operator mean. Throws `error` as above, and `file_error`
/// for an attribute that is unknown or means what the operation alone cannot do.
inline attributes options_from_onnx(const op_info& op, span<const tensor_type> types,
                                    const onnx_attributes& from);

namespace detail {

/// Operators of domains other than ONNX's own are whatever their operation is: their attributes are
/// its fields. Of ONNX's own an `axis` is one in both.
inline bool fields_are_attributes(const op_info& op) {
  if (!op.options || !op.onnx.domain.empty()) return true;
  return op.options->fields.size() == 1 && op.options->fields[0].name == "axis";
}

inline onnx_value field_to_onnx(const option_bytes& bytes, const option_field& f) {
  list<std::int64_t> all;
  switch (f.kind) {
    case option_kind::number:
      return float(option_at<double>(bytes, f.offset));
    case option_kind::element:
      return dtype(option_at<stored_dtype>(bytes, f.offset));
    case option_kind::characters:
      return option_values(bytes, f)[0];
    case option_kind::integer:
      if (f.count == 1) return std::int64_t{option_at<std::int32_t>(bytes, f.offset)};
      break;
    default:
      break;
  }
  for (const std::string& v : option_values(bytes, f)) all.push_back(std::stoll(v));
  return all;
}

inline void field_from_onnx(option_bytes& bytes, const option_field& f, int rank,
                            const onnx_attributes& from) {
  auto put = [&](const auto& value) { std::memcpy(bytes.data() + f.offset, &value, sizeof value); };
  auto axes = [&] {
    const auto all = from.integers(f.name);
    if (all.size() > max_rank) from.refuse(f.name, "has more than 8 axes");
    return all;
  };
  switch (f.kind) {
    case option_kind::number:
      return put(double(from.number(f.name, 0)));
    case option_kind::element:
      return put(stored_dtype{std::int32_t(from.element(f.name))});
    case option_kind::integer: {
      if (f.name == "axis") return put(from.axis(f.name, 0, rank));
      if (f.count == 1) return put(from.integer(f.name, 0));
      const auto all = from.integers(f.name);
      if (all.size() != std::size_t(f.count)) from.refuse(f.name, "has another length");
      std::memcpy(bytes.data() + f.offset, all.data(), 4 * all.size());
      return;
    }
    case option_kind::extents: {
      shape s;
      for (std::int32_t e : axes()) {
        if (e < 0) from.refuse(f.name, "has a negative extent");
        s.push_back(e);
      }
      return put(s);
    }
    case option_kind::axes: {
      std::array<std::int8_t, max_rank> list;
      list.fill(-1);
      std::size_t n = 0;
      for (std::int32_t a : axes()) list[n++] = std::int8_t(from.axis_of(f.name, a, 127));
      return put(list);
    }
    case option_kind::axis_set: {
      std::uint32_t set = 0;
      for (std::int32_t a : axes()) set |= 1u << from.axis_of(f.name, a, max_rank);
      return put(set);
    }
    case option_kind::characters: {
      const std::string s = from.string(f.name, "");
      if (s.size() >= std::size_t(f.count)) from.refuse(f.name, "is too long");
      std::memset(bytes.data() + f.offset, 0, std::size_t(f.count));
      std::memcpy(bytes.data() + f.offset, s.data(), s.size());
      return;
    }
  }
}

inline void require_onnx(const op_info& op, bool by_rule) {
  if (op.onnx.name.empty())
    throw error("the operation \"" + std::string(op.name) + "\" has no counterpart in ONNX");
  if (!by_rule && !fields_are_attributes(op))
    throw error("the options of the operation \"" + std::string(op.name) +
                "\" are operands of the ONNX operator " + std::string(op.onnx.name) +
                ", and no attributes");
}

}  // namespace detail

inline onnx_attributes onnx_attributes_of(const op_info& op, span<const tensor_type> types,
                                          const attributes& options) {
  detail::require_onnx(op, op.write_onnx);
  onnx_attributes all(op.onnx.name);
  if (op.write_onnx) {
    op.write_onnx(types, options, all);
  } else if (op.options) {
    const auto bytes = options.as<detail::option_bytes>();
    for (const option_field& f : op.options->fields)
      all.set(f.name, detail::field_to_onnx(bytes, f));
  }
  return all;
}

inline attributes options_from_onnx(const op_info& op, span<const tensor_type> types,
                                    const onnx_attributes& from) {
  detail::require_onnx(op, op.read_onnx);
  if (op.read_onnx) return op.read_onnx(types, from);
  const span<const option_field> fields =
      op.options ? op.options->fields : span<const option_field>{};
  detail::option_bytes bytes{};
  if (op.options) bytes = op.options->defaults.as<detail::option_bytes>();
  for (const auto& [name, value] : from.values()) {
    const auto f = std::ranges::find(fields, std::string_view(name), &option_field::name);
    if (f == fields.end()) from.refuse(name, "is unknown to Cella");
    detail::field_from_onnx(bytes, *f, types.empty() ? 0 : types[0].rank(), from);
  }
  return std::bit_cast<attributes>(bytes);
}

}  // namespace cella
