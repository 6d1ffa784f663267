// IDX files (the format of the MNIST database), plain or compressed with gzip. Needs zlib.
// Source: http://yann.lecun.com/exdb/mnist/, "The IDX file format".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/data/gzip.hpp>
#include <cella/data/tensor.hpp>
#include <cella/graph/error.hpp>
#include <cella/interop/file.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cella::data {

/// What an IDX file holds.
struct idx_array {
  shape extents;
  std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::int16_t>,
               std::vector<std::int32_t>, std::vector<float>, std::vector<double>>
      values;

  /// The values as another type that holds all of them; throws `error` when `T` does not.
  template <class T>
  std::vector<T> as() const;
};

/// What `read_idx` allows.
struct idx_options {
  /// How many bytes a compressed file may hold: gzip packs a thousand into one, so a small file
  /// could fill the memory. The largest of the MNIST family holds half of the default.
  std::uint64_t max_unpacked_bytes = std::uint64_t{1} << 30;
};

/// Reads a file of at most eight axes, compressed or not, whatever its name.
/// Throws `file_error` for a file that is missing, cut, corrupted, too long, not IDX, or no file;
/// memory grows with the bytes that are really there, never with what a header promises.
idx_array read_idx(const std::filesystem::path& path, const idx_options& options = {});

/// The same from a stream of `length` bytes; `name` is for messages.
idx_array parse_idx(std::istream& in, std::uint64_t length, const std::string& name,
                    const idx_options& options = {});

namespace detail {

inline std::uint32_t big_endian(const std::array<unsigned char, 4>& b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

/// Reads `count` big-endian values, growing by at most a mebibyte beyond what has been read.
template <class T, class Source>
std::vector<T> read_values(Source& source, std::size_t count) {
  constexpr std::size_t step = (std::size_t{1} << 20) / sizeof(T);
  std::vector<T> values;
  while (values.size() < count) {
    const std::size_t had = values.size();
    values.resize(std::min(count, had + step));
    const std::size_t bytes = source.read(values.data() + had, (values.size() - had) * sizeof(T));
    if (bytes < (values.size() - had) * sizeof(T)) {
      values.resize(had + bytes / sizeof(T));
      return values;
    }
  }
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) {
    for (T& v : values) {
      auto bytes = std::bit_cast<std::array<unsigned char, sizeof(T)>>(v);
      std::reverse(bytes.begin(), bytes.end());
      v = std::bit_cast<T>(bytes);
    }
  }
  return values;
}

template <class ReadSome>
idx_array load_idx(ReadSome read_some, std::uint64_t length, const std::string& name,
                   const idx_options& options) {
  gzip_source source(std::move(read_some), name);
  const auto word = [&] {
    std::array<unsigned char, 4> bytes{};
    if (source.read(bytes.data(), 4) < 4) {
      throw file_error(name + ": the file ends within the IDX header; fetch it again.");
    }
    return detail::big_endian(bytes);
  };

  const std::uint32_t magic = word();
  const std::uint32_t type = magic >> 8;
  const std::uint32_t rank = magic & 0xff;
  constexpr std::array<std::uint64_t, 7> sizes{1, 1, 0, 2, 4, 4, 8};
  if (type < 0x08 || type > 0x0e || type == 0x0a) {
    throw file_error(name + ": the first four bytes are " + std::to_string(magic) +
                     ", which no IDX file has (MNIST: 2049 for labels, 2051 for images); give "
                     "another file.");
  }
  if (rank < 1 || rank > std::uint32_t{max_rank}) {
    throw file_error(name + ": the array has " + std::to_string(rank) +
                     " axes, but 1 to 8 can be read; reshape it.");
  }

  // The bound lets the sizes below be multiplied without overflow, zero extents or not.
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  idx_array result;
  std::uint64_t bytes = sizes[type - 0x08];
  bool empty = false;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::uint32_t extent = word();
    empty |= extent == 0;
    if (extent > 0x7fffffffu || (extent && bytes > most / extent)) {
      throw file_error(name + ": axis " + std::to_string(i) + " has " + std::to_string(extent) +
                       " elements, which makes the array larger than any file; fetch it again.");
    }
    if (extent) bytes *= extent;
    result.extents.push_back(static_cast<int>(extent));
  }
  if (empty) bytes = 0;

  const std::uint64_t header = 4 + 4 * std::uint64_t{rank};
  const auto fault = [&](const std::string& found) {
    return file_error(name + ": the header promises " +
                      std::string((text() << result.extents).view()) + ", that is " +
                      std::to_string(bytes) + " bytes, but " + found + "; fetch the file again.");
  };
  // Deflate makes data at most 1032 times smaller.
  if (source.compressed() ? bytes / 1032 > length : bytes > length - header) {
    throw fault("the file has only " + std::to_string(length));
  }
  if (source.compressed() && bytes > options.max_unpacked_bytes) {
    throw file_error(name + ": the header promises " +
                     std::string((text() << result.extents).view()) + ", that is " +
                     std::to_string(bytes) + " bytes, but at most " +
                     std::to_string(options.max_unpacked_bytes) +
                     " may be unpacked; raise max_unpacked_bytes if you trust the file.");
  }

  const auto read_all = [&]<class T>(T) {
    const std::size_t count = static_cast<std::size_t>(bytes / sizeof(T));
    auto values = interop::with_memory(name, bytes, [&] { return read_values<T>(source, count); });
    if (values.size() < count) {
      throw fault("there are only " + std::to_string(values.size() * sizeof(T)));
    }
    result.values = std::move(values);
  };
  switch (type) {
    case 0x08:
      read_all(std::uint8_t{});
      break;
    case 0x09:
      read_all(std::int8_t{});
      break;
    case 0x0b:
      read_all(std::int16_t{});
      break;
    case 0x0c:
      read_all(std::int32_t{});
      break;
    case 0x0d:
      read_all(float{});
      break;
    default:
      read_all(double{});
  }
  // Reading past the end also makes zlib verify the checksum.
  unsigned char extra{};
  if (source.read(&extra, 1)) throw fault("more bytes follow");
  return result;
}

}  // namespace detail

inline idx_array parse_idx(std::istream& in, std::uint64_t length, const std::string& name,
                           const idx_options& options) {
  const auto read_some = [&](std::span<std::byte> to) {
    in.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    return static_cast<std::size_t>(in.gcount());
  };
  return interop::with_memory(name, length,
                              [&] { return detail::load_idx(read_some, length, name, options); });
}

inline idx_array read_idx(const std::filesystem::path& path, const idx_options& options) {
  interop::input_file file(path);
  const auto read_some = [&](std::span<std::byte> to) { return file.read_some(to); };
  return interop::with_memory(file.label(), file.size(), [&] {
    return detail::load_idx(read_some, file.size(), file.label(), options);
  });
}

template <class T>
std::vector<T> idx_array::as() const {
  return std::visit(
      [&]<class From>(const std::vector<From>& from) -> std::vector<T> {
        // What a list initialization allows loses nothing; that an integer may become a float is
        // decided by the digits.
        constexpr bool exact =
            std::is_same_v<From, T> ||
            (std::numeric_limits<From>::digits <= std::numeric_limits<T>::digits &&
             std::is_signed_v<From> <= std::is_signed_v<T> &&
             std::is_floating_point_v<From> <= std::is_floating_point_v<T>);
        if constexpr (exact) {
          return std::vector<T>(from.begin(), from.end());
        } else {
          throw error(text("idx: values of ")
                      << sizeof(From) << " bytes do not fit the " << sizeof(T)
                      << "-byte type asked for; ask for a wider one.");
        }
      },
      values);
}

}  // namespace cella::data
