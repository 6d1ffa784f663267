// Runs something in a forked child and keeps what it said.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <thread>

namespace cella::test {

struct child_outcome {
  int status = -1;   ///< of the exit; -1: ended by a signal, or by us because it hung
  std::string text;  ///< what the function returned, or the message of what it threw
};

/// Calls `f() -> std::string` in a child of this process, which gets 20 seconds. A fork's child has
/// no threads but this one.
template <class F>
child_outcome in_child(F f) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string said;
    int status = 0;
    try {
      said = f();
    } catch (const std::exception& e) {
      said = e.what();
      status = 1;
    }
    if (::write(ends[1], said.data(), said.size()) != ssize_t(said.size())) status = 2;
    ::_exit(status);
  }
  ::close(ends[1]);
  int code = 0;
  pid_t ended = 0;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((ended = ::waitpid(child, &code, WNOHANG)) == 0 &&
         std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  child_outcome r;
  if (ended == 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &code, 0);
    r.text = "the child hung";
  } else {
    char piece[4096];  // less than a pipe holds
    const ssize_t n = ::read(ends[0], piece, sizeof piece);
    if (n > 0) r.text.assign(piece, std::size_t(n));
    if (WIFEXITED(code)) r.status = WEXITSTATUS(code);
  }
  ::close(ends[0]);
  return r;
}

}  // namespace cella::test
