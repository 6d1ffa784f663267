#include <doctest/doctest.h>

#include <cella/models/lenet.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/summary.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/control.hpp>
#include <sstream>

using namespace cella;

namespace explain_test {

/// One hidden layer, with a value that two others read.
struct small_net {
  nn::dense<4, 8> first{};
  nn::dense<8, 3> second{};
  state<3> offset{};
  static constexpr int line_of_first = __LINE__ + 3;

  constexpr var operator()(var x) const {
    x = relu(first(x));
    return second(x) + offset;
  }
};
using step = training_step<small_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.5}>>;
using training = program<step, true, dtype::f32, tensor<dtype::f32, 32, 4>, tensor<dtype::i32, 32>>;
using inference = inference_program<small_net, tensor<dtype::f32, 1, 4>>;
/// A loop with a state that nobody reads afterwards.
struct looped_net {
  parameter<4, 4> weight{};

  constexpr var operator()(var x) const {
    const auto turn = [&](var h, var u) {
      h = tanh(matmul(h, weight) + u);
      return std::tuple{h, h};
    };
    return sum(std::get<1>(scan(turn, zeros_like(reshape(slice(x, 0, 0, 1), {3, 4})), x)), {0});
  }
};
using looped = inference_program<looped_net, tensor<dtype::f32, 5, 3, 4>>;
using picture = inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>;

template <class F>
std::string printed(F f) {
  std::ostringstream s;
  f(s);
  return s.str();
}
template <class P>
std::string explained(const explain_options& o = {}) {
  return printed([&](std::ostream& out) { explain<P>(out, o); });
}
std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> all;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
bool contains(const std::string& s, std::string_view part) {
  return s.find(part) != std::string::npos;
}
int count_of(const std::string& s, std::string_view part) {
  int n = 0;
  for (std::size_t at = s.find(part); at != s.npos; at = s.find(part, at + 1)) ++n;
  return n;
}
/// Bytes behind a heading of the memory table, without the commas.
std::int64_t bytes_behind(const std::string& s, const std::string& heading) {
  const std::size_t at = s.find(heading);
  REQUIRE(at != s.npos);
  std::string digits;
  for (char c : s.substr(at + heading.size(), 40)) {
    if (c >= '0' && c <= '9')
      digits += c;
    else if (c != ',' && !digits.empty())
      break;
  }
  return std::stoll(digits);
}

}  // namespace explain_test

using namespace explain_test;

TEST_CASE("explain prints the traced graph and what each pass makes of it") {
  const std::string s = explained<training>();
  CHECK(contains(s, "== traced: "));
  for (const pass& p : standard_passes)
    CHECK(contains(s, "== after " + std::string(p.name) + ": "));
  CHECK(contains(s, "input %first.weight: f32[8,4] (parameter)"));
  CHECK(contains(s, "updates %momentum.first.weight"));
  // The last stage is the graph that was compiled, whose numbers the steps refer to.
  CHECK(contains(s, to_string(thaw(training::graph))));
}

TEST_CASE("explain without graphs prints steps and memory only") {
  const std::string s = explained<training>({.graphs = false});
  CHECK_FALSE(contains(s, "== traced"));
  CHECK(s.starts_with("== steps: training in f32, " + std::to_string(lanes_of<dtype::f32>()) +
                      " lanes\n"));
  CHECK(contains(s, "== memory, in bytes\n"));
}

TEST_CASE("there is one row per step, with its kernel") {
  const std::string s = printed([](std::ostream& out) { print_steps<training>(out); });
  CHECK(contains(s, " " + std::to_string(training::plan.step_count) + " steps"));
  for (int i = 0; i < training::plan.step_count; ++i) {
    const plan_step& p = training::plan.steps[std::size_t(i)];
    const std::string row =
        detail::right(std::to_string(i), 2) + "   " + std::string(name(p.kind)) + " ";
    CHECK(contains("\n" + s, "\n" + row));
  }
}

TEST_CASE("a step is written as a formula over the values that lie in memory") {
  const std::string s = explained<inference>({.graphs = false});
  CHECK(contains(s, "f32[1,8] = relu(matmul(x, first.weight) + first.bias)\n"));
  CHECK(contains(s, " + second.bias + offset\n"));
  CHECK(contains(s, "first  explain.cpp:" + std::to_string(small_net::line_of_first) + "\n"));
  CHECK(contains(s, "first.bias @parameters+128 per column"));
}

TEST_CASE("a loop is written with what it reads and what is read of it") {
  const std::string s = explained<looped>({.graphs = false});
  CAPTURE(s);
  CHECK(contains(s, ": f32[5,3,4] = scan(0, x, weight)"));
  CHECK(contains(s, "x @argument"));
  CHECK(contains(s, "weight @parameters+0"));
  CHECK(contains(s, "unused result @arena"));
  CHECK(contains(s, " = sum(%"));
  CHECK_FALSE(contains(s, "?"));
}

TEST_CASE("an update is written with a prime, in place, by the step that makes the gradient") {
  const std::string s = explained<training>({.graphs = false});
  CHECK(contains(s, "momentum.second.weight': f32[3,8] = momentum.second.weight * 0.5 + matmul("));
  CHECK(contains(s,
                 "second.weight': f32[3,8] = second.weight - momentum.second.weight' * "
                 "learning_rate\n"));
  CHECK(contains(s, "momentum.second.weight' @slots+"));
  // Four parameters and their momenta, each updated where it lies.
  CHECK(count_of(s, " in place") == 8);
  CHECK(count_of(s, "?") == 0);  // every address that is read has been written before
}

TEST_CASE("positions of maxima and filters packed once are named") {
  const std::string s = explained<picture>({.graphs = false});
  CHECK(contains(s, "relu(max_pool(conv2d(x, conv1.weight)) + conv1.bias)"));
  CHECK(contains(s, "packed filters @arena+"));
  CHECK(contains(s, "to   scratch @arena+"));
  CHECK_FALSE(contains(s, "?"));
}

TEST_CASE("tables fit the terminal") {
  for (std::size_t width : {100u, 120u}) {
    const std::string s = explained<training>({.graphs = false, .width = width});
    for (const std::string& line : lines_of(s)) {
      INFO(line);
      CHECK(line.size() <= width);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("the memory table tells what the plan tells") {
  const std::string s = printed([](std::ostream& out) { print_memory<training>(out); });
  CHECK(bytes_behind(s, "     arena") == training::plan.arena_bytes);
  CHECK(bytes_behind(s, "without reuse") == training::plan.arena_bytes_without_reuse);
  CHECK(bytes_behind(s, "lower bound") == training::plan.live_bytes);
  CHECK(bytes_behind(s, "parameters and states") == training::plan.parameter_bytes);
  CHECK(bytes_behind(s, "optimizer slots") == training::plan.slot_bytes);
  CHECK(contains(s, "70 numbers in 5 tensors"));  // 4 x 8 + 8 + 8 x 3 + 3, and the state's 3
  CHECK(contains(s, "67 numbers in 4 tensors"));
}

TEST_CASE("values that live at the same time do not overlap in the chart of memory") {
  const detail::program_facts p = detail::facts_of<training>();
  const detail::formulas f(p);
  detail::address_book book(p, f);
  for (int i = 0; i < training::plan.step_count; ++i) book.follow(i);
  const auto values = book.values();
  CHECK(values.size() > 5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i].offset + values[i].bytes <= training::plan.arena_bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = values[i], &b = values[j];
      if (a.last < b.first || b.last < a.first) continue;
      INFO(a.name, " and ", b.name);
      CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
    }
  }
}

TEST_CASE("summarize lists parameters and states with their sizes") {
  const std::string s = printed([](std::ostream& out) { summarize(out, small_net{}); });
  CHECK(s ==
        "parameter      shape                     elements\n"
        "-------------------------------------------------\n"
        "first.weight   [8,4]                           32\n"
        "first.bias     [8]                              8\n"
        "second.weight  [3,8]                           24\n"
        "second.bias    [3]                              3\n"
        "offset         [3]                              3  not trained\n"
        "-------------------------------------------------\n"
        "total                                          70\n"
        "trainable                                      67\n");
  CHECK(contains(printed([](std::ostream& out) { summarize(out, models::lenet5{}); }), "61,706\n"));
}

TEST_CASE("summarize of arguments lists cells with results, parameters, arithmetic and bytes") {
  const std::string s = printed([](std::ostream& out) {
    summarize<cella::tensor<dtype::f32, 32, 1, 28, 28>>(out, models::lenet5{});
  });
  // conv1: 2 x 25 operations for each of 32 x 6 x 28 x 28 numbers, and one for the bias.
  CHECK(contains(
      s, "conv1             f32[32,6,28,28]            156         7,676,928        602,736\n"));
  CHECK(contains(
      s, "fc3               f32[32,10]                 850            54,080          4,680\n"));
  // Pools look at four elements for each of 32 x 6 x 14 x 14 and 32 x 16 x 5 x 5.
  CHECK(contains(
      s, "total                                     61,706        27,275,840      1,091,880\n"));
}
