// What the readers and writers of tensor files share: files read whole, files replaced atomically,
// and the checks that every type and size from a file must pass before it is used (POSIX).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cella/graph/dtype.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/shape.hpp>
#include <cerrno>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace cella::interop {

static_assert(
    std::endian::native == std::endian::little,
    "cella reads and writes little-endian tensor files without swapping bytes: build for a "
    "little-endian machine");

/// `"text"` for a message: control characters become `?`; what is longer than `limit` bytes is cut.
/// Names in files are as long and as strange as their author likes.
inline std::string in_quotes(std::string_view s, std::size_t limit = 80) {
  std::size_t end = std::min(s.size(), limit);
  while (end > 0 && end < s.size() && (static_cast<unsigned char>(s[end]) & 0xc0u) == 0x80u) --end;
  std::string out = "\"" + std::string(s.substr(0, end));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out + (end < s.size() ? "...\"" : "\"");
}

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

namespace detail {

/// The sentence for a failed system call on `file` (already quoted).
inline std::string system_fault(std::string_view action, const std::string& file, int code) {
  std::string cause;
  switch (code) {
    case ENOENT:
      cause = "there is no such file or folder; check the path";
      break;
    case EISDIR:
      cause = "it is a directory; name a file";
      break;
    case ENOTDIR:
      cause = "a part of the path is not a directory; check the path";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      cause = "permission is denied; change its permissions or run as its owner";
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      cause = "the disk is full or a size limit is reached; make room";
      break;
    case ENODEV:
      cause = "it is not a regular file; name a file on disk";
      break;
    default:
      cause = std::generic_category().message(code) + "; check the path and the disk";
  }
  return "cannot " + std::string(action) + " " + file + ": " + cause;
}

struct descriptor {
  int value = -1;
  descriptor(const char* path, int flags, mode_t mode = 0)
      : value(::open(path, flags | O_CLOEXEC, mode)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace detail

/// A file open for reading from front to back. Every fault is a `file_error`.
class input_file {
 public:
  /// Without O_NONBLOCK, opening a pipe would wait for its writer before it could be refused.
  explicit input_file(const std::filesystem::path& path)
      : label_(in_quotes(path.native(), 4096)), file_(path.c_str(), O_RDONLY | O_NONBLOCK) {
    struct stat status {};
    if (file_.value < 0 || ::fstat(file_.value, &status) != 0) fail(errno);
    if (S_ISDIR(status.st_mode)) fail(EISDIR);
    if (!S_ISREG(status.st_mode)) fail(ENODEV);
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  /// The path in quotes, for messages.
  const std::string& label() const { return label_; }
  /// Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }

  /// The next `count` bytes. Precondition: the caller compared `count` with `size()`.
  std::vector<std::byte> read(std::uint64_t count) {
    std::vector<std::byte> bytes;
    try {
      bytes.resize(count);
    } catch (const std::exception&) {
      throw file_error("cannot read " + label_ + ": no memory for " + std::to_string(count) +
                       " bytes; free some memory or split the file");
    }
    for (std::size_t done = 0; done < bytes.size();) {
      const auto n = ::read(file_.value, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      if (n == 0) {
        throw file_error("cannot read " + label_ + ": it was cut while it was read, at byte " +
                         std::to_string(done) + " of " + std::to_string(bytes.size()) +
                         "; wait until its writer is done");
      }
      done += static_cast<std::size_t>(n);
    }
    return bytes;
  }

 private:
  [[noreturn]] void fail(int code) const {
    throw file_error(detail::system_fault("read", label_, code));
  }

  std::string label_;
  detail::descriptor file_;
  std::uint64_t size_{};
};

/// The whole file. Throws `file_error` if it cannot be read or is larger than `max_bytes`.
inline std::vector<std::byte> read_file(const std::filesystem::path& path,
                                        std::uint64_t max_bytes) {
  input_file file(path);
  if (file.size() > max_bytes) {
    throw file_error("cannot read " + file.label() + ": it has " + std::to_string(file.size()) +
                     " bytes, but at most " + std::to_string(max_bytes) +
                     " are allowed here; check that it is the right file");
  }
  return file.read(file.size());
}

/// A temporary file beside its target, which `commit` renames to the target; without `commit` it
/// vanishes and the target stays as it was. Every fault is a `file_error`.
class output_file {
 public:
  /// A symbolic link is followed, permissions of an old target are kept, a read-only one is
  /// refused.
  explicit output_file(std::filesystem::path target)
      : label_(in_quotes(target.native(), 4096)), target_(std::move(target)) {
    std::error_code ignored;
    if (auto real = std::filesystem::canonical(target_, ignored); !ignored) target_ = real;
    struct stat old {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    if (replaces && S_ISDIR(old.st_mode)) fail(EISDIR);
    if (replaces && !S_ISREG(old.st_mode)) fail(ENODEV);
    if (replaces && ::access(target_.c_str(), W_OK) != 0) fail(errno);
    const int descriptor = open_temporary();
    file_ = ::fdopen(descriptor, "wb");
    if (!file_) ::close(descriptor);
    if (!file_ || (replaces && ::fchmod(descriptor, old.st_mode & 07777u) != 0)) {
      const int code = errno;
      discard();
      fail(code);
    }
  }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file() { discard(); }

  void write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
  }
  void write(std::string_view s) { write(std::as_bytes(std::span(s))); }

  /// Flushes to the disk, then renames. A power cut leaves the old file or the new one, whole.
  void commit() {
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail(errno);
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.clear();
    // The new file is in place; some file systems cannot flush a folder, so the result is moot.
    const detail::descriptor folder(this->folder().c_str(), O_RDONLY | O_DIRECTORY);
    if (folder.value >= 0) ::fsync(folder.value);
  }

 private:
  std::filesystem::path folder() const {
    return target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  }

  /// The name is short and independent of the target's, which may have the greatest length allowed.
  int open_temporary() {
    static std::atomic<unsigned> serial{0};
    for (int attempt = 0; attempt < 1000; ++attempt) {
      temporary_ = folder() / (".cella-" + std::to_string(::getpid()) + "-" +
                               std::to_string(serial++) + ".tmp");
      const int descriptor =
          ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t{0666});
      if (descriptor >= 0) return descriptor;
      if (errno != EEXIST) break;
    }
    temporary_.clear();
    fail(errno);
  }

  void discard() {
    if (file_) std::fclose(std::exchange(file_, nullptr));
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  [[noreturn]] void fail(int code) const {
    throw file_error(detail::system_fault("write", label_, code));
  }

  std::string label_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::FILE* file_ = nullptr;
};

/// Replaces the file `path` by what `writer(output_file&)` writes. If the writer throws or the disk
/// is full, the old file stays untouched, nothing else is left, and the exception goes on.
template <std::invocable<output_file&> Writer>
void write_atomically(const std::filesystem::path& path, Writer&& writer) {
  output_file file(path);
  std::forward<Writer>(writer)(file);
  file.commit();
}

}  // namespace cella::interop
