// An implicit layer: y = tanh(W y + x) is solved in a loop whose length the data decide. Its
// gradient comes in two ways, back through all steps of the loop, or from the implicit function
// theorem, which stores nothing of the loop; they agree.  Bai, Kolter, Koltun 2019
#include <CLI/CLI.hpp>
#include <cella/interop/file.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

using namespace cella;

constexpr int width = 16;

/// Repeats y = f(y) until y stands still.
template <class F>
constexpr var fixed_point(F f, var start) {
  const auto moves = [f](var y) { return sum(square(f(y) - y)) > 1e-26; };
  return while_loop(moves, f, start);
}
constexpr var layer(var w, var x, var y) { return tanh(matmul(w, y) + x); }

/// y(w, x), differentiated through the loop.
constexpr var unrolled(var w, var x) {
  return fixed_point([w, x](var y) { return layer(w, x, y); }, zeros_like(x));
}
/// The same value; its cotangent u solves u = dy + u df/dy, another fixed point.
constexpr auto implicit =
    custom_vjp([](var w, var x) { return unrolled(w, x); },
               [](var w, var x, var y, var dy) {
                 const auto step = [=](var u) {
                   return dy + vjp([=](var v) { return layer(w, x, v); }, y, u).second;
                 };
                 const var u = fixed_point(step, dy);
                 const var dw = vjp([=](var v) { return layer(v, x, y); }, w, u).second;
                 const var dx = vjp([=](var v) { return layer(w, v, y); }, x, u).second;
                 return std::array{dw, dx};
               });

/// The value and the gradient by w of sum(y^2).
constexpr auto through_loop = [](var w, var x) {
  const auto r = value_and_grad([](var v, var z) { return sum(square(unrolled(v, z))); })(w, x);
  return std::tuple{r.value, r.gradient[0]};
};
constexpr auto by_theorem = [](var w, var x) {
  const auto r = value_and_grad([](var v, var z) { return sum(square(implicit(v, z))); })(w, x);
  return std::tuple{r.value, r.gradient[0]};
};

int main(int argc, char** argv) try {
  std::string json;
  CLI::App app("Differentiates a layer that is the solution of an equation.");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  using matrix = tensor<dtype::f64, width, width>;
  using vector = tensor<dtype::f64, width>;
  generator random(1);
  std::vector<double> w(width * width);
  std::vector<double> x(width);
  for (double& v : w) v = (random.uniform() - 0.5) / 4;
  for (double& v : x) v = random.uniform() - 0.5;

  auto loop = compile<matrix, vector>(through_loop);
  auto theorem = compile<matrix, vector>(by_theorem);
  const double value = loop(w, x)[0];
  theorem(w, x);
  double difference = 0;
  for (std::size_t i = 0; i < w.size(); ++i)
    difference = std::max(difference, std::abs(loop.result<1>()[i] - theorem.result<1>()[i]));
  std::cout << "value " << value << "; the two gradients differ by at most " << difference << '\n';

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"value", value}, {"difference", difference}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "implicit_layer: " << e.what() << '\n';
  return 2;
}
