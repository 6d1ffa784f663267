#include <doctest/doctest.h>

#include <cella/graph/attributes.hpp>
#include <cella/graph/shape.hpp>

using namespace cella;

namespace {

struct mixed {
  double value{};
  shape extents{};
  std::int32_t flag{};
  friend constexpr bool operator==(const mixed&, const mixed&) = default;
};
struct full {
  attribute_words words{};
};
struct too_large {
  std::array<std::int32_t, 26> words{};
};
struct odd {
  std::array<char, 3> bytes{};
};

constexpr mixed sample{-0.5, {1, 2, 3}, 7};
static_assert(attributes(sample).as<mixed>() == sample);
static_assert(attributes(sample) == attributes(mixed{-0.5, {1, 2, 3}, 7}));
static_assert(!(attributes(sample) == attributes(mixed{-0.5, {1, 2, 4}, 7})));
static_assert(attribute_struct<full> && !attribute_struct<too_large> && !attribute_struct<odd>);

}  // namespace

TEST_CASE("the largest struct keeps every word") {
  full f;
  for (std::size_t i = 0; i < 25; ++i) f.words[i] = std::int32_t(i * 1000003);
  CHECK(attributes(f).as<full>().words == f.words);
}

TEST_CASE("words that a struct does not use are zero") {
  struct small {
    std::int32_t a{};
  };
  const auto words = attributes(small{5}).as<full>().words;
  CHECK(words[0] == 5);
  for (std::size_t i = 1; i < 25; ++i) CHECK(words[i] == 0);
}
