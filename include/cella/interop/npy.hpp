// Reader and writer of NumPy's .npy files, versions 1 to 3: magic, header length, a Python
// dictionary as text, raw elements. Format: numpy/lib/format.py (NEP 1). A file is never trusted.
// xtensor's reader is not used: it allocates by the file's unchecked shape and takes cut files for
// whole ones.
#pragma once

#include <algorithm>
#include <array>
#include <cella/interop/file.hpp>
#include <cella/interop/named_tensor.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::interop {

/// An array of a .npy file. Elements are row-major and little-endian.
struct npy_array {
  tensor_type type{};
  std::vector<std::byte> bytes;

  /// Copies the elements out. Throws `file_error` if `T` or the number of elements differs.
  template <class T>
  void copy_to(std::span<T> out) const {
    named_tensor{"of the .npy file", type, bytes}.copy_to(out);
  }
};

/// Reads and checks a file; the header is checked before memory for the elements is allocated.
/// Fortran order (what NumPy writes for a transposed array) becomes row-major; big-endian numbers
/// are refused. bfloat16, which NumPy lacks, is what ml_dtypes stores: `V2`.
/// Throws `file_error`, which names the file, what was found and the remedy.
npy_array read_npy(const std::filesystem::path& path);
/// The same for a file that lies in memory already; `label` names it in messages.
npy_array parse_npy(std::span<const std::byte> file, std::string_view label);

/// Replaces `path` by a version 1 file with this array, atomically: see `write_atomically`.
/// Throws `file_error` if the size is wrong or the file cannot be written.
void write_npy(const std::filesystem::path& path, const tensor_type& type,
               std::span<const std::byte> bytes);

namespace detail {

inline constexpr std::string_view npy_magic = "\x93NUMPY";
// NumPy's own limit; a header for one of these types takes about 100 bytes.
inline constexpr std::uint32_t max_npy_header = 10'000;

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`: keys in any order, either
/// kind of quotes, spaces anywhere, and nothing else of Python.
class npy_header {
 public:
  npy_header(const std::string& label, std::string_view source) : label_(label), rest_(source) {
    if (std::ranges::any_of(source, [](char c) { return (c < ' ' && c != '\n') || c > '~'; })) {
      refuse("holds characters that are not printable ASCII");
    }
    expect('{');
    while (!take('}')) {
      const std::string key = word();
      expect(':');
      if (key == "descr" && !descr_) {
        if (peek() == '[') refuse("describes records, which cella lacks");
        descr_ = word();
      } else if (key == "fortran_order" && !fortran_) {
        fortran_ = truth();
      } else if (key == "shape" && !extents_) {
        extents_ = tuple();
      } else {
        refuse("has the key " + in_quotes(key) + " twice, or it should not be there");
      }
      if (!take(',') && peek() != '}') refuse("lacks a comma after the key " + in_quotes(key));
    }
    if (peek() != '\0') refuse("goes on after its closing brace");
    if (!descr_ || !fortran_ || !extents_) refuse("lacks one of descr, fortran_order and shape");
  }

  bool fortran_order() const { return *fortran_; }

  tensor_type type() const {
    if (descr_->starts_with('>')) {
      throw file_error(label_ + " holds big-endian numbers, " + in_quotes(*descr_) +
                       "; save it with a.astype(a.dtype.newbyteorder(\"<\"))");
    }
    for (int t = 0; t < dtype_count; ++t) {
      const std::string_view known = facts_of(dtype(t)).npy;
      if (known.empty()) continue;
      // The byte order of a single byte, and of raw bytes, carries no meaning.
      const bool any_order = known[0] == '|' || known[1] == 'V';
      const bool same_order =
          descr_->starts_with(known[0]) || (any_order && descr_->find_first_of("|<=") == 0);
      if (same_order && std::string_view(*descr_).substr(1) == known.substr(1)) {
        return checked_type(label_ + ": the array", dtype(t), *extents_);
      }
    }
    throw file_error(label_ + " holds numbers of type " + in_quotes(*descr_) +
                     ", which cella lacks; save it as one of " + names_of_types(&dtype_facts::npy));
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    throw file_error(label_ + " has a header that " + found +
                     "; the file is damaged: save it anew with numpy.save");
  }
  /// The next character that is not a space, or NUL at the end.
  char peek() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("lacks a ") + c + " before " + in_quotes(rest_, 20));
  }
  std::string word() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("lacks a quoted word at " + in_quotes(rest_, 20));
    const auto end = rest_.find(quote, 1);
    if (end == rest_.npos) refuse("has a quoted word without an end");
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }
  bool truth() {
    peek();
    const bool value = rest_.starts_with("True");
    if (!value && !rest_.starts_with("False")) refuse("has a fortran_order that is no boolean");
    rest_.remove_prefix(value ? 4 : 5);
    return value;
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> result;
    expect('(');
    while (!take(')')) {
      result.push_back(number());
      // (3) is a number in Python, not a tuple.
      if (!take(',') && (peek() != ')' || result.size() == 1))
        refuse("has a shape that is no tuple");
    }
    return result;
  }
  std::uint64_t number() {
    if (peek() == '-') refuse("has a negative extent");
    std::uint64_t value = 0;
    const auto digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (digits == 0) refuse("has a shape that is no tuple of integers");
    if (digits > 18) refuse("has an extent of " + std::to_string(digits) + " digits");
    for (char c : rest_.substr(0, digits)) value = value * 10 + static_cast<std::uint64_t>(c - '0');
    rest_.remove_prefix(digits);
    return value;
  }

  const std::string& label_;
  std::string_view rest_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::uint64_t>> extents_;
};

/// Row-major elements from column-major ones.
inline std::vector<std::byte> from_fortran_order(const tensor_type& type,
                                                 std::span<const std::byte> in) {
  const std::size_t width = size_of(type.element);
  std::array<std::size_t, max_rank> step{}, at{};  // strides of `in` in bytes; position
  std::size_t stride = width;
  for (int i = 0; i < type.rank(); ++i) {
    step[std::size_t(i)] = stride;
    stride *= std::size_t(type[i]);
  }
  std::vector<std::byte> out(in.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, in.data() + from, width);
    for (int i = type.rank(); i-- > 0;) {
      const auto axis = std::size_t(i);
      from += step[axis];
      if (++at[axis] < std::size_t(type[i])) break;
      from -= step[axis] * at[axis];
      at[axis] = 0;
    }
  }
  return out;
}

template <class Read>
npy_array load_npy(const std::string& label, std::uint64_t size, Read&& read) {
  const auto refuse = [&](const std::string& found) {
    throw file_error(label + " " + found +
                     "; it is cut or no .npy file: save it anew with numpy.save");
  };
  if (size < 10) refuse("has " + std::to_string(size) + " bytes, but a .npy file has at least 10");
  const std::vector<std::byte> start = read(8);
  if (std::memcmp(start.data(), npy_magic.data(), npy_magic.size()) != 0) {
    refuse("does not begin with the mark of a .npy file");
  }
  const int major = std::to_integer<int>(start[6]), minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    refuse("has the format version " + std::to_string(major) + "." + std::to_string(minor) +
           ", but cella reads 1.0, 2.0 and 3.0");
  }
  const std::uint64_t width = major == 1 ? 2 : 4;
  if (size < 8 + width) refuse("ends before its header");
  std::uint32_t length = 0;
  std::memcpy(&length, read(width).data(), width);
  if (length > max_npy_header || length > size - 8 - width) {
    refuse("claims a header of " + std::to_string(length) + " bytes, but at most " +
           std::to_string(std::min<std::uint64_t>(max_npy_header, size - 8 - width)) +
           " are possible");
  }
  const std::vector<std::byte> source = read(length);
  const npy_header header(label, {reinterpret_cast<const char*>(source.data()), source.size()});
  npy_array array{header.type(), {}};
  const std::uint64_t found = size - 8 - width - length;
  if (found != static_cast<std::uint64_t>(array.type.bytes())) {
    refuse("is " + std::string((text() << array.type).view()) + ", " +
           std::to_string(array.type.bytes()) + " bytes, but holds " + std::to_string(found));
  }
  with_memory(label, found, [&] {
    array.bytes = read(found);
    check_booleans(label + ": the array", array.type.element, array.bytes);
    if (header.fortran_order()) array.bytes = from_fortran_order(array.type, array.bytes);
  });
  return array;
}

}  // namespace detail

inline npy_array read_npy(const std::filesystem::path& path) {
  input_file file(path);
  return detail::load_npy(file.label(), file.size(),
                          [&](std::uint64_t count) { return file.read(count); });
}

inline npy_array parse_npy(std::span<const std::byte> file, std::string_view label) {
  return detail::load_npy(in_quotes(label, 4096), file.size(), [&](std::uint64_t count) {
    const auto head = file.first(count);
    file = file.subspan(count);
    return std::vector<std::byte>(head.begin(), head.end());
  });
}

inline void write_npy(const std::filesystem::path& path, const tensor_type& type,
                      std::span<const std::byte> bytes) {
  const std::string where = "cannot write " + in_quotes(path.native(), 4096) + ": the array";
  const std::string_view code = facts_of(type.element).npy;
  if (code.empty()) {
    throw file_error(where + " is of dtype " + std::string(name(type.element)) +
                     ", which NumPy lacks; write its parts");
  }
  // A negative extent becomes one that is too large.
  const std::vector<std::uint64_t> extents(type.shape.begin(), type.shape.end());
  const auto size = static_cast<std::uint64_t>(checked_type(where, type.element, extents).bytes());
  if (size != bytes.size()) {
    throw file_error(where + " is " + std::string((text() << type).view()) + ", " +
                     std::to_string(size) + " bytes, but " + std::to_string(bytes.size()) +
                     " were given; pass all of it");
  }
  check_booleans(where, type.element, bytes);
  std::string header = "{'descr': '" + std::string(code) + "', 'fortran_order': False, 'shape': (";
  for (auto extent : extents) header += std::to_string(extent) + (extents.size() > 1 ? ", " : ",");
  if (extents.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  // Elements begin at a multiple of 64 bytes, as NumPy places them; a line break ends the header.
  constexpr std::size_t prefix = 10;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += "\n";
  const auto length = static_cast<std::uint16_t>(header.size());
  write_atomically(path, [&](output_file& file) {
    file.write(detail::npy_magic);
    file.write(std::string_view("\1\0", 2));
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    file.write(bytes);
  });
}

}  // namespace cella::interop
