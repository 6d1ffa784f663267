// The minimum of Rosenbrock's function by Newton's method: gradient and Hessian come from the
// function, and all steps are one compiled loop.  Rosenbrock 1960
#include <CLI/CLI.hpp>
#include <cella/interop/file.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/jacobian.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace cella;

/// (1 - x)^2 + 100 (y - x^2)^2, least at (1, 1).
constexpr var rosenbrock(var p) {
  const var x = slice(p, 0, 0, 1);
  const var y = slice(p, 0, 1, 2);
  return sum(square(1 - x) + 100 * square(y - square(x)));
}

/// The solution of h s = g for a 2 x 2 matrix.
constexpr var solve(var h, var g) {
  const auto m = unstack(reshape(h, {4}), 0);
  const auto b = unstack(g, 0);
  const var determinant = m[0] * m[3] - m[1] * m[2];
  return stack({m[3] * b[0] - m[1] * b[1], m[0] * b[1] - m[2] * b[0]}, 0) / determinant;
}

/// From a point to (the minimum, steps).
constexpr auto newton = [](var start) {
  const auto steep = [](auto state) {
    return sum(square(grad(&rosenbrock)(std::get<0>(state)))) > 1e-20;
  };
  const auto step = [](auto state) {
    const auto [p, n] = state;
    return std::tuple{p - solve(hessian(&rosenbrock)(p), grad(&rosenbrock)(p)), n + 1};
  };
  return while_loop(steep, step, std::tuple{start, constant(*start.b, 0, {dtype::f64, {}})});
};

int main(int argc, char** argv) try {
  std::string json;
  CLI::App app("Finds the minimum of Rosenbrock's function by Newton's method.");
  app.add_option("--json", json, "Write the figures of this run here")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);

  auto minimize = compile<tensor<dtype::f64, 2>>(newton);
  const auto p = minimize(std::array{-1.2, 1.0});
  const double steps = minimize.result<1>()[0];
  std::cout << "minimum (" << p[0] << ", " << p[1] << ") after " << steps << " steps\n";

  if (!json.empty()) {
    const nlohmann::ordered_json figures{{"x", p[0]}, {"y", p[1]}, {"steps", steps}};
    interop::write_atomically(json, [&](auto& out) { out.write(figures.dump(2) + "\n"); });
  }
} catch (const std::exception& e) {
  std::cerr << "rosenbrock: " << e.what() << '\n';
  return 2;
}
