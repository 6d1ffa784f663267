// The bytes of a file that may be compressed with gzip. Needs zlib.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cella/graph/error.hpp>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>

namespace cella::data::detail {

/// The bytes that `read_some(span)` delivers, decompressed when they begin like a gzip file.
template <std::invocable<std::span<std::byte>> ReadSome>
class gzip_source {
 public:
  gzip_source(ReadSome read_some, const std::string& name)
      : read_some_(std::move(read_some)), name_(name) {
    refill();
    compressed_ = end_ >= 2 && chunk_[0] == 0x1f && chunk_[1] == 0x8b;
    if (!compressed_) return;
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&zlib_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  gzip_source(const gzip_source&) = delete;
  ~gzip_source() {
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
    begin_ = 0;
    end_ = read_some_(std::as_writable_bytes(std::span(chunk_)));
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

  ReadSome read_some_;
  const std::string& name_;
  std::array<unsigned char, 65536> chunk_{};
  std::size_t begin_{};
  std::size_t end_{};
  bool compressed_{};
  bool ended_{};
  z_stream zlib_{};
};

}  // namespace cella::data::detail
