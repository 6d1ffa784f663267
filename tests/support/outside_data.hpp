// Data that are too large for the project or not ours to hand on. Tests that need them stand in the
// suite "outside", which ctest reports as skipped where they are missing.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace cella::test {

/// `folder` below the one that the environment variable names. Nothing, with the word that ctest
/// looks for, if the variable is not set; a variable that names a folder without it is a failure.
inline std::optional<std::filesystem::path> outside_data(const std::string& variable,
                                                         const std::filesystem::path& folder) {
  const char* named = std::getenv(variable.c_str());
  if (!named) {
    MESSAGE("skipped: ", variable, " is not set; let it name a folder with ", folder.string());
    return std::nullopt;
  }
  const auto path = std::filesystem::path(named) / folder;
  REQUIRE_MESSAGE(std::filesystem::is_directory(path), variable, " names no folder with ",
                  folder.string());
  return path;
}

}  // namespace cella::test
