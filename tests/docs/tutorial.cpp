// docs/tutorial.md, typed into an empty folder block by block, and run.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "documents.hpp"
#include "support/command.hpp"
#include "support/scratch_directory.hpp"

using namespace cella::test;

namespace {

const std::string typed_from = "quote: tests/docs/tutorial/";

std::vector<std::string> lines_with_text(const std::filesystem::path& path) {
  std::vector<std::string> all;
  for (const std::string& line : read_lines(path))
    if (!line.empty()) all.push_back(line);
  return all;
}

/// The number behind these words in what a program said; NaN without them.
double number_behind(const std::string& words, const std::string& said) {
  const std::size_t at = said.find(words);
  return at == said.npos ? std::nan("") : std::strtod(said.c_str() + at + words.size(), nullptr);
}

}  // namespace

TEST_CASE("who types the tutorial into an empty folder gets what it promises") {
  const scratch_directory folder("tutorial of a stranger");
  std::filesystem::create_directory_symlink(source_directory(), folder / "cella");
  // What the tutorial says is asked, not how fast: optimized, these programs take twice as long to
  // compile.
  const std::filesystem::path compiler = folder / "compiler";
  std::ofstream(compiler) << "#!/bin/sh\nexec '" CELLA_COMPILER "' \"$@\" -O0\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  std::set<std::string> typed;
  std::string said;
  for (const code_block& b : blocks_of(source_directory() / "docs/tutorial.md")) {
    INFO("docs/tutorial.md:", b.line);
    if (b.mark.starts_with(typed_from)) {
      const std::string name = b.mark.substr(typed_from.size());
      std::ofstream file(folder / name, std::ios::app);
      for (const std::string& line : b.lines) file << line << "\n";
      typed.insert(name);
    } else if (b.language == "sh") {
      {
        std::ofstream script(folder / "block.sh");
        script << "set -eu\ncd '" << folder.path().string() << "'\n";
        for (const std::string& line : b.lines) script << line << "\n";
      }
      const auto done = run_command("CXX='" + compiler.string() + "' sh '" +
                                    (folder / "block.sh").string() + "'");
      INFO(done.out);
      REQUIRE(done.status == 0);
      said += done.out;
    }
  }
  CHECK(typed.size() == 6);
  for (const std::string& name : typed)
    CHECK(lines_with_text(folder / name) ==
          lines_with_text(source_directory() / "tests/docs/tutorial" / name));

  INFO(said);
  CHECK(number_behind("error on three houses: ", said) < 0.05);
  // Prices have a noise of 3 %, uniform: 1.5 % in the mean.
  CHECK(number_behind("error on houses never seen: ", said) < 0.03);
  const double truth = (30 + 1.5 * 90 + 5 * 3) * std::exp(-10.0 / 80);
  CHECK(number_behind("\nprice: ", said) == doctest::Approx(truth).epsilon(0.06));
  CHECK(number_behind("10 years: ", said) == number_behind("\nprice: ", said));
}
