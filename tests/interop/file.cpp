#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cella/interop/file.hpp>
#include <cella/interop/named_tensor.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "support/scratch_directory.hpp"

using namespace cella;
using test::contents;
using test::scratch_directory;
namespace fs = std::filesystem;

namespace {

long files_in(const scratch_directory& folder) {
  return std::distance(fs::directory_iterator(folder.path()), {});
}

void put(const fs::path& path, std::string_view s) { std::ofstream(path, std::ios::binary) << s; }

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const file_error& e) { return e.what(); }
  return "nothing thrown";
}

bool has(const std::string& s, std::string_view part) { return s.find(part) != s.npos; }

void write(const fs::path& path, std::string_view s) {
  interop::write_atomically(path, [&](interop::output_file& f) { f.write(s); });
}

/// Another process that is in the middle of writing `path`; it goes on when `go_on` is called.
class writer_process {
 public:
  explicit writer_process(const fs::path& path) {
    REQUIRE(::pipe(ready_) == 0);
    REQUIRE(::pipe(go_on_) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) run(path);
    ::close(ready_[1]);
    char c{};
    REQUIRE(::read(ready_[0], &c, 1) == 1);
  }
  writer_process(const writer_process&) = delete;
  ~writer_process() {
    if (child_ > 0) kill();
    for (int fd : {ready_[0], go_on_[0], go_on_[1]}) ::close(fd);
  }
  void kill() {
    ::kill(child_, SIGKILL);
    wait();
  }
  /// Its exit status.
  int go_on() {
    CHECK(::write(go_on_[1], "x", 1) == 1);
    return wait();
  }

 private:
  [[noreturn]] void run(const fs::path& path) {
    try {
      interop::output_file f(path);
      f.write("by the other process");
      char c = 'x';
      if (::write(ready_[1], &c, 1) != 1 || ::read(go_on_[0], &c, 1) != 1) ::_exit(2);
      f.commit();
      ::_exit(0);
    } catch (const file_error&) { ::_exit(1); }
  }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int ready_[2]{}, go_on_[2]{};
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("a file is read whole up to its cap") {
  const scratch_directory folder("file");
  put(folder / "a", "12345");
  CHECK(interop::read_file(folder / "a", 5).size() == 5);
  CHECK(std::to_integer<char>(interop::read_file(folder / "a", 5)[4]) == '5');
  const auto said = message([&] { interop::read_file(folder / "a", 4); });
  CHECK(has(said, "it has 5 bytes, but at most 4 are allowed"));
}

TEST_CASE("what cannot be read is refused with its path and the cause") {
  const scratch_directory folder("file");
  const auto read = [&](const char* name) {
    return message([&] { interop::read_file(folder / name, 100); });
  };
  CHECK(has(read("absent"), (folder / "absent").string()));
  CHECK(has(read("absent"), "there is no such file"));
  CHECK(has(read("."), "it is a directory"));
  put(folder / "f", "");
  CHECK(has(read("f/below"), "a part of the path is not a directory"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(has(read("pipe"), "it is not a regular file"));
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "s").c_str(), sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address) == 0);
  CHECK(has(read("s"), "it is not a regular file"));
  ::close(socket);
  CHECK(has(message([&] { interop::read_file("/dev/zero", 100); }), "it is not a regular file"));
  fs::create_symlink("circle", folder / "circle");
  CHECK(has(read("circle"), "too many symbolic links"));
}

TEST_CASE("missing permission is named for reading and writing, and a read-only file stays") {
  const scratch_directory folder("file");
  const auto secret = folder / "secret";
  put(secret, "old");
  fs::permissions(secret, fs::perms::none);
  fs::permissions(folder.path(), fs::perms::all);
  // The superuser may read everything: become nobody for a moment.
  const bool superuser = ::geteuid() == 0;
  if (superuser) REQUIRE(::seteuid(65534) == 0);
  const auto read = message([&] { interop::read_file(secret, 100); });
  const auto write = message([&] {
    interop::write_atomically(fs::path("/cella-not-allowed-here"), [](auto& f) { f.write("x"); });
  });
  if (superuser) REQUIRE(::seteuid(0) == 0);
  CHECK(has(read, "permission is denied"));
  CHECK(has(write, "permission is denied"));
  fs::permissions(secret, fs::perms::owner_read);
  CHECK(contents(secret) == "old");
}

TEST_CASE("a written file replaces the old one and keeps its permissions") {
  const scratch_directory folder("file");
  const auto path = folder / "model";
  interop::write_atomically(path, [](interop::output_file& f) { f.write("one"); });
  CHECK(contents(path) == "one");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  interop::write_atomically(path, [](interop::output_file& f) {
    f.write("tw");
    f.write("o");
  });
  CHECK(contents(path) == "two");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("the old file is there until the new one is complete") {
  const scratch_directory folder("file");
  const auto path = folder / "model";
  put(path, "old");
  interop::write_atomically(path, [&](interop::output_file& f) {
    f.write("new");
    CHECK(contents(path) == "old");
  });
  CHECK(contents(path) == "new");
}

TEST_CASE("a symbolic link stays and its target is replaced") {
  const scratch_directory folder("file");
  put(folder / "v1", "old");
  fs::create_symlink("v1", folder / "latest");
  interop::write_atomically(folder / "latest", [](auto& f) { f.write("new"); });
  CHECK(fs::is_symlink(folder / "latest"));
  CHECK(contents(folder / "v1") == "new");
}

TEST_CASE("a dangling link stays and its target is made, through chains and other folders") {
  const scratch_directory folder("file");
  fs::create_directory(folder / "runs");
  fs::create_symlink("chain", folder / "latest");
  fs::create_symlink("runs/link", folder / "chain");
  fs::create_symlink("../v2", folder / "runs" / "link");
  fs::create_symlink(folder / "v3", folder / "absolute");
  for (const auto& [link, target] : {std::pair("latest", "v2"), std::pair("absolute", "v3")}) {
    write(folder / link, "new");
    CHECK(fs::is_symlink(folder / link));
    CHECK(contents(folder / target) == "new");
    CHECK_FALSE(fs::is_symlink(folder / target));
    write(folder / link, "newer");
    CHECK(contents(folder / target) == "newer");
  }
  CHECK(fs::is_symlink(folder / "chain"));
  CHECK(fs::is_symlink(folder / "runs" / "link"));
  CHECK(files_in(folder) == 6);
}

TEST_CASE("a link to a folder that is not there, and a circle of links, are refused and stay") {
  const scratch_directory folder("file");
  fs::create_symlink("absent/model", folder / "latest");
  const auto said = message([&] { write(folder / "latest", "x"); });
  CHECK(has(said, "\"" + (folder / "latest").string() + "\", a link to \"" +
                      (folder / "absent/model").string() + "\": there is no such file or"));
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK(has(message([&] { write(folder / "a", "x"); }), "too many symbolic links"));
  for (const char* link : {"latest", "a", "b"}) CHECK(fs::is_symlink(folder / link));
  CHECK(files_in(folder) == 3);
}

TEST_CASE("what a killed writer leaves goes away with the next write into its folder") {
  const scratch_directory folder("file");
  put(folder / "model", "old");
  writer_process writer(folder / "model");
  writer.kill();
  CHECK(files_in(folder) == 2);
  write(folder / "other", "x");
  CHECK(files_in(folder) == 2);
  CHECK(contents(folder / "model") == "old");
  CHECK(contents(folder / "other") == "x");
}

TEST_CASE("what a living writer has begun stays, in this process and in another") {
  const scratch_directory folder("file");
  interop::output_file mine(folder / "mine");
  mine.write("by this process");
  writer_process other(folder / "theirs");
  for (int i = 0; i < 3; ++i) write(folder / "model", "x");
  CHECK(other.go_on() == 0);
  mine.commit();
  CHECK(contents(folder / "theirs") == "by the other process");
  CHECK(contents(folder / "mine") == "by this process");
  CHECK(files_in(folder) == 3);
}

TEST_CASE("of another host's temporary files only those that are a day old go away") {
  const scratch_directory folder("file");
  const auto young = folder / ".cella-0badcafe-17-0.tmp";
  const auto old = folder / ".cella-0badcafe-17-1.tmp";
  for (const auto& path : {young, old}) put(path, "x");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  write(folder / "model", "x");
  CHECK(fs::exists(young));
  CHECK_FALSE(fs::exists(old));
}

TEST_CASE("only files that a writer of this library could have left are removed") {
  const scratch_directory folder("file");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(25);
  for (const char* name : {".cella-notes.tmp", ".cella-.tmp", ".cella-1.tmp2", "cella-1.tmp",
                           ".cella-1-2", "x.cella-1.tmp"}) {
    put(folder / name, "x");
    fs::last_write_time(folder / name, long_ago);
  }
  put(folder / "target", "x");
  fs::last_write_time(folder / "target", long_ago);
  fs::create_symlink("target", folder / ".cella-2-1.tmp");
  fs::create_directory(folder / ".cella-2-2.tmp");
  REQUIRE(::mkfifo((folder / ".cella-2-3.tmp").c_str(), 0600) == 0);
  write(folder / "model", "x");
  CHECK(files_in(folder) == 6 + 4 + 1);
}

TEST_CASE("a writer that throws leaves the old file and nothing else") {
  const scratch_directory folder("file");
  const auto path = folder / "model";
  put(path, "old");
  CHECK_THROWS_WITH_AS(interop::write_atomically(path,
                                                 [](interop::output_file& f) {
                                                   f.write("half");
                                                   throw std::logic_error("boom");
                                                 }),
                       "boom", std::logic_error);
  CHECK(contents(path) == "old");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a full disk leaves the old file and nothing else") {
  const scratch_directory folder("file");
  const auto path = folder / "model";
  put(path, "old");
  // A limit on file size fails writes just as a full disk does, in this process alone.
  struct rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 1 << 16, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto said = message([&] {
    interop::write_atomically(path, [](auto& f) { f.write(std::string(1 << 20, 'x')); });
  });
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
  CHECK(has(said, "the disk is full or a size limit is reached"));
  CHECK(contents(path) == "old");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a target that cannot be a file is refused before anything is written") {
  const scratch_directory folder("file");
  const auto write = [&](const fs::path& path) {
    return message([&] { interop::write_atomically(path, [](auto& f) { f.write("x"); }); });
  };
  fs::create_directory(folder / "d");
  CHECK(has(write(folder / "d"), "it is a directory"));
  CHECK(has(write(folder / "absent" / "f"), "there is no such file or folder"));
  CHECK(has(write("/dev/null"), "it is not a regular file"));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("names in messages lose control characters and are cut between characters") {
  CHECK(interop::in_quotes("a\x1b[1m\n") == "\"a?[1m?\"");
  CHECK(interop::in_quotes("abcdef", 3) == "\"abc...\"");
  CHECK(interop::in_quotes("ab\xc3\xa9", 3) == "\"ab...\"");
}

TEST_CASE("extents whose partial products overflow are refused even if one is zero") {
  const auto check = [](std::vector<std::uint64_t> extents) {
    return message([&] { interop::checked_type("t", dtype::f32, extents); });
  };
  CHECK(check({2147483647, 1073741824}) == "nothing thrown");
  CHECK(has(check({2147483647, 2147483647}), "overflows 63 bits"));
  CHECK(has(check({0, 2147483647, 2147483647, 2147483647}), "overflows 63 bits"));
  CHECK(has(check({1000000000, 0, 1000000000, 1000000000}), "overflows 63 bits"));
  CHECK(has(check({2147483648}), "an extent of 2147483648"));
  CHECK(has(check(std::vector<std::uint64_t>(9, 1)), "more than the 8 dimensions"));
  const std::vector<std::uint64_t> extents{2, 0, 3};
  CHECK(interop::checked_type("t", dtype::f32, extents) == tensor_type{dtype::f32, {2, 0, 3}});
}
