// Runs an example as its user does: arguments in, exit status and both streams out.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cella::test {

/// A folder that goes away with the test. Its name has a space, as folders of users do.
class scratch_folder {
 public:
  explicit scratch_folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("cella " + name + " " + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  scratch_folder(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Names of the files in it, but for the streams of the last run.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(path_)) {
      if (e.path().filename() != ".out" && e.path().filename() != ".err")
        names.push_back(e.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline nlohmann::json read_json(const std::filesystem::path& file) {
  return nlohmann::json::parse(read_text(file));
}

inline std::string quoted(const std::string& word) { return "'" + word + "'"; }
inline std::string quoted(const std::filesystem::path& path) { return quoted(path.string()); }

struct outcome {
  int status{};  ///< -1: ended by a signal
  std::string out;
  std::string err;
};

/// Runs a line of the shell in `folder`; streams are files, not terminals.
inline outcome run(const scratch_folder& folder, const std::string& line) {
  const int code =
      std::system(("cd " + quoted(folder.path()) + " && " + line + " >.out 2>.err").c_str());
  return {WIFEXITED(code) ? WEXITSTATUS(code) : -1, read_text(folder / ".out"),
          read_text(folder / ".err")};
}

/// The figures that an example writes.
inline nlohmann::json figures_of(const std::string& name, const std::string& program,
                                 const std::string& options = "") {
  const scratch_folder folder(name);
  const outcome r = run(folder, quoted(program) + " --json o.json " + options);
  CHECK(r.status == 0);
  CHECK(r.err == "");
  return read_json(folder / "o.json");
}

}  // namespace cella::test
