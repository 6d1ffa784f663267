#include <doctest/doctest.h>

#include <cella/runtime/recently_used.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "../train/digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

int tracings = 0;

/// A net that counts how often it is traced at run time.
struct counted_net {
  nn::dense<6, 3> layer{};
  constexpr var operator()(var x) const {
    if (!std::is_constant_evaluated()) ++tracings;
    return layer(x);
  }
};
constexpr model_options without_programs{.batch = 16, .compiled = false};

}  // namespace

TEST_CASE("what was used last stays, the rest is made again") {
  recently_used<int, std::string> memory(3);
  std::vector<int> made;
  const auto ask = [&](int key) {
    return memory.get(key, [&] {
      made.push_back(key);
      return std::to_string(key);
    });
  };
  for (int key : {1, 2, 3, 1, 2, 3, 1}) CHECK(ask(key) == std::to_string(key));
  CHECK(made == std::vector{1, 2, 3});
  ask(4);  // 2 was not asked for the longest
  for (int key : {1, 3, 4}) ask(key);
  CHECK(made == std::vector{1, 2, 3, 4});
  ask(2);
  CHECK(made == std::vector{1, 2, 3, 4, 2});
  CHECK(memory.size() == 3);
  // What cannot be made changes nothing.
  CHECK_THROWS_AS(memory.get(9, []() -> std::string { throw std::runtime_error("no"); }),
                  std::runtime_error);
  for (int key : {3, 4, 2}) ask(key);
  CHECK(made.size() == 5);
}

TEST_CASE("a model plans each batch size once, and keeps few plans") {
  model<counted_net, features<6>, cross_entropy_loss{}, optim::sgd{}, without_programs> m(
      {.seed = 4});
  std::vector<float> samples;
  for (std::uint64_t i = 0; i < 16 * 6; ++i) samples.push_back(uniform<float>(8, i));
  const auto predict = [&](std::int64_t rows) {
    const auto y = m.predict(samples.data(), rows);
    return std::vector<float>(y.data(), y.data() + rows * 3);
  };
  const auto all = predict(16);
  const int before = tracings;
  for (int time = 0; time < 3; ++time) {
    for (std::int64_t rows : {16, 5, 3, 16, 1}) {
      const auto y = predict(rows);
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(all[i]));
    }
  }
  CHECK(tracings == before + 3);  // for 5, 3 and 1
  for (std::int64_t rows = 1; rows <= 16; ++rows) (void)predict(rows);
  const int after = tracings;
  (void)predict(16);
  CHECK(tracings == after);
  (void)predict(1);  // 15 others were asked for since
  CHECK(tracings == after + 1);
}
