// Files read without trust in what stands at their path, and files replaced atomically (POSIX).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cella/graph/error.hpp>
#include <cella/interop/in_quotes.hpp>
#include <cella/interop/temporary_file.hpp>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace cella::interop {

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
    case ELOOP:
      cause = "it leads through too many symbolic links, maybe in a circle; mend them";
      break;
    case ENODEV:
    case ENXIO:
      cause = "it is not a regular file; name a file on disk";
      break;
    default:
      cause = std::generic_category().message(code) + "; check the path and the disk";
  }
  return "cannot " + std::string(action) + " " + file + ": " + cause;
}

}  // namespace detail

/// What `f()` returns. If it runs out of memory, a `file_error` names the file (already quoted) and
/// the `bytes` that were to be read from it.
template <std::invocable F>
auto with_memory(const std::string& file, std::uint64_t bytes, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  throw file_error("cannot read " + file + ": no memory for " + std::to_string(bytes) +
                   " bytes; free some memory or split the file");
}

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

  /// Fills `to` from its front and returns how much there was; 0 at the end of the file.
  std::size_t read_some(std::span<std::byte> to) {
    for (;;) {
      const auto n = ::read(file_.value, to.data(), to.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) fail(errno);
    }
  }

  /// The next `count` bytes. Precondition: the caller compared `count` with `size()`.
  std::vector<std::byte> read(std::uint64_t count) {
    auto bytes = with_memory(label_, count, [&] { return std::vector<std::byte>(count); });
    for (std::size_t done = 0; done < bytes.size();) {
      const std::size_t n = read_some(std::span(bytes).subspan(done));
      if (n == 0) {
        throw file_error("cannot read " + label_ + ": it was cut while it was read, at byte " +
                         std::to_string(done) + " of " + std::to_string(bytes.size()) +
                         "; wait until its writer is done");
      }
      done += n;
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
  /// Symbolic links are followed, also to a file that is not there yet; permissions of an old
  /// target are kept, a read-only one is refused.
  [[gnu::cold]] explicit output_file(const std::filesystem::path& target)
      : label_(in_quotes(target.native(), 4096)), target_(behind_links(target)) {
    if (target_ != target) label_ += ", a link to " + in_quotes(target_.native(), 4096);
    struct stat old {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    if (replaces && S_ISDIR(old.st_mode)) fail(EISDIR);
    if (replaces && !S_ISREG(old.st_mode)) fail(ENODEV);
    if (replaces && ::access(target_.c_str(), W_OK) != 0) fail(errno);
    temporary_.emplace(folder());
    if (temporary_->file() < 0) fail(errno);
    if (replaces && ::fchmod(temporary_->file(), old.st_mode & 07777u) != 0) fail(errno);
    const int copy = ::fcntl(temporary_->file(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) fail(errno);
    file_ = ::fdopen(copy, "wb");
    if (!file_) {
      const int code = errno;
      ::close(copy);
      fail(code);
    }
  }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file() {
    if (file_) std::fclose(file_);
  }

  void write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
  }
  void write(std::string_view s) { write(std::as_bytes(std::span(s))); }

  /// Flushes to the disk, then renames. A power cut leaves the old file or the new one, whole.
  [[gnu::cold]] void commit() {
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail(errno);
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
    if (!temporary_->rename_to(target_)) fail(errno);
    // The new file is in place; some file systems cannot flush a folder, so the result is moot.
    const detail::descriptor folder(this->folder().c_str(), O_RDONLY | O_DIRECTORY);
    if (folder.value >= 0) ::fsync(folder.value);
  }

 private:
  /// The file that a write to `path` makes or changes, found as the kernel finds it.
  [[gnu::cold]] std::filesystem::path behind_links(std::filesystem::path path) const {
    constexpr int most_links = 40;  // Linux's own limit
    for (int links = 0; links <= most_links; ++links) {
      std::error_code no_link;
      const auto next = std::filesystem::read_symlink(path, no_link);
      if (no_link) return path;
      path = path.parent_path() / next;  // which is `next` if that is absolute
    }
    fail(ELOOP);
  }

  std::filesystem::path folder() const {
    return target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  }

  [[noreturn]] void fail(int code) const {
    throw file_error(detail::system_fault("write", label_, code));
  }

  std::string label_;
  std::filesystem::path target_;
  std::optional<detail::temporary_file> temporary_;
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
