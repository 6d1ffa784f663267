// Options as bytes that stay readable when structs change: each field with its name and kind,
// little endian.
#pragma once

#include <bit>
#include <cella/graph/error.hpp>
#include <cella/graph/option_text.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace cella {

/// The fields of options as `[count]`, then for each field `[length of the
/// name][name][kind][bytes]` and its value. Element types stand by name.
inline std::vector<std::byte> write_options(const op_info& op, const attributes& options);

/// The options that `write_options` wrote, perhaps by another version of the operation: a field
/// that is missing has its default. Throws `file_error` if a field is unknown, of another kind or
/// size, or cut.
inline attributes read_options(const op_info& op, span<const std::byte> from);

namespace detail {

static_assert(std::endian::native == std::endian::little, "cella: files are little endian");

/// Reads bytes in order, and says of which operation's options it is when they end.
class option_parser {
 public:
  option_parser(const op_info& op, span<const std::byte> from) : op_(op), rest_(from) {}

  bool done() const { return rest_.empty(); }
  template <class T>
  T next() {
    T v{};
    std::memcpy(&v, take(sizeof(T)).data(), sizeof(T));
    return v;
  }
  std::string_view string(std::size_t length) {
    const span<const std::byte> s = take(length);
    return {reinterpret_cast<const char*>(s.data()), length};
  }
  span<const std::byte> take(std::size_t n) {
    if (n > rest_.size()) refuse("are cut");
    const span<const std::byte> s{rest_.data(), n};
    rest_ = {rest_.data() + n, rest_.size() - n};
    return s;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw file_error("the options of the operation \"" + std::string(op_.name) + "\" " + why);
  }

 private:
  const op_info& op_;
  span<const std::byte> rest_;
};

inline dtype dtype_called(std::string_view wanted, const option_parser& p) {
  for (int t = 0; t < dtype_count; ++t)
    if (name(dtype(t)) == wanted) return dtype(t);
  p.refuse("name the unknown element type \"" + std::string(wanted.substr(0, 40)) + "\"");
}

}  // namespace detail

inline std::vector<std::byte> write_options(const op_info& op, const attributes& options) {
  const auto bytes = options.as<detail::option_bytes>();
  std::vector<std::byte> out;
  auto put = [&](const void* from, std::size_t n) {
    const auto* p = static_cast<const std::byte*>(from);
    out.insert(out.end(), p, p + n);
  };
  auto put_name = [&](std::string_view s) {
    const auto length = std::uint8_t(s.size());
    put(&length, 1);
    put(s.data(), s.size());
  };
  const auto count = std::uint16_t(op.options ? op.options->fields.size() : 0);
  put(&count, 2);
  for (std::size_t i = 0; i < count; ++i) {
    const option_field& f = op.options->fields[i];
    put_name(f.name);
    put(&f.kind, 1);
    if (f.kind == option_kind::element) {
      put_name(name(detail::option_at<stored_dtype>(bytes, f.offset)));
      continue;
    }
    const auto size = std::uint8_t(detail::bytes_of(f));
    put(&size, 1);
    put(bytes.data() + f.offset, size);
  }
  return out;
}

inline attributes read_options(const op_info& op, span<const std::byte> from) {
  detail::option_parser p(op, from);
  const int count = p.next<std::uint16_t>();
  detail::option_bytes bytes{};
  if (op.options) bytes = op.options->defaults.as<detail::option_bytes>();
  for (int i = 0; i < count; ++i) {
    const std::string_view name = p.string(p.next<std::uint8_t>());
    const auto kind = option_kind(p.next<std::uint8_t>());
    const option_field* known = nullptr;
    for (std::size_t k = 0; op.options && k < op.options->fields.size(); ++k)
      if (op.options->fields[k].name == name) known = &op.options->fields[k];
    if (!known || known->kind != kind)
      p.refuse("have an unknown field \"" + std::string(name.substr(0, 40)) + "\"");
    char* const to = bytes.data() + known->offset;
    const int size = p.next<std::uint8_t>();
    if (kind == option_kind::element) {
      const stored_dtype t{std::int32_t(detail::dtype_called(p.string(std::size_t(size)), p))};
      std::memcpy(to, &t, sizeof t);
      continue;
    }
    if (size != detail::bytes_of(*known))
      p.refuse("have another size in the field \"" + std::string(name) + "\"");
    std::memcpy(to, p.take(std::size_t(size)).data(), std::size_t(size));
    if (kind == option_kind::extents) {
      const auto s = detail::option_at<shape>(bytes, known->offset);
      bool right = s.rank >= 0 && s.rank <= max_rank;
      for (int d = 0; right && d < max_rank; ++d)
        right = d < s.rank ? s.extents[d] >= 0 : s.extents[d] == 0;
      if (!right) p.refuse("have extents that no tensor has");
    }
  }
  if (!p.done()) p.refuse("are longer than their fields");
  return std::bit_cast<attributes>(bytes);
}

}  // namespace cella
