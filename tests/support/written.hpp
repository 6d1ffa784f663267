// What a function writes to the standard output.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace cella::test {

template <class F>
std::string written(F f) {
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  std::FILE* const file = std::tmpfile();
  ::dup2(::fileno(file), STDOUT_FILENO);
  f();
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  std::string s;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) s += char(c);
  std::fclose(file);
  return s;
}

}  // namespace cella::test
