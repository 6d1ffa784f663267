// The golden files, written by the reference implementation of safetensors, and the test support
// that hands them out.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/golden_case.hpp"

using namespace cella;

TEST_CASE("all golden cases load with as many tensors as they name" *
          doctest::test_suite("golden")) {
  const auto ops = test::golden::open("ops");
  REQUIRE(ops.size() > 0);
  std::size_t gradients = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto c = load_case(ops, i);
    INFO(c.label());
    CHECK(c.inputs.size() == ops.json()[i]["inputs"].size());
    CHECK(c.outputs.size() == ops.json()[i]["outputs"].size());
    for (const auto& t : c.outputs) CHECK(t.values.size() == std::size_t(t.shape.size()));
    if (c.cotangents.empty()) continue;
    CHECK(c.cotangents.size() <= c.outputs.size());
    REQUIRE(c.input_gradients.size() == c.inputs.size());
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      if (!c.input_gradients[k]) continue;
      CHECK(c.input_gradients[k]->shape == c.inputs[k].shape);
      ++gradients;
    }
  }
  CHECK(gradients > 0);
}

TEST_CASE("golden values are read in the right order and type: exp of its input is its output" *
          doctest::test_suite("golden")) {
  const auto ops = test::golden::open("ops");
  int checked = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops.json()[i]["op"] != "exp") continue;
    const auto c = load_case(ops, i);
    std::vector<double> expected;
    for (double x : c.inputs[0].values) expected.push_back(std::exp(x));
    test::check_close(c.outputs[0].values, expected, 1e-14);
    ++checked;
  }
  CHECK(checked > 0);
}

TEST_CASE("a golden file written anew has the bytes of the reference implementation" *
          doctest::test_suite("golden")) {
  const auto copy = std::filesystem::temp_directory_path() /
                    ("cella-golden-" + std::to_string(::getpid()) + ".safetensors");
  for (const char* name : {"ops", "derivatives", "layers", "optimizers", "training"}) {
    INFO(name);
    const auto path = test::golden::folder() / (std::string(name) + ".safetensors");
    const auto file = interop::safetensors_file::open(path);
    interop::write_safetensors(copy, file.tensors(), file.metadata());
    CHECK(interop::read_file(copy, 1u << 30) == interop::read_file(path, 1u << 30));
  }
  std::filesystem::remove(copy);
}

TEST_CASE("golden values that are missing are a failure, whoever named the folder") {
  CHECK_THROWS_WITH_AS(test::golden::open("no_such_values"),
                       doctest::Contains("no_such_values.json"), file_error);
  const char* named = std::getenv("CELLA_GOLDEN");
  const std::optional<std::string> before =
      named ? std::optional<std::string>(named) : std::nullopt;
  ::setenv("CELLA_GOLDEN", "/no/such/folder", 1);
  CHECK_THROWS_WITH_AS(test::golden::open("ops"), doctest::Contains("/no/such/folder/ops.json"),
                       file_error);
  before ? ::setenv("CELLA_GOLDEN", before->c_str(), 1) : ::unsetenv("CELLA_GOLDEN");
}

TEST_CASE("every element type widens to the double that it denotes") {
  const auto widened = [](dtype t, std::vector<std::uint8_t> bytes) {
    const auto n = static_cast<int>(bytes.size() / size_of(t));
    return test::widen({"t", {t, {n}}, std::as_bytes(std::span(bytes))}).values;
  };
  CHECK(widened(dtype::boolean, {0, 1}) == std::vector<double>{0, 1});
  CHECK(widened(dtype::i8, {255}) == std::vector<double>{-1});
  CHECK(widened(dtype::u8, {255}) == std::vector<double>{255});
  CHECK(widened(dtype::f16, {0, 0xbc}) == std::vector<double>{-1});
  CHECK(widened(dtype::bf16, {0xc0, 0x3f}) == std::vector<double>{1.5});
  CHECK(widened(dtype::i32, {0, 0, 0, 0x80}) == std::vector<double>{-2147483648.0});
  CHECK(widened(dtype::f32, {0, 0, 0x80, 0x3f}) == std::vector<double>{1});
  CHECK(widened(dtype::i64, {0, 0, 0, 0, 0, 0, 0x20, 0}) ==
        std::vector<double>{9007199254740992.0});
  CHECK_THROWS_AS(widened(dtype::i64, {1, 0, 0, 0, 0, 0, 0x20, 0}), file_error);
}

TEST_CASE("a difference names the count, the worst index and both values") {
  const std::vector<double> expected{1, 100, 0};
  CHECK(test::difference(expected, expected, 0).empty());
  CHECK(test::difference(std::vector<float>{1, 100.5F, 0.25F}, expected, 0.001) ==
        "2 of 3 values differ, worst at [2]: 0.25 computed, 0 expected, error 0.25 > "
        "0.001");
  CHECK(test::difference(std::vector<double>{1}, expected, 1) == "1 values computed, 3 expected");
  CHECK(test::max_relative_error(std::vector<double>{1, 101, 0}, expected) == 0.01);
}

TEST_CASE("NaN and infinity agree only with themselves") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(test::relative_error(nan, nan) == 0);
  CHECK(test::relative_error(inf, inf) == 0);
  CHECK(test::relative_error(nan, 1) == inf);
  CHECK(test::relative_error(1, nan) == inf);
  CHECK(test::relative_error(-inf, inf) == inf);
  CHECK_FALSE(test::difference(std::vector{nan}, std::vector{1.0}, 1e9).empty());
}
