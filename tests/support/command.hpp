// Runs another program and keeps what it said.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace cella::test {

struct command_outcome {
  int status{};     ///< -1: ended by a signal
  std::string out;  ///< both streams
};
/// Runs a line of the shell.
inline command_outcome run_command(const std::string& line) {
  std::FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  command_outcome r;
  char piece[4096];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, pipe)) r.out.append(piece, n);
  const int code = ::pclose(pipe);
  r.status = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
  return r;
}

}  // namespace cella::test
