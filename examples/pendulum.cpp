// A Hamiltonian pendulum: only its energy is written down, the equations of motion are its
// gradient. A symplectic integrator (leapfrog) runs as one compiled loop, and the period is
// compared with the exact one, 4 K(sin(angle / 2)).
#include <CLI/CLI.hpp>
#include <cella/interop/file.hpp>
#include <cella/ops/functions.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace cella;

/// Energy of a pendulum of unit mass and length under unit gravity.
constexpr var energy(var angle, var momentum) {
  return sum(square(momentum) * 0.5 + 1 - cos(angle));
}

constexpr int steps = 20000;
constexpr double dt = 1e-3;

/// An angle, at rest -> all angles and energies on the way.
constexpr auto swing = [](var start) {
  const auto force = [](var q, var p) { return -grad(&energy)(q, p); };
  const auto velocity = [](var q, var p) {
    return grad([](var momentum, var angle) { return energy(angle, momentum); })(p, q);
  };
  const auto step = [&](var, auto state) {
    auto [q, p] = state;
    p = p + force(q, p) * (dt / 2);
    q = q + velocity(q, p) * dt;
    p = p + force(q, p) * (dt / 2);
    return std::tuple{q, p};
  };
  const auto record = [&](auto state, var index) {
    const auto next = step(index, state);
    return std::tuple{next,
                      std::tuple{std::get<0>(next), energy(std::get<0>(next), std::get<1>(next))}};
  };
  const var none = constant(*start.b, 0, {dtype::f64, {steps, 1}});
  return std::get<1>(scan(record, std::tuple{start, zeros_like(start)}, none));
};

int main(int argc, char** argv) try {
  std::string json;
  double angle = 1.5;
  CLI::App app("Swings a pendulum whose energy is all that is written down.");
  app.add_option("--angle", angle, "Where it starts, in radians")->check(CLI::Range(0.1, 3.0));
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  auto run = compile<tensor<dtype::f64, 1>>(swing);
  const auto angles = run(std::array{angle});
  const auto energies = run.result<1>();

  // The angle passes zero after a quarter of the period, downwards.
  double quarter = 0;
  for (std::size_t i = 1; i < angles.size() && quarter == 0; ++i) {
    if (angles[i - 1] > 0 && angles[i] <= 0)
      quarter = dt * (double(i) + angles[i - 1] / (angles[i - 1] - angles[i]));
  }
  const double exact = 4 * std::comp_ellint_1(std::sin(angle / 2));
  double drift = 0;
  for (double e : energies) drift = std::max(drift, std::abs(e - energies[0]));
  std::cout << "period " << 4 * quarter << ", exact " << exact << "; the energy stays within "
            << drift << '\n';

  if (!json.empty()) {
    const nlohmann::ordered_json figures{
        {"period", 4 * quarter}, {"exact_period", exact}, {"energy_drift", drift}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "pendulum: " << e.what() << '\n';
  return 2;
}
