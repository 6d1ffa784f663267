#include <doctest/doctest.h>

#include <cella/models/lenet.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/summary.hpp>
#include <cella/train/model.hpp>
#include <sstream>

#include "documents.hpp"

using namespace cella;
using namespace cella::test;

namespace {

// As in examples/explain.cpp.
using lenet = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{},
                    optim::sgd{.momentum = 0.9}, model_options{.batch = 32}>;

/// Without what every change of a header or of the planner moves: line numbers and arena offsets.
std::string comparable(const std::string& line) {
  std::string s;
  for (std::size_t i = 0; i < line.size(); ++i) {
    s += line[i];
    const bool moves = s.ends_with("@arena+") || s.ends_with(".hpp:");
    while (moves && i + 1 < line.size() && std::isdigit(static_cast<unsigned char>(line[i + 1])))
      ++i;
  }
  return s;
}
std::vector<std::string> comparable(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    line = comparable(line);
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}
std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> all;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
template <class P>
std::vector<std::string> explained() {
  std::ostringstream s;
  summarize(s, models::lenet5{});
  explain<P>(s);
  return comparable(lines_of(s.str()));
}

}  // namespace

TEST_CASE("printed output in documents is what the program prints") {
  if (lanes_of<dtype::f32>() != 16) {
    MESSAGE("the documents show programs for 16 lanes");
    return;
  }
  const auto training = explained<lenet::engine_type::training>();
  const auto inference = explained<lenet::engine_type::inference<1>>();
  int outputs = 0;
  for (const code_block& b : all_blocks()) {
    if (!b.mark.starts_with("output: explain")) continue;
    INFO(b.document, ":", b.line);
    const bool infers = b.mark.find("inference") != b.mark.npos;
    CHECK(missing_line(comparable(b.lines), infers ? inference : training) == "");
    ++outputs;
  }
  CHECK(outputs > 4);
}
