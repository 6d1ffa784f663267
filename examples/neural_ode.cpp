// A neural ODE: a small net is the right-hand side of dy/dt = f(y), and is trained so that what
// Runge-Kutta steps in a compiled loop make of it follows a spiral.  Chen et al. 2018
// Ctrl-C saves; --resume goes on.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cella/interop/file.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/train/interrupt.hpp>
#include <cella/train/model.hpp>
#include <cella/transform/control.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

using namespace cella;

constexpr int steps = 10;     // of one piece of the curve
constexpr int pieces = 32;    // per batch
constexpr double dt = 0.025;  // of one step

/// One step of the classical Runge-Kutta method.
constexpr auto runge_kutta = [](auto f, auto y) {
  const auto k1 = f(y);
  const auto k2 = f(y + k1 * (dt / 2));
  const auto k3 = f(y + k2 * (dt / 2));
  const auto k4 = f(y + k3 * dt);
  return y + (k1 + k2 * 2.0 + k3 * 2.0 + k4) * (dt / 6);
};

/// Where points [N, 2] are after each of the next steps: [N, steps, 2].
struct flow {
  nn::dense<2, 48> hidden;
  nn::dense<48, 2> out;

  constexpr var velocity(var y) const { return out(tanh(hidden(y * y * y))); }
  constexpr var operator()(var start) const {
    const auto step = [this](var y, var) {
      y = runge_kutta([this](var v) { return velocity(v); }, y);
      return std::tuple{y, y};
    };
    const var none = constant(*start.b, 0, {start.element(), {steps, 1}});
    return transpose(std::get<1>(scan(step, start, none)), {1, 0, 2});
  }
};

using flow_model =
    model<flow, features<2>, squared_error_loss{}, optim::adam{}, model_options{.batch = pieces}>;

/// The spiral dy/dt = A y^3 that is to be learned, from (2, 0) on.
std::vector<std::array<double, 2>> spiral(std::size_t points) {
  struct point {
    double x, y;
    point operator+(point p) const { return {x + p.x, y + p.y}; }
    point operator*(double s) const { return {x * s, y * s}; }
  };
  const auto f = [](point p) {
    const double x = p.x * p.x * p.x;
    const double y = p.y * p.y * p.y;
    return point{-0.1 * x + 2 * y, -2 * x - 0.1 * y};
  };
  std::vector<std::array<double, 2>> curve;
  for (point p{2, 0}; curve.size() < points; p = runge_kutta(f, p)) curve.push_back({p.x, p.y});
  return curve;
}

int main(int argc, char** argv) try {
  std::string json;
  std::string resume;
  int iterations = 3000;
  std::uint64_t seed = 1;
  CLI::App app("Learns the differential equation of a spiral.");
  app.add_option("--iterations", iterations, "Training steps")->check(CLI::Range(1, 1000000));
  app.add_option("--seed", seed, "Seed of everything random");
  app.add_option("--resume", resume, "Go on with what Ctrl-C saved")->type_name("FILE");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  const auto curve = spiral(1000);
  flow_model m({.seed = seed, .mode = execution::graph});
  if (!resume.empty()) m.load(resume, {.optimizer = true});
  if (m.steps() >= iterations)
    throw error("it has made " + std::to_string(m.steps()) +
                " steps already; give more --iterations");
  std::vector<float> x(pieces * 2);
  std::vector<float> y(pieces * steps * 2);
  const std::int64_t begin = m.steps();
  double first = 0;
  {
    const train::interruption ctrl_c;
    for (std::int64_t i = begin; i < iterations; ++i) {
      if (ctrl_c.happened()) {
        m.save("neural_ode.resume.safetensors", {.optimizer = true});
        std::cout << "interrupted after step " << i
                  << "; go on with the same options and --resume neural_ode.resume.safetensors\n";
        return 130;
      }
      generator random(fold_in(seed, std::uint64_t(i)), 1);  // a resumed step draws the same
      for (std::size_t p = 0; p < pieces; ++p) {
        const auto at = std::size_t(random.uniform() * double(curve.size() - steps));
        for (std::size_t c = 0; c < 2; ++c) {
          x[2 * p + c] = float(curve[at][c]);
          for (std::size_t t = 0; t < steps; ++t)
            y[(p * steps + t) * 2 + c] = float(curve[at + t + 1][c]);
        }
      }
      const double loss = m.train_step(x.data(), y.data(), pieces, 0.01 / (1 + 0.002 * double(i)));
      if (i == begin) first = loss;
      if (i % (iterations / 5 + 1) == 0)
        std::cout << "step " << i << ": loss " << loss << '\n' << std::flush;
    }
  }

  // Along the whole curve, so that it is a figure of the net and not of the last batch.
  const std::size_t starts = curve.size() - steps;
  x.resize(starts * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(curve[i / 2][i % 2]);
  const auto found = m.predict(x.data(), starts);
  double last = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t at = i / 2 / steps + i / 2 % steps + 1;
    const double wrong = double(found[i]) - curve[at][i % 2];
    last += wrong * wrong / double(found.size());
  }
  std::cout << "mean squared error " << first << " at first, " << last << " in the end\n";

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"first_loss", first}, {"loss", last}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "neural_ode: " << e.what() << '\n';
  return 2;
}
