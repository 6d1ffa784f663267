// A tensor of a file, and the checks that every type and size from a file must pass before it is
// used.
#pragma once

#include <algorithm>
#include <bit>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/shape.hpp>
#include <cella/interop/file.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace cella::interop {

static_assert(
    std::endian::native == std::endian::little,
    "cella reads and writes little-endian tensor files without swapping bytes: build for a "
    "little-endian machine");

/// A tensor of a file: its name, its type, and its elements (little-endian, row-major). It owns
/// nothing: name and bytes live as long as what handed them out.
struct named_tensor {
  std::string_view name;
  tensor_type type{};
  std::span<const std::byte> bytes;

  /// Copies the elements out. Throws `file_error` if `T` or the number of elements differs.
  template <class T>
  void copy_to(std::span<T> out) const {
    if (type.element != dtype_of<T> || std::int64_t(out.size()) != type.size()) {
      throw file_error(text() << "tensor " << in_quotes(name) << " is " << type
                              << ", but the destination takes " << out.size() << " elements of "
                              << dtype_of<T> << "; load the file that belongs to this model");
    }
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  }
};

/// The tensor type with extents as found in a file. Every partial product of the extents fits 63
/// bits, in bytes and from either end, even if another extent is zero, so that `size`, `bytes` and
/// `row_major_strides` cannot overflow. Throws `file_error` that begins with `where` otherwise.
inline tensor_type checked_type(const std::string& where, dtype element,
                                std::span<const std::uint64_t> extents) {
  if (extents.size() > std::size_t(max_rank)) {
    throw file_error(where + " has more than the 8 dimensions that cella takes; " +
                     "reshape it before you save it");
  }
  tensor_type type{element, {}};
  std::uint64_t bytes = size_of(element);
  for (auto extent : extents) {
    if (extent > std::uint64_t(std::numeric_limits<std::int32_t>::max())) {
      throw file_error(where + " has an extent of " + std::to_string(extent) +
                       ", but cella takes at most 2147483647; split it before you save it");
    }
    const std::uint64_t factor = std::max<std::uint64_t>(extent, 1);
    if (bytes > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / factor) {
      throw file_error(where + " has extents whose product overflows 63 bits; check its shape");
    }
    bytes *= factor;
    type.shape.push_back(static_cast<int>(extent));
  }
  return type;
}

/// What files call the element types that cella has, for messages.
inline std::string names_of_types(std::string_view dtype_facts::*name) {
  std::string all;
  for (const dtype_facts& t : dtype_table) {
    if (!(t.*name).empty()) all.append(all.empty() ? "" : ", ").append(t.*name);
  }
  return all;
}

/// Throws `file_error` that begins with `where` if a boolean is stored as anything but 0 or 1: such
/// a byte copied into a `bool` would be undefined behaviour.
inline void check_booleans(const std::string& where, dtype element,
                           std::span<const std::byte> bytes) {
  if (element != dtype::boolean) return;
  const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) {
    throw file_error(where + " holds the byte " + std::to_string(std::to_integer<int>(*bad)) +
                     " for the boolean " + std::to_string(bad - bytes.begin()) +
                     ", but only 0 and 1 are booleans; save it as U8");
  }
}

}  // namespace cella::interop
