#include <doctest/doctest.h>

#include <cella/graph/error.hpp>
#include <cella/graph/text.hpp>
#include <limits>
#include <sstream>

using namespace cella;

namespace {
static_assert((text() << "x is " << shape{32, 400}).view() == "x is [32,400]");
static_assert((text() << tensor_type{dtype::bf16, {}}).view() == "bf16[]");
static_assert((text() << -40 << "," << 0).view() == "-40,0");
static_assert(text().empty() && !text("a").empty());
}  // namespace

TEST_CASE("integers print in full range") {
  CHECK((text() << std::numeric_limits<std::int64_t>::min()).view() == "-9223372036854775808");
  CHECK((text() << std::numeric_limits<std::int64_t>::max()).view() == "9223372036854775807");
}

TEST_CASE("numbers print with six digits") {
  static_assert((text() << -0.9).view() == "-0.9");
  for (double v : {0.0, 1.0, 10.0, 0.1, 0.999, 123456.0, 0.00012345, 1234.56, 99999.9, 3.14159}) {
    std::ostringstream wanted;
    wanted << v;
    CHECK((text() << v).view() == wanted.str());
  }
  CHECK((text() << 1e-8).view() == "1e-8");
  CHECK((text() << 2.5e20).view() == "2.5e+20");
  CHECK((text() << 999999.9).view() == "1e+6");
  CHECK((text() << std::numeric_limits<double>::infinity()).view() == "inf");
  CHECK((text() << -std::numeric_limits<double>::quiet_NaN()).view() == "nan");
}

TEST_CASE("what does not fit is dropped") {
  text t;
  for (int i = 0; i < 100; ++i) t << "0123456789";
  CHECK(t.size() == text::capacity);
  CHECK(t.view().substr(500) == "01234567890");
  t << "more";
  CHECK(t.size() == text::capacity);
}

TEST_CASE("a place in the source is written as file name and line") {
  const std::source_location at = std::source_location::current();
  const auto written = text() << at;
  const auto expected = text() << "text.cpp:" << std::int64_t{at.line()};
  CHECK(written.view() == expected.view());
}

TEST_CASE("an exception carries the sentence") {
  try {
    throw model_error(text() << "matmul: " << shape{2});
  } catch (const error& e) { CHECK(std::string_view(e.what()) == "matmul: [2]"); }
}
