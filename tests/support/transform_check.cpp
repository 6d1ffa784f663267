#include "support/transform_check.hpp"

#include <cella/graph/check.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/compare.hpp"
#include "support/planned.hpp"

namespace cella::test {

valued_tensor run_checked(const var_function& f, const std::vector<valued_tensor>& inputs) {
  builder b;
  b.precision = dtype::f64;
  vars x;
  for (const valued_tensor& t : inputs)
    x.push_back({&b, b.input(t.type, input_role::argument, "x" + std::to_string(x.size()))});
  const var y = detail::run_paths(b, [&] { return f(x); });
  b.g.outputs.push_back({});
  b.end(std::array{y.id});
  CHECK(check(b.g).view() == "");
  auto run = [&](const graph& g) {
    value_store values;
    bindings memory;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.bind(g.input(int(i)), memory.store(inputs[i]));
    interpret(g, values);
    return read(values.value(g.regions[0].outputs[0]));
  };
  const valued_tensor result = run(live_part(b.g));
  const graph pruned = prune(b.g);
  CHECK(check(pruned).view() == "");
  CHECK(difference(run(pruned).values, result.values, 0) == "");
  const auto optimized = optimize_checked(b.g);
  CHECK(optimized.fault.view() == "");
  CHECK(difference(run(optimized.graph).values, result.values, 1e-9) == "");
  if (can_be_planned(b.g))
    CHECK(difference(run_planned(b.g, inputs)[0].values, result.values, 1e-9) == "");
  return result;
}

reals pseudo_random(std::int64_t count, std::uint64_t seed) {
  generator random(seed, 3);
  reals v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(random.uniform(-1.0, 1.0));
  return v;
}

namespace {

/// What is checked by operand `k` of a function: `in` are its inputs, `samples` three other values
/// of operand k.
class transform_check {
 public:
  transform_check(var_function f, std::vector<valued_tensor> in, std::size_t k,
                  std::vector<valued_tensor> samples, const transform_limits& limits)
      : f_(std::move(f)), in_(std::move(in)), k_(k), samples_(std::move(samples)), limits_(limits) {
    direction_ = {in_[k].type, pseudo_random(in_[k].type.size(), 11)};
    const valued_tensor y = run_checked(f_, in_);
    weights_ = {y.type, pseudo_random(y.type.size(), 12)};
    stacked_ = {with_leading(int(samples_.size()), in_[k].type), {}};
    for (const valued_tensor& s : samples_)
      stacked_.values.insert(stacked_.values.end(), s.values.begin(), s.values.end());
  }

  void run(bool numeric, std::source_location at = std::source_location::current()) {
    gradient_ = gradient_at(in_[k_]);
    if (numeric) check_close(gradient_, quotients(), limits_.numeric, at);
    forward(at);
    if (in_[k_].type.rank() < max_rank && weights_.type.rank() < max_rank) batched(at);
    second_order(at);
    third_order(at);
  }

 private:
  // Vars are handed over as the function's own, then the weights, then extras.
  vars own(const vars& x, var t) const {
    vars y(x.begin(), x.begin() + std::ptrdiff_t(in_.size()));
    y[k_] = t;
    return y;
  }
  /// t -> the weighted sum of the function's results, with operand k replaced.
  auto scalar_of(const vars& x) const {
    return [this, &x](var t) { return sum(f_(own(x, t)) * x[in_.size()]); };
  }
  /// Runs g(vars) on the inputs, the weights and `extras`.
  template <class G>
  reals value(G g, std::vector<valued_tensor> extras = {}) const {
    std::vector<valued_tensor> all = in_;
    all.push_back(weights_);
    all.insert(all.end(), extras.begin(), extras.end());
    return run_checked(g, all).values;
  }
  std::size_t extra(std::size_t i) const { return in_.size() + 1 + i; }

  reals gradient_at(const valued_tensor& t) const {
    return value([&](const vars& x) { return grad(scalar_of(x))(x[extra(0)]); }, {t});
  }
  reals quotients() const {
    std::vector<tensor_type> types;
    for (const valued_tensor& t : in_) types.push_back(t.type);
    types.push_back(weights_.type);
    const traced_function g(
        [&](const vars& x) {
          return detail::run_paths(*x[0].b, [&] { return vars{scalar_of(x)(x[k_])}; });
        },
        types);
    std::vector<valued_tensor> all = in_;
    all.push_back(weights_);
    reals d;
    for (double& element : all[k_].values) {
      const double at = element;
      element = at + limits_.step;
      const double above = g(all)[0].values[0];
      element = at - limits_.step;
      const double below = g(all)[0].values[0];
      element = at;
      d.push_back((above - below) / (2 * limits_.step));
    }
    return d;
  }

  void forward(std::source_location at) const {
    double expected = 0;
    for (std::size_t i = 0; i < gradient_.size(); ++i)
      expected += gradient_[i] * direction_.values[i];
    const reals found = value(
        [&](const vars& x) {
          auto g = [&](var t) { return f_(own(x, t)); };
          return sum(jvp(g, x[k_], x[extra(0)]).second * x[in_.size()]);
        },
        {direction_});
    INFO("jvp");
    check_close(found, reals{expected}, limits_.same, at);
  }

  void batched(std::source_location at) const {
    reals values, gradients;
    for (const valued_tensor& s : samples_) {
      const reals v = value([&](const vars& x) { return scalar_of(x)(x[extra(0)]); }, {s});
      const reals g = gradient_at(s);
      values.insert(values.end(), v.begin(), v.end());
      gradients.insert(gradients.end(), g.begin(), g.end());
    }
    INFO("vmap");
    check_close(value([&](const vars& x) { return vmap(scalar_of(x))(x[extra(0)]); }, {stacked_}),
                values, limits_.same, at);
    check_close(
        value([&](const vars& x) { return vmap(grad(scalar_of(x)))(x[extra(0)]); }, {stacked_}),
        gradients, limits_.same, at);
    auto total = [](const vars&, auto g) { return [g](var t) { return sum(vmap(g)(t)); }; };
    check_close(
        value([&](const vars& x) { return grad(total(x, scalar_of(x)))(x[extra(0)]); }, {stacked_}),
        gradients, limits_.same, at);
  }

  /// Hessian times direction: reverse over reverse, forward over reverse, reverse over forward.
  void second_order(std::source_location at) const {
    auto over = [&](auto way) {
      return value([&](const vars& x) { return way(scalar_of(x), x[k_], x[extra(0)]); },
                   {direction_});
    };
    const reals reverse = over(
        [](auto g, var x, var v) { return grad([&](var t) { return sum(grad(g)(t) * v); })(x); });
    INFO("second order");
    check_close(over([](auto g, var x, var v) { return hvp(g, x, v); }), reverse, limits_.same, at);
    check_close(over([](auto g, var x, var v) {
                  return grad([&](var t) { return jvp(g, t, v).second; })(x);
                }),
                reverse, limits_.same, at);
    const bool fits = in_[k_].type.rank() <= max_rank / 2 && weights_.type.rank() < max_rank;
    if (!fits || in_[k_].values.size() > 12) return;
    check_close(over([](auto g, var x, var v) {
                  const auto n = x.shape().size();
                  const var h = reshape(hessian(g)(x), {n, n});
                  return reshape(sum(h * reshape(v, {1, n}), {1}), x.shape());
                }),
                reverse, limits_.same, at);
  }
  /// The derivative along the direction, three times over.
  void third_order(std::source_location at) const {
    auto along = [&](auto way) {
      return value(
          [&](const vars& x) {
            const var v = x[extra(0)];
            return way(scalar_of(x), x[k_], v);
          },
          {direction_});
    };
    const reals reverse = along([](auto g, var x, var v) {
      auto slope = [v](auto h) { return [v, h](var t) { return sum(grad(h)(t) * v); }; };
      return slope(slope(slope(g)))(x);
    });
    INFO("third order");
    check_close(along([](auto g, var x, var v) {
                  auto slope = [v](auto h) {
                    return [v, h](var t) { return jvp(h, t, v).second; };
                  };
                  return slope(slope(slope(g)))(x);
                }),
                reverse, limits_.same, at);
  }

  var_function f_;
  std::vector<valued_tensor> in_;
  std::size_t k_;
  std::vector<valued_tensor> samples_;
  transform_limits limits_;
  valued_tensor weights_, direction_, stacked_;
  reals gradient_;
};

}  // namespace

void check_batching(const var_function& f, const std::array<std::vector<valued_tensor>, 2>& samples,
                    double tolerance, std::source_location at) {
  const std::size_t n = samples[0].size();
  for (std::size_t only = 0; only <= n; ++only) {
    INFO("samples of operand ", only, only == n ? " (all)" : "");
    std::vector<valued_tensor> in = samples[0];
    reals expected;
    auto has_samples = [&](std::size_t k) { return only == n || only == k; };
    for (const std::vector<valued_tensor>& sample : samples) {
      std::vector<valued_tensor> one = samples[0];
      for (std::size_t k = 0; k < n; ++k) {
        if (has_samples(k)) one[k] = sample[k];
      }
      const valued_tensor y = run_eagerly([&](const vars& x) { return vars{f(x)}; }, one)[0];
      if (y.type.rank() == max_rank) return;
      expected.insert(expected.end(), y.values.begin(), y.values.end());
    }
    for (std::size_t k = 0; k < n; ++k) {
      if (in[k].type.rank() == max_rank) return;
      if (!has_samples(k)) continue;
      in[k].type = with_leading(2, in[k].type);
      in[k].values.insert(in[k].values.end(), samples[1][k].values.begin(),
                          samples[1][k].values.end());
    }
    const valued_tensor found = run_checked(
        [&](const vars& x) {
          vars batched;
          for (std::size_t k = 0; k < n; ++k) {
            if (has_samples(k)) batched.push_back(x[k]);
          }
          return vmap([&](const vars& sample) {
            vars all = x;
            std::size_t next = 0;
            for (std::size_t k = 0; k < n; ++k) {
              if (has_samples(k)) all[k] = sample[next++];
            }
            return f(all);
          })(batched);
        },
        in);
    check_close(found.values, expected, tolerance, at);
    if (n == 1) return;
  }
}

void check_transforms_by(const var_function& f, const std::vector<valued_tensor>& in, std::size_t k,
                         const std::vector<valued_tensor>& samples, std::source_location at) {
  transform_check(f, in, k, samples, {}).run(false, at);
}
void check_transforms(const var_function& f, const std::vector<valued_tensor>& in,
                      const transform_limits& limits, std::source_location at) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!is_floating(in[k].type.element)) continue;
    INFO("operand ", k);
    std::vector<valued_tensor> samples(3, in[k]);
    for (double& v : samples[1].values) v *= 1.35;
    for (double& v : samples[2].values) v *= 0.7;
    transform_check(f, in, k, samples, limits).run(true, at);
  }
}

}  // namespace cella::test
