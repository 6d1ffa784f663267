// docs/coming_from.md: the names that it says Cella has are there.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "documents.hpp"

using namespace cella::test;

namespace {

/// The words of some C++ that are names of lower case; `In` and `x` are none.
std::vector<std::string> names_in(const std::string& code) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t first = at;
    while (at < code.size() &&
           (std::isalnum(static_cast<unsigned char>(code[at])) || code[at] == '_'))
      ++at;
    if (at - first > 1 && std::islower(static_cast<unsigned char>(code[first])))
      all.push_back(code.substr(first, at - first));
    if (at == first) ++at;
  }
  return all;
}

/// All names in the headers' code.
const std::set<std::string>& names_of_headers() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const auto& e :
         std::filesystem::recursive_directory_iterator(source_directory() / "include/cella")) {
      if (e.path().extension() != ".hpp") continue;
      for (const std::string& line : read_lines(e.path()))
        for (auto& name : names_in(line.substr(0, line.find("//")))) all.insert(std::move(name));
    }
    return all;
  }();
  return names;
}

/// Names with their namespaces that docs/reference has.
const std::set<std::string>& names_of_reference() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const auto& e : std::filesystem::directory_iterator(source_directory() / "docs/reference"))
      for (const std::string& line : read_lines(e.path()))
        if (line.starts_with("## `")) all.insert(line.substr(4, line.size() - 5));
    return all;
  }();
  return names;
}

/// What stands in backticks in the last column of a table's row.
std::string code_of_last_column(const std::string& row) {
  std::string code;
  bool inside = false;
  for (std::size_t at = row.rfind(" | ") + 3; at < row.size(); ++at) {
    if (row[at] == '`') {
      inside = !inside;
      code += ' ';
    } else if (inside) {
      code += row[at];
    }
  }
  return code;
}

}  // namespace

TEST_CASE("every name that Cella is said to have is in a header") {
  const std::set<std::string> rooms{"data", "metrics", "nn", "optim", "train"};
  int rows = 0;
  for (const std::string& line : read_lines(source_directory() / "docs/coming_from.md")) {
    if (!line.starts_with("| ") || line.starts_with("| ---") || line.ends_with(" Cella |"))
      continue;
    const std::vector<std::string> names = names_in(code_of_last_column(line));
    INFO(line);
    CHECK(!names.empty());
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(names_of_headers().contains(name));
    }
    for (std::size_t i = 0; i + 1 < names.size(); ++i) {
      const std::string full = names[i] + "::" + names[i + 1];
      if (rooms.contains(names[i]) && line.find(full) != line.npos)
        CHECK_MESSAGE(names_of_reference().contains(full), full);
    }
    ++rows;
  }
  CHECK(rows > 80);
}

TEST_CASE("a name that is not there is found") {
  CHECK(names_in(code_of_last_column("| `nn.Linear` | | | `nn::linear<In, Out>`, or |")) ==
        std::vector<std::string>{"nn", "linear"});
  CHECK(!names_of_headers().contains("zero_grad"));
  CHECK(names_of_headers().contains("dense"));
  CHECK(!names_of_reference().contains("nn::linear"));
  CHECK(names_of_reference().contains("nn::dense"));
}
