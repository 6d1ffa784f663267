#include <doctest/doctest.h>

#include <cella/train/progress.hpp>
#include <chrono>
#include <sstream>
#include <string>

using cella::data::terminal;
using cella::train::progress;

namespace {

constexpr progress::clock::time_point start{};
progress::clock::time_point at(int milliseconds) {
  return start + std::chrono::milliseconds(milliseconds);
}

std::size_t occurrences(const std::string& s, const std::string& part) {
  std::size_t n = 0;
  for (auto i = s.find(part); i != s.npos; i = s.find(part, i + part.size())) ++n;
  return n;
}

}  // namespace

TEST_CASE("on a pipe there is one plain line per epoch") {
  std::ostringstream out;
  {
    progress bar(2, 100, out, terminal{});
    for (int epoch = 0; epoch < 2; ++epoch) {
      bar.begin_epoch(start);
      for (int i = 0; i < 100; ++i) bar.step({{"loss", 1.0}}, at(20 * i));
      bar.end_epoch({{"loss", 0.25}, {"accuracy", 0.98765}}, at(2000));
    }
  }
  CHECK(out.str() ==
        "epoch 1/2 100/100  loss 0.25  accuracy 0.9877  50 step/s  0:02\n"
        "epoch 2/2 100/100  loss 0.25  accuracy 0.9877  50 step/s  0:02\n");
}

TEST_CASE("on a terminal the line is redrawn in place, at most 20 times a second") {
  std::ostringstream out;
  const terminal screen{.interactive = true, .width = 80};
  {
    progress bar(1, 1000, out, screen);
    bar.begin_epoch(start);
    for (int i = 1; i <= 500; ++i) bar.step({{"loss", 0.5}}, at(2 * i));
    CHECK(occurrences(out.str(), "\r") == 20);
    // The last drawing: step 476 after 952 ms, so 524 steps or 1.05 s are left.
    CHECK(
        out.str().ends_with("\repoch 1/1 [============>             ] 476/1000  loss 0.5  500 "
                            "step/s  ETA 0:01\x1b[K"));
  }
  // The unfinished line stays, and what is printed next begins a new one.
  CHECK(out.str().ends_with("\x1b[K\n"));
}

TEST_CASE("no line is as wide as the terminal, however narrow that is") {
  for (int width : {1, 2, 10, 40, 79, 200}) {
    CAPTURE(width);
    std::ostringstream out;
    {
      progress bar(10, 1000, out, terminal{.interactive = true, .width = width});
      bar.begin_epoch(start);
      bar.step({{"loss", 0.123456}, {"accuracy", 0.9}}, at(100));
      bar.end_epoch({{"loss", 0.123456}}, at(200));
    }
    std::size_t longest = 0;
    const auto all = out.str();
    for (auto from = all.find('\r'); from != all.npos; from = all.find('\r', from + 1)) {
      longest = std::max(longest, all.find("\x1b[K", from) - from - 1);
    }
    CHECK(longest < std::size_t(width));
    if (width == 200) CHECK(longest > 60);
  }
}

TEST_CASE("durations are told as a clock tells them") {
  CHECK(progress::duration(7.2) == "0:07");
  CHECK(progress::duration(754) == "12:34");
  CHECK(progress::duration(3723) == "1:02:03");
  CHECK(progress::duration(1e30) == "--:--");
}

TEST_CASE("an epoch without steps is no division by zero") {
  std::ostringstream out;
  progress bar(1, 0, out, terminal{});
  bar.begin_epoch(start);
  bar.end_epoch({}, start);
  CHECK(out.str().starts_with("epoch 1/1 0/0"));
}

TEST_CASE("an epoch that goes on begins at its batch, and the rate is of what is done now") {
  std::ostringstream out;
  progress bar(3, 100, out, terminal{});
  bar.go_on(2, 60, start);
  for (int i = 1; i <= 40; ++i) bar.step({}, at(20 * i));
  bar.end_epoch({}, at(800));
  bar.begin_epoch(at(800));
  bar.end_epoch({}, at(1800));
  CHECK(out.str().starts_with("epoch 2/3 100/100  50 step/s  0:01\nepoch 3/3 0/100  "));
}
