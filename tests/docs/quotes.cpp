#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "documents.hpp"

using namespace cella::test;

TEST_CASE("every block of C++ in a document is quoted from a file that is compiled") {
  int quotes = 0;
  for (const code_block& b : all_blocks()) {
    if (b.language != "cpp") continue;
    INFO(b.document, ":", b.line);
    REQUIRE(b.mark.starts_with("quote: "));
    const std::string path = b.mark.substr(7);
    const bool compiled = path.starts_with("examples/") || path.starts_with("tests/") ||
                          path.starts_with("include/cella/");
    CHECK(compiled);
    REQUIRE(std::filesystem::exists(source_directory() / path));
    CHECK(missing_line(b.lines, read_lines(source_directory() / path)) == "");
    ++quotes;
  }
  CHECK(quotes >= 8);
}

TEST_CASE("every other block says what it is") {
  const std::vector<std::string> known{"sh", "cmake", "text", "mermaid", "cpp", "json"};
  for (const code_block& b : all_blocks()) {
    INFO(b.document, ":", b.line, ": ```", b.language);
    CHECK(std::ranges::find(known, b.language) != known.end());
  }
}

TEST_CASE("files that documents link to exist") {
  std::vector<std::filesystem::path> documents{source_directory() / "README.md"};
  for (const auto& e : std::filesystem::directory_iterator(source_directory() / "docs"))
    if (e.path().extension() == ".md") documents.push_back(e.path());
  int links = 0;
  for (const auto& d : documents) {
    bool code = false;
    for (const std::string& line : read_lines(d)) {
      if (line.starts_with("```")) code = !code;
      if (code) continue;
      for (std::size_t at = line.find("]("); at != line.npos; at = line.find("](", at + 1)) {
        std::string target = line.substr(at + 2, line.find(')', at) - at - 2);
        target = target.substr(0, target.find('#'));
        const bool inline_code =
            std::count(line.begin(), line.begin() + std::ptrdiff_t(at), '`') % 2;
        if (target.empty() || inline_code || target.find("://") != target.npos) continue;
        INFO(d.filename().string(), ": ", target);
        CHECK(std::filesystem::exists(d.parent_path() / target));
        ++links;
      }
    }
  }
  CHECK(links > 10);
}

TEST_CASE("the times in README.md are those of docs/performance.md") {
  const auto cells = [](const std::string& line) {
    std::vector<std::string> all;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, '|');) {
      const std::size_t first = cell.find_first_not_of(" *");
      all.push_back(
          first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(" *") - first + 1));
    }
    return all;
  };
  // Workload -> framework -> least time, as it is printed.
  std::map<std::string, std::map<std::string, std::string>> least;
  bool peers = false;
  for (const std::string& line : read_lines(source_directory() / "docs/performance.md")) {
    if (line == "<!-- peers -->" || line == "<!-- /peers -->") peers = !peers;
    if (!peers) continue;
    const auto c = cells(line);
    if (c.size() > 6 && !c[4].empty() && std::isdigit(static_cast<unsigned char>(c[4][0])))
      least[c[1]].emplace(c[2], c[4]);  // of several tables the first: one thread
  }
  int rows = 0;
  for (const std::string& line : read_lines(source_directory() / "README.md")) {
    const auto c = cells(line);
    const std::size_t name = c.size() == 4 ? c[1].find("(`") : std::string::npos;
    if (name == std::string::npos) continue;
    const std::string workload = c[1].substr(name + 2, c[1].find("`)") - name - 2);
    INFO(workload);
    auto times = least[workload];
    CHECK(c[2] == times["cella"]);
    times.erase("cella");
    REQUIRE(!times.empty());
    const auto fastest =
        std::ranges::min_element(times, {}, [](const auto& t) { return std::stod(t.second); });
    CHECK(c[3] == fastest->second + " (" + fastest->first + ")");
    ++rows;
  }
  CHECK(rows == int(least.size()));
}

TEST_CASE("the README's line for g++ has the flags that CMake gives") {
  std::string line;
  for (const std::string& l : read_lines(source_directory() / "README.md"))
    if (l.starts_with("g++ ")) line = l;
  REQUIRE(!line.empty());
  int flags = 0;
  for (const std::string& l : read_lines(source_directory() / "cmake/target.cmake")) {
    if (!l.starts_with("set(cella_gnu_options ") && !l.starts_with("set(cella_options ")) continue;
    for (std::size_t at = l.find(" -"); at != l.npos; at = l.find(" -", at + 1)) {
      const std::string flag = l.substr(at, l.find_first_of(" )", at + 1) - at);
      CHECK_MESSAGE(line.find(flag + " ") != line.npos, flag);
      ++flags;
    }
  }
  CHECK(flags == 3);
}

TEST_CASE("a changed, moved or cut line of a quote is found") {
  const std::vector<std::string> file{"a", "  b {", "    c", "  }", "", "d"};
  CHECK(missing_line({"a", "  b {"}, file) == "");
  CHECK(missing_line({"b {", "  c", "}"}, file) == "");
  CHECK(missing_line({"a", "...", "d"}, file) == "");
  CHECK(missing_line({"  }", "", "d"}, file) == "");
  CHECK(missing_line({"b {", "  x", "}"}, file) == "  x");
  CHECK(missing_line({"b {", "}"}, file) == "}");
  CHECK(missing_line({"d", "...", "a"}, file) == "a");
  CHECK(missing_line({"e"}, file) == "e");
}
