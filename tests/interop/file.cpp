#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cella/interop/file.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>

using namespace cella;
namespace fs = std::filesystem;

namespace {

struct temporary_folder {
  fs::path path = fs::temp_directory_path() / ("cella-file-" + std::to_string(::getpid()));
  temporary_folder() { fs::create_directories(path); }
  ~temporary_folder() { fs::remove_all(path); }
  long files() const { return std::distance(fs::directory_iterator(path), {}); }
};

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
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

}  // namespace

TEST_CASE("a file is read whole up to its cap") {
  temporary_folder folder;
  put(folder.path / "a", "12345");
  CHECK(interop::read_file(folder.path / "a", 5).size() == 5);
  CHECK(std::to_integer<char>(interop::read_file(folder.path / "a", 5)[4]) == '5');
  const auto said = message([&] { interop::read_file(folder.path / "a", 4); });
  CHECK(has(said, "it has 5 bytes, but at most 4 are allowed"));
}

TEST_CASE("what cannot be read is refused with its path and the cause") {
  temporary_folder folder;
  const auto read = [&](const char* name) {
    return message([&] { interop::read_file(folder.path / name, 100); });
  };
  CHECK(has(read("absent"), (folder.path / "absent").string()));
  CHECK(has(read("absent"), "there is no such file"));
  CHECK(has(read("."), "it is a directory"));
  put(folder.path / "f", "");
  CHECK(has(read("f/below"), "a part of the path is not a directory"));
  REQUIRE(::mkfifo((folder.path / "pipe").c_str(), 0600) == 0);
  CHECK(has(read("pipe"), "it is not a regular file"));
}

TEST_CASE("missing permission is named for reading and writing, and a read-only file stays") {
  temporary_folder folder;
  const auto secret = folder.path / "secret";
  put(secret, "old");
  fs::permissions(secret, fs::perms::none);
  fs::permissions(folder.path, fs::perms::all);
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
  temporary_folder folder;
  const auto path = folder.path / "model";
  interop::write_atomically(path, [](interop::output_file& f) { f.write("one"); });
  CHECK(contents(path) == "one");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  interop::write_atomically(path, [](interop::output_file& f) {
    f.write("tw");
    f.write("o");
  });
  CHECK(contents(path) == "two");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.files() == 1);
}

TEST_CASE("the old file is there until the new one is complete") {
  temporary_folder folder;
  const auto path = folder.path / "model";
  put(path, "old");
  interop::write_atomically(path, [&](interop::output_file& f) {
    f.write("new");
    CHECK(contents(path) == "old");
  });
  CHECK(contents(path) == "new");
}

TEST_CASE("a symbolic link stays and its target is replaced") {
  temporary_folder folder;
  put(folder.path / "v1", "old");
  fs::create_symlink("v1", folder.path / "latest");
  interop::write_atomically(folder.path / "latest", [](auto& f) { f.write("new"); });
  CHECK(fs::is_symlink(folder.path / "latest"));
  CHECK(contents(folder.path / "v1") == "new");
}

TEST_CASE("a writer that throws leaves the old file and nothing else") {
  temporary_folder folder;
  const auto path = folder.path / "model";
  put(path, "old");
  CHECK_THROWS_WITH_AS(interop::write_atomically(path,
                                                 [](interop::output_file& f) {
                                                   f.write("half");
                                                   throw std::logic_error("boom");
                                                 }),
                       "boom", std::logic_error);
  CHECK(contents(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a full disk leaves the old file and nothing else") {
  temporary_folder folder;
  const auto path = folder.path / "model";
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
  CHECK(folder.files() == 1);
}

TEST_CASE("a target that cannot be a file is refused before anything is written") {
  temporary_folder folder;
  const auto write = [&](const fs::path& path) {
    return message([&] { interop::write_atomically(path, [](auto& f) { f.write("x"); }); });
  };
  fs::create_directory(folder.path / "d");
  CHECK(has(write(folder.path / "d"), "it is a directory"));
  CHECK(has(write(folder.path / "absent" / "f"), "there is no such file or folder"));
  CHECK(has(write("/dev/null"), "it is not a regular file"));
  CHECK(folder.files() == 1);
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
