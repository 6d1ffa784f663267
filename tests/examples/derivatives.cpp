#include <doctest/doctest.h>

#include <cmath>

#include "program.hpp"

using namespace cella::test;

namespace {

/// The figures of a run that Ctrl-C interrupts again and again, each time a little later.
nlohmann::json interrupted_figures(const std::string& name, const std::string& program,
                                   const std::string& options) {
  const scratch_folder folder(name + " interrupted");
  const std::string file = name + ".resume.safetensors";
  int interrupts = 0;
  for (double seconds = 0.3; seconds < 60; seconds += 0.3) {
    const outcome r = run(
        folder, "timeout --foreground --preserve-status --signal=INT " + std::to_string(seconds) +
                    " " + quoted(program) + " --json o.json " + options +
                    (std::filesystem::exists(folder / file) ? " --resume " + file : ""));
    if (r.status == 0) {
      CHECK(interrupts > 0);
      return read_json(folder / "o.json");
    }
    REQUIRE(r.status == 130);
    // Where nothing is trained, at the beginning and the end, it ends as other programs do.
    if (r.out.find("interrupted after step ") == r.out.npos) continue;
    ++interrupts;
    CHECK(r.out.find("go on with the same options and --resume " + file + "\n") != r.out.npos);
    REQUIRE(std::filesystem::exists(folder / file));
  }
  FAIL("it never ended");
  return {};
}

}  // namespace

TEST_CASE("rosenbrock finds the minimum at (1, 1) in a few steps of Newton's method") {
  const auto f = figures_of("rosenbrock", CELLA_ROSENBROCK);
  CHECK(double(f["x"]) == doctest::Approx(1).epsilon(1e-10));
  CHECK(double(f["y"]) == doctest::Approx(1).epsilon(1e-10));
  CHECK(f["steps"] <= 8);
}
TEST_CASE("pendulum swings with the period that the elliptic integral says") {
  for (const double angle : {0.3, 1.5, 2.5}) {
    INFO(angle);
    const auto f = figures_of("pendulum", CELLA_PENDULUM, "--angle " + std::to_string(angle));
    // K(k) = pi / 2 / agm(1, sqrt(1 - k^2)), where k = sin(angle / 2).
    double a = 1;
    double b = std::cos(angle / 2);
    for (int i = 0; i < 6; ++i) {
      const double mean = (a + b) / 2;
      b = std::sqrt(a * b);
      a = mean;
    }
    CHECK(double(f["period"]) == doctest::Approx(2 * 3.14159265358979 / a).epsilon(1e-6));
    CHECK(f["energy_drift"] < 1e-6);
  }
}
TEST_CASE("implicit_layer has the same gradient by the theorem as through its loop") {
  CHECK(figures_of("implicit", CELLA_IMPLICIT_LAYER)["difference"] < 1e-9);
}
TEST_CASE("neural_ode learns the equation of a spiral") {
  const auto f = figures_of("ode", CELLA_NEURAL_ODE);
  CHECK(f["first_loss"] > 1e-3);
  CHECK(f["loss"] < 1e-4);
}
TEST_CASE("char_rnn learns to add") {
  CHECK(figures_of("char_rnn", CELLA_CHAR_RNN)["accuracy"] > 0.9);
}

TEST_CASE("after Ctrl-C char_rnn and neural_ode go on to the same figures") {
  const std::string few = "--iterations 150 --seed 3";
  CHECK(interrupted_figures("char_rnn", CELLA_CHAR_RNN, few) ==
        figures_of("char_rnn", CELLA_CHAR_RNN, few));
  const std::string many = "--iterations 12000 --seed 3";
  // The means over the last steps, and the first loss, are of the last piece.
  const auto parts = interrupted_figures("neural_ode", CELLA_NEURAL_ODE, many);
  CHECK(parts["loss"] == figures_of("neural_ode", CELLA_NEURAL_ODE, many)["loss"]);
}
