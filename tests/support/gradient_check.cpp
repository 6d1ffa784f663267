#include "support/gradient_check.hpp"

#include "support/compare.hpp"
#include "support/planned.hpp"
#include "support/transform_check.hpp"

namespace cella::test {

namespace {

/// What the run-time tier computes of a graph, beside what its operations' own computations gave.
/// Sums are taken in another order there: errors are relative to the largest element.
void check_planned(const traced_function& g, const std::vector<valued_tensor>& inputs,
                   const std::vector<valued_tensor>& expected) {
  if (!can_be_planned(g.b.g)) return;
  for (int threads : {1, 3}) {
    const auto found = run_planned(g.b.g, inputs, threads);
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      INFO("planned at run time, result ", k, ", threads ", threads);
      CHECK(found[k].type == expected[k].type);
      CHECK(relative_difference(found[k].values, expected[k].values, 1e-3) <= 1e-11);
    }
  }
}
std::vector<tensor_type> types_of(const std::vector<valued_tensor>& all) {
  std::vector<tensor_type> types;
  for (const valued_tensor& t : all) types.push_back(t.type);
  return types;
}

}  // namespace

valued_tensor case_input::sample(std::uint64_t seed) const {
  generator random(seed, 7);
  valued_tensor t{type(), {}};
  for (std::int64_t i = 0; i < t.type.size(); ++i) {
    const double v = random.uniform(low, high);
    t.values.push_back(is_floating(element) ? v : std::floor(v));
  }
  return t;
}

std::vector<double> differences(const std::function<double(const std::vector<valued_tensor>&)>& f,
                                std::vector<valued_tensor> x, std::size_t k, double step) {
  std::vector<double> d;
  for (double& element : x[k].values) {
    const double at = element;
    element = at + step;
    const double above = f(x);
    element = at - step;
    const double below = f(x);
    element = at;
    d.push_back((above - below) / (2 * step));
  }
  return d;
}

void check_gradient(const gradient_case& c, const tolerances& limit, std::source_location at) {
  const std::string label(c.name);
  INFO(label);
  const std::size_t n = c.count;
  std::vector<valued_tensor> in;
  for (std::size_t k = 0; k < n; ++k) in.push_back(c.inputs[k].sample(1 + k));

  // The value: eager, traced at run time, and the compiler's graph.
  auto only_value = [&](const vars& x) { return vars{c.f(x)}; };
  const valued_tensor value = run_eagerly(only_value, in)[0];
  const traced_function value_graph(only_value, types_of(in));
  CHECK(value_graph(in)[0].values == value.values);
  check_planned(value_graph, in, {value});
  CHECK_FALSE(c.value.failed);
  CHECK_FALSE(c.derivative.failed);
  CHECK(c.value.result == value.type);
  CHECK(c.trace(false) == c.value);
  CHECK(c.trace(true) == c.derivative);
  if (n > 0) {
    std::vector<valued_tensor> other;
    for (std::size_t k = 0; k < n; ++k) other.push_back(c.inputs[k].sample(101 + k));
    check_batching([f = c.f](const vars& x) { return f(x); }, {in, other}, 1e-9);
  }
  if (!is_floating(value.type.element)) return;
  // Zeros everywhere would agree with their own derivative.
  CHECK(std::any_of(value.values.begin(), value.values.end(), [](double v) { return v != 0; }));

  // Inputs of the derivatives: x, weights of the result, one direction per x.
  std::vector<valued_tensor> all = in;
  all.push_back(case_input{value.type.shape, -1, 1, value.type.element}.sample(50));
  for (std::size_t k = 0; k < n; ++k)
    all.push_back(case_input{in[k].type.shape, -1, 1, dtype::f64}.sample(60 + k));
  auto own = [n](const vars& x) { return vars(x.begin(), x.begin() + std::ptrdiff_t(n)); };
  auto directions = [n](const vars& x) { return std::span(x).subspan(n + 1); };

  const std::vector<tensor_type> types = types_of(all);
  const traced_function loss([&](const vars& x) { return vars{probe::loss(c.f, own(x), x[n])}; },
                             types);
  const traced_function directional(
      [&](const vars& x) { return vars{probe::directional(c.f, own(x), x[n], directions(x))}; },
      types);
  auto first_number = [](const traced_function& g) {
    return [&g](const std::vector<valued_tensor>& x) { return g(x)[0].values[0]; };
  };

  for (std::size_t k = 0; k < n; ++k) {
    if (!is_floating(in[k].type.element)) continue;
    INFO("operand ", k);
    auto gradients = [&](const vars& x) {
      const vars y = own(x);
      const var tilted = probe::tilted_gradient(c.f, y, x[n], k);
      auto of_one = [&](var t) {
        vars z = y;
        z[k] = t;
        return c.f(z);
      };
      return vars{tilted, vjp(of_one, y[k], x[n]).second,
                  probe::second(c.f, y, x[n], directions(x), k)};
    };
    const auto eager = run_eagerly(gradients, all);
    const traced_function gradient_graph(gradients, types);
    const auto traced = gradient_graph(all);
    check_planned(gradient_graph, all, eager);
    for (std::size_t i = 0; i < eager.size(); ++i) CHECK(eager[i].values == traced[i].values);

    std::vector<double> tilted = differences(first_number(loss), all, k, limit.step);
    check_close(eager[1].values, tilted, limit.first, at);
    for (std::size_t i = 0; i < tilted.size(); ++i) tilted[i] += in[k].values[i];
    check_close(eager[0].values, tilted, limit.first, at);
    check_close(eager[2].values, differences(first_number(directional), all, k, limit.step),
                limit.second, at);
    const std::vector<valued_tensor> samples{in[k], c.inputs[k].sample(201 + k),
                                             c.inputs[k].sample(301 + k)};
    check_transforms_by([f = c.f](const vars& x) { return f(x); }, in, k, samples, at);
  }
}

}  // namespace cella::test
