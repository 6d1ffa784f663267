// The project's documents as lists of code blocks.
//
// A block of C++ follows a line `<!-- quote: path -->` and consists of lines of that file, a
// printed one `<!-- output: command -->`; a line `...` stands for lines that are left out.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace cella::test {

struct code_block {
  std::string document;
  int line{};            ///< of the fence
  std::string language;  ///< behind the fence
  std::string mark;      ///< `quote: path` or `output: command` above it, else empty
  std::vector<std::string> lines;
};

inline std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(" \r") + 1);
    all.push_back(line);
  }
  return all;
}

inline std::filesystem::path source_directory() { return CELLA_SOURCE_DIR; }

inline std::vector<code_block> blocks_of(const std::filesystem::path& document) {
  std::vector<code_block> all;
  std::string mark;
  bool open = false;
  int number = 0;
  for (const std::string& line : read_lines(document)) {
    ++number;
    if (line.starts_with("```")) {
      open = !open;
      if (open) all.push_back({document.filename().string(), number, line.substr(3), mark, {}});
      mark.clear();
    } else if (open) {
      all.back().lines.push_back(line);
    } else if (line.starts_with("<!-- ") && line.ends_with(" -->")) {
      mark = line.substr(5, line.size() - 9);
    } else if (!line.empty()) {
      mark.clear();
    }
  }
  return all;
}
/// All blocks of README.md and docs/*.md, but for the document whose own test makes it from files.
inline std::vector<code_block> all_blocks() {
  std::vector<code_block> all = blocks_of(source_directory() / "README.md");
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "docs")) {
    if (entry.path().extension() != ".md" || entry.path().filename() == "errors.md") continue;
    for (auto& b : blocks_of(entry.path())) all.push_back(std::move(b));
  }
  return all;
}

/// The first line of `quoted` that `file` does not have in its place; empty if it has them all.
/// Lines between two `...` stand together, indented alike.
inline std::string missing_line(const std::vector<std::string>& quoted,
                                const std::vector<std::string>& file) {
  std::size_t from = 0;
  for (std::size_t first = 0; first < quoted.size();) {
    if (quoted[first] == "..." || quoted[first].empty()) {
      ++first;
      continue;
    }
    std::size_t last = first;
    while (last < quoted.size() && quoted[last] != "...") ++last;
    while (quoted[last - 1].empty()) --last;
    std::size_t best = 0;
    std::size_t found = file.size();
    for (std::size_t at = from; at + (last - first) <= file.size(); ++at) {
      if (!file[at].ends_with(quoted[first])) continue;
      const std::string indent(file[at].size() - quoted[first].size(), ' ');
      std::size_t n = 0;
      while (first + n < last &&
             (quoted[first + n].empty() ? file[at + n].empty()
                                        : file[at + n] == indent + quoted[first + n]))
        ++n;
      best = std::max(best, n);
      if (first + n == last) {
        found = at;
        break;
      }
    }
    if (found == file.size()) return quoted[first + best];
    from = found + (last - first);
    first = last;
  }
  return "";
}

}  // namespace cella::test
