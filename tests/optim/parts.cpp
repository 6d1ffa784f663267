// Rules of parts of the parameters.
#include <doctest/doctest.h>

#include <cella/optim/clip.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/optim/parts.hpp>
#include <string>

#include "linear_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr optim::sgd plain{};
const std::vector<pair_of_tensors> steps{{{3, -0.2, 0.5}, {0.1, -4, 0, 1}},
                                         {{1, 0.2, -0.5}, {0.3, 2, 1, 1}}};

/// The fault of a rule in a step of `a` and `b`.
template <auto Rule>
std::string fault() {
  return std::string(fault_of_step(linear_step<Rule>{}).view());
}

}  // namespace

TEST_CASE("each part has its rule: that of the first pattern that matches") {
  constexpr optim::adam adam{};
  constexpr auto rule =
      optim::parts(optim::part<"b*">(adam), optim::part<"*">(optim::scaled_rate(0.5, plain)));
  const auto mixed = trained<rule>(steps, 0.1);
  const auto all_adam = trained<adam>(steps, 0.1);
  const auto slow = trained<plain>(steps, 0.05);
  REQUIRE(mixed.size() == 2);
  for (std::size_t i = 0; i < mixed.size(); ++i)
    CHECK(distance(mixed[i], {slow[i].a, all_adam[i].b}) < 1e-15);
}

TEST_CASE("what a part freezes does not count for a norm round the parts") {
  constexpr auto rule = optim::clip_by_global_norm(
      1, optim::parts(optim::part<"a">(optim::freeze<"a">(plain)), optim::rest(plain)));
  const auto w = trained<rule>({steps[0]}, 0.1);
  const double norm = std::sqrt(0.01 + 16 + 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(w[0].a[i] == 1);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::abs(w[0].b[i] - (-2 - 0.1 * steps[0].b[i] / (norm + 1e-6))) < 1e-15);
}

TEST_CASE("a part that never applies is a fault") {
  CHECK(fault<optim::parts(optim::rest(plain), optim::part<"b">(plain))>() ==
        "optim::parts: the part \"b\" never applies: the part \"*\" before it takes \"b\"; put the "
        "narrower pattern first, and optim::rest last");
  CHECK(
      fault<optim::parts(optim::part<"a">(plain), optim::part<"a">(plain), optim::rest(plain))>() ==
      "optim::parts: the part \"a\" never applies: the part \"a\" before it takes \"a\"; put the "
      "narrower pattern first, and optim::rest last");
  CHECK(fault<optim::parts(optim::part<"a">(plain), optim::part<"b">(plain), optim::rest(plain))>()
            .empty());
  // One parameter of two is left.
  CHECK(fault<optim::parts(optim::part<"a">(plain), optim::part<"*">(plain))>().empty());
}

TEST_CASE("patterns without parameters and parameters without a part are faults") {
  CHECK(fault<optim::parts(optim::part<"c.*">(plain), optim::rest(plain))>() ==
        "optim::part: no parameter matches \"c.*\"; this net begins with \"a\"");
  CHECK(fault<optim::parts(optim::part<"a">(plain))>() ==
        "optim::parts: no part takes \"b\"; add optim::rest(rule), or freeze it");
  CHECK(fault<optim::parts(optim::part<"a">(plain), optim::rest(plain))>().empty());
  CHECK(fault<optim::scaled_rate(-1, plain)>() ==
        "optim::scaled_rate: the factor is -1; it must be at least 0, and finite");
}
