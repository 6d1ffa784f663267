// The file that a writer fills before it takes the place of the old one, and the removal of those
// that killed writers left behind (POSIX).
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cella::interop::detail {

/// A file descriptor that is closed with its owner; negative if the file could not be opened.
struct descriptor {
  int value = -1;
  descriptor() = default;
  descriptor(const char* path, int flags, mode_t mode = 0)
      : value(::open(path, flags | O_CLOEXEC, mode)) {}
  descriptor(descriptor&& other) noexcept : value(std::exchange(other.value, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~descriptor() {
    if (value >= 0) ::close(value);
  }
};

/// An empty file of its own in a folder. It vanishes with this object unless it is renamed first.
///
/// Its writer holds a lock (`flock`) on it. That goes away with the writer whatever kills it, is
/// seen from other containers, and is no number that another process could get: so whoever can take
/// the lock of such a file knows that its writer is gone, and may remove it. A writer on another
/// host may hold a lock that is not seen here (a network file system that is mounted without
/// locks): its files must also be a day old. Where a file system has no locks, nothing is removed.
class temporary_file {
 public:
  /// Removes what killed writers left in `folder`, then makes a file there. Where it cannot,
  /// `file()` is negative and `errno` tells why.
  [[gnu::cold]] explicit temporary_file(const std::filesystem::path& folder) {
    remove_stale_files(folder);
    static std::atomic<unsigned> serial{0};
    for (int attempt = 0; attempt < 1000; ++attempt) {
      // Short and independent of the target's name, which may have the greatest length allowed.
      path_ = folder / (host_prefix() + std::to_string(::getpid()) + "-" +
                        std::to_string(serial++) + ".tmp");
      file_ = descriptor(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode_t{0666});
      if (file_.value < 0 && errno == EEXIST) continue;
      if (file_.value < 0) break;
      // Before it was locked another process may have taken it for a dead writer's.
      const bool taken = ::flock(file_.value, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      if (!taken && ::access(path_.c_str(), F_OK) == 0) return;
      file_ = descriptor();
      errno = EBUSY;
    }
    path_.clear();
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  int file() const { return file_.value; }

  /// Takes the place of `target`. False where it cannot; `errno` tells why.
  bool rename_to(const std::filesystem::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  [[gnu::cold]] static void remove_stale_files(const std::filesystem::path& folder) {
    std::error_code fault;  // a folder that cannot be listed has nothing for us to remove
    std::filesystem::directory_iterator entry(folder, fault);
    for (; !fault && entry != std::filesystem::directory_iterator(); entry.increment(fault)) {
      const std::string name = entry->path().filename();
      if (is_temporary(name)) remove_if_stale(entry->path(), name.starts_with(host_prefix()));
    }
  }

  static bool is_temporary(std::string_view name) {
    constexpr std::string_view start = ".cella-", end = ".tmp";
    return name.size() > start.size() + end.size() && name.starts_with(start) &&
           name.ends_with(end) &&
           name.find_first_not_of("0123456789abcdef-", start.size()) == name.size() - end.size();
  }

  [[gnu::cold]] static void remove_if_stale(const std::filesystem::path& path,
                                            bool from_this_host) {
    // Without O_NONBLOCK a pipe of that name would hold us up; network file systems lock only what
    // is open for writing.
    const descriptor file(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    struct stat held {};
    if (file.value < 0 || ::fstat(file.value, &held) != 0 || !S_ISREG(held.st_mode)) return;
    constexpr std::time_t day = 24 * 60 * 60;
    if (!from_this_host && std::time(nullptr) - held.st_mtime < day) return;
    if (::flock(file.value, LOCK_EX | LOCK_NB) != 0) return;
    // Before it was locked its writer may have renamed it. While it is locked nobody does.
    struct stat named {};
    const bool same = ::lstat(path.c_str(), &named) == 0 && named.st_dev == held.st_dev &&
                      named.st_ino == held.st_ino;
    if (same) ::unlink(path.c_str());
  }

  /// `.cella-<digits for this host>-`
  static const std::string& host_prefix() {
    static const std::string prefix = [] {
      std::array<char, 256> host{};
      ::gethostname(host.data(), host.size() - 1);
      std::uint32_t hash = 2166136261u;  // FNV-1a
      for (const char* c = host.data(); *c; ++c) {
        hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
      }
      std::array<char, 32> out{};
      std::snprintf(out.data(), out.size(), ".cella-%08x-", hash);
      return std::string(out.data());
    }();
    return prefix;
  }

  std::filesystem::path path_;
  descriptor file_;
};

}  // namespace cella::interop::detail
