// A physics-informed net: it is told the equation of a damped oscillator, u'' + 2 u' + 64 u = 0
// with u(0) = 1 and u'(0) = 0, and no values of its solution. The loss has second derivatives of
// the net by its input, and training differentiates those by the weights.  Raissi, Perdikaris,
// Karniadakis 2019
#include <cella/models/mlp.hpp>
#include <cella/train/model.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <vector>

#include "report.hpp"

using namespace cella;

constexpr double damping = 1, stiffness = 64;

/// The derivative of a function that goes element by element.
constexpr auto derivative(auto f) {
  return grad([f](var t) { return sum(f(t)); });
}

struct motion {
  var place, violation;  // of the equation
};
struct Oscillator {
  nn::dense<1, 32> first;
  nn::dense<32, 32> second;
  nn::dense<32, 1> last;

  constexpr motion operator()(var t) const {
    // The factor t^2 keeps the beginning as it has to be, whatever the layers say.
    const auto u = [this](var s) { return 1 + s * s * last(tanh(second(tanh(first(s))))); };
    const auto speed = derivative(u);
    const auto acceleration = derivative(speed);
    return {u(t), acceleration(t) + 2 * damping * speed(t) + stiffness * u(t)};
  }
};

inline constexpr auto violated = [](const motion& m, var) { return mean(square(m.violation)); };

constexpr int batch = 64;
using physics =
    model<Oscillator, features<1>, violated, optim::adam{}, model_options{.batch = batch}>;

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    physics m({.seed = 1});
    generator random(1);
    std::vector<float> t(batch);
    const int steps = 20000;
    for (int i = 0; i < steps; ++i) {
      for (float& at : t) at = random.uniform(0.f, 1.f);
      m.train_step(t.data(), {}, batch, 0.003 * (1 - double(i) / steps));
    }

    std::vector<float> times;
    for (int i = 0; i <= 100; ++i) times.push_back(float(i) / 100);
    const auto [place, violation] = m.predict(times);
    double worst = 0;
    const double v = std::sqrt(stiffness - damping * damping);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double at = double(times[i]);
      const double exact =
          std::exp(-damping * at) * (std::cos(v * at) + damping / v * std::sin(v * at));
      worst = std::max(worst, std::abs(double(place[i]) - exact));
    }
    return nlohmann::ordered_json{{"largest_error", worst}};
  });
}
