// A build with a file of cella-tune's (fixture/cella_tuning.hpp: one shape, of which direct sums
// are the fastest forward and Winograd's filtering backward), and the program itself.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cella/backend/cpu/plan/convolution_cost.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "support/command.hpp"

using namespace cella;

namespace {

constexpr convolution_shape square(int samples, int channels, int size, int filters) {
  return {samples,    channels, size, size, filters, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
          dtype::f32, 16};
}
constexpr convolution_algorithm chosen(const convolution_shape& s, convolution_pass p) {
  return choose_in_blocks(s, p, convolution_algorithm::modelled);
}

#ifdef CELLA_TUNE_PROGRAM
std::string contents(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}
#endif

}  // namespace

TEST_CASE("measured shapes are chosen by what was measured, others by the model") {
  constexpr convolution_shape known = square(8, 64, 56, 64), other = square(8, 64, 28, 64);
  static_assert(convolution_cost(convolution_algorithm::direct, known, convolution_pass::forward) ==
                1.81928e7);
  CHECK(chosen(known, convolution_pass::forward) == convolution_algorithm::direct);
  CHECK(chosen(known, convolution_pass::image_gradient) == convolution_algorithm::minimal);
  CHECK(modelled_nanoseconds(convolution_algorithm::minimal, known, convolution_pass::forward) <
        modelled_nanoseconds(convolution_algorithm::direct, known, convolution_pass::forward));
  CHECK(chosen(other, convolution_pass::forward) == convolution_algorithm::minimal);
  convolution_shape twice = known;
  twice.element = dtype::f64;
  twice.lanes = 8;
  CHECK(chosen(twice, convolution_pass::forward) == convolution_algorithm::minimal);
}

#ifdef CELLA_TUNE_PROGRAM
TEST_CASE("cella-tune writes a file of the fixture's form and prints model beside measurement") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("cella-tuning-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto file = folder / "cella_tuning.hpp";
  const auto run = test::run_command("'" CELLA_TUNE_PROGRAM "' --seconds 0.001 --output '" +
                                     file.string() + "' 2x16x12x9:16:3");
  CHECK(run.status == 0);
  CHECK(run.out.find("measured | modelled microseconds") != std::string::npos);
  CHECK(run.out.find("2x16x12x9:16:3:1:1     filter gradient") != std::string::npos);
  const auto form = [](const std::string& text) {
    return std::regex_replace(text, std::regex(R"(\b[0-9.]+(e[+-]?[0-9]+)?)"), "#");
  };
  const std::string written = contents(file);
  CHECK(written.find("{{2, 16, 12, 9, 16, {3, 3}") != std::string::npos);
  CHECK(form(written) == form(contents(CELLA_SOURCE_DIR "/tests/tuning/fixture/cella_tuning.hpp")));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("cella-tune refuses what it does not understand, and says when it cannot write") {
  CHECK(test::run_command("'" CELLA_TUNE_PROGRAM "' 2x16x12:16").status == 2);
  CHECK(test::run_command("'" CELLA_TUNE_PROGRAM "' 2x16x2x2:16:5:1:0").status == 2);
  const auto run = test::run_command("'" CELLA_TUNE_PROGRAM
                                     "' --seconds 0.001 --output /nowhere/at/all 1x2x4x4:2:3");
  CHECK(run.status == 1);
  CHECK(run.out.find("cannot write /nowhere/at/all") != std::string::npos);
}
#endif
