// Properties that must hold whatever a function is made of, over a thousand random functions.
#include <cella/transform/jacobian.hpp>

#include "random_function.hpp"
#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

void check_seed(std::uint64_t seed) {
  INFO("seed ", seed);
  const random_function f(seed);
  const valued_tensor x = f64({3}, pseudo_random(3, seed));
  const valued_tensor dx = f64({3}, pseudo_random(3, seed + 7));

  const reals value = run_checked([&](const vars& v) { return f(v[0]); }, {x}).values;
  CHECK(std::isfinite(value[0]));
  check_close(eval(f, x).values, value, 1e-12);

  const reals g = run_checked([&](const vars& v) { return grad(f)(v[0]); }, {x}).values;
  check_close(eval(grad(f), x).values, g, 1e-10);
  const reals along =
      run_checked([&](const vars& v) { return jvp(f, v[0], v[1]).second; }, {x, dx}).values;
  double dot = 0;
  for (std::size_t i = 0; i < 3; ++i) dot += g[i] * dx.values[i];
  check_close(along, reals{dot}, 1e-9);

  const traced_function run(
      [&](const vars& v) { return detail::run_paths(*v[0].b, [&] { return vars{f(v[0])}; }); },
      {x.type});
  valued_tensor moved = x;
  double slope = 0;
  for (double h : {1e-5, -1e-5}) {
    for (std::size_t i = 0; i < 3; ++i) moved.values[i] = x.values[i] + h * dx.values[i];
    slope += run({moved})[0].values[0] / (2 * h);
  }
  check_close(along, reals{slope}, 1e-5);
}

void check_seeds(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t s = first; s < first + count; ++s) check_seed(s);
}

}  // namespace

TEST_CASE("gradients of random functions agree with differences and with forward mode: 0 to 249") {
  check_seeds(0, 250);
}
TEST_CASE(
    "gradients of random functions agree with differences and with forward mode: 250 to 499") {
  check_seeds(250, 250);
}
TEST_CASE(
    "gradients of random functions agree with differences and with forward mode: 500 to 749") {
  check_seeds(500, 250);
}
TEST_CASE(
    "gradients of random functions agree with differences and with forward mode: 750 to 999") {
  check_seeds(750, 250);
}
