// IDX files (the format of the MNIST database), plain or compressed with gzip. Needs zlib.
// Source: http://yann.lecun.com/exdb/mnist/, "The IDX file format".
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cella/data/tensor.hpp>
#include <cella/graph/error.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Reads a file of at most eight axes, compressed or not, whatever its name.
/// Throws `file_error` for a file that is missing, cut, corrupted, too long or not IDX; memory
/// grows with the bytes that are really there, never with what a header promises.
idx_array read_idx(const std::filesystem::path& path);

/// The same from a stream of `length` bytes; `name` is for messages.
idx_array parse_idx(std::istream& in, std::uint64_t length, const std::string& name);

namespace detail {

/// The bytes of a stream, decompressed when it begins like a gzip file.
class idx_source {
 public:
  idx_source(std::istream& in, const std::string& name) : in_(in), name_(name) {
    refill();
    compressed_ = end_ >= 2 && chunk_[0] == 0x1f && chunk_[1] == 0x8b;
    if (!compressed_) return;
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&zlib_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  idx_source(const idx_source&) = delete;
  ~idx_source() {
    if (compressed_) inflateEnd(&zlib_);
  }

  bool compressed() const { return compressed_; }

  /// Reads up to `count` bytes; fewer only at the end.
  std::size_t read(void* to, std::size_t count) {
    auto* out = static_cast<unsigned char*>(to);
    std::size_t done = 0;
    while (done < count && !ended_) {
      if (begin_ == end_) refill();
      done += compressed_ ? inflate_some(out + done, count - done) : copy(out + done, count - done);
    }
    return done;
  }

 private:
  void refill() {
    in_.read(reinterpret_cast<char*>(chunk_.data()), static_cast<std::streamsize>(chunk_.size()));
    begin_ = 0;
    end_ = static_cast<std::size_t>(in_.gcount());
  }

  std::size_t copy(unsigned char* out, std::size_t count) {
    const std::size_t n = std::min(count, end_ - begin_);
    std::memcpy(out, chunk_.data() + begin_, n);
    begin_ += n;
    ended_ = n == 0;
    return n;
  }

  std::size_t inflate_some(unsigned char* out, std::size_t count) {
    if (begin_ == end_) {
      throw file_error(name_ + ": the gzip stream is cut; fetch the file again.");
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(count, 1u << 30));
    zlib_.next_in = chunk_.data() + begin_;
    zlib_.avail_in = static_cast<uInt>(end_ - begin_);
    zlib_.next_out = out;
    zlib_.avail_out = room;
    const int status = inflate(&zlib_, Z_NO_FLUSH);
    begin_ = end_ - zlib_.avail_in;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_STREAM_END) {
      end_of_member();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw file_error(name_ + ": the gzip stream is corrupted (" +
                       (zlib_.msg ? zlib_.msg : "unknown fault") + "); fetch the file again.");
    }
    return room - zlib_.avail_out;
  }

  /// A gzip file is one or more compressed members, one after the other.
  void end_of_member() {
    if (begin_ == end_) refill();
    ended_ = begin_ == end_;
    if (ended_) return;
    if (chunk_[begin_] != 0x1f) {
      throw file_error(name_ + ": there are bytes after the gzip stream; fetch the file again.");
    }
    inflateReset(&zlib_);
  }

  std::istream& in_;
  const std::string& name_;
  std::array<unsigned char, 65536> chunk_{};
  std::size_t begin_{};
  std::size_t end_{};
  bool compressed_{};
  bool ended_{};
  z_stream zlib_{};
};

inline std::uint32_t big_endian(const std::array<unsigned char, 4>& b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

/// Reads `count` big-endian values, growing by at most a mebibyte beyond what has been read.
template <class T>
std::vector<T> read_values(idx_source& source, std::size_t count) {
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

}  // namespace detail

inline idx_array parse_idx(std::istream& in, std::uint64_t length, const std::string& name) {
  detail::idx_source source(in, name);
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

  const auto read_all = [&]<class T>(T) {
    const std::size_t count = static_cast<std::size_t>(bytes / sizeof(T));
    auto values = detail::read_values<T>(source, count);
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

inline idx_array read_idx(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code fault;
  if (!std::filesystem::is_regular_file(path, fault)) {
    throw file_error(name + ": there is no such file; check the path.");
  }
  const auto length = std::filesystem::file_size(path, fault);
  std::ifstream in(path, std::ios::binary);
  if (fault || !in) throw file_error(name + ": the file cannot be read; check its permissions.");
  return parse_idx(in, length, name);
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
