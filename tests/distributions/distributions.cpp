// Log-probabilities, entropies and divergences against PyTorch (tests/golden/vocabulary.py), and
// SciPy and mpmath (tests/golden/scipy_values.py), samples against the moments of their
// distributions, and derivatives through samples.
#include <cella/distributions/composed.hpp>
#include <cella/distributions/gamma.hpp>
#include <cella/distributions/multivariate_normal.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/golden_runs.hpp"

using namespace cella;
using namespace cella::test;
using nlohmann::json;

namespace {

/// log_prob or entropy, by what a case asks for.
template <class Make>
golden_function measures(Make make) {
  return [make](const vars& x, const json& a) -> vars {
    if (a.at("asks") == "entropy") return {make(x.begin()).entropy()};
    return {make(x.begin() + 1).log_prob(x[0])};
  };
}
template <class D>
golden_function of_two() {
  return measures([](const var* p) { return D{p[0], p[1]}; });
}
template <class D>
golden_function of_one() {
  return measures([](const var* p) { return D{p[0]}; });
}

template <class D>
var divergence_of_two(const vars& x) {
  return distributions::kl_divergence(D{x[0], x[1]}, D{x[2], x[3]});
}

const std::map<std::string, golden_function> functions{
    {"normal", of_two<distributions::normal>()},
    {"laplace", of_two<distributions::laplace>()},
    {"gumbel", of_two<distributions::gumbel>()},
    {"cauchy", of_two<distributions::cauchy>()},
    {"logistic", of_two<distributions::logistic>()},
    {"uniform", of_two<distributions::uniform>()},
    {"exponential", of_one<distributions::exponential>()},
    {"bernoulli", of_one<distributions::bernoulli>()},
    {"categorical", of_one<distributions::categorical>()},
    {"gamma", of_two<distributions::gamma>()},
    {"beta", of_two<distributions::beta>()},
    {"dirichlet", of_one<distributions::dirichlet>()},
    {"poisson",
     [](const vars& x, const json&) -> vars {
       return {distributions::poisson{x[1]}.log_prob(x[0])};
     }},
    {"multivariate_normal", of_two<distributions::multivariate_normal>()},
    {"independent_normal", measures([](const var* p) {
       return distributions::independent{distributions::normal{p[0], p[1]}};
     })},
    {"mixture",
     [](const vars& x, const json&) {
       return vars{distributions::mixture{distributions::categorical{x[1]},
                                          distributions::normal{x[2], x[3]}}
                       .log_prob(x[0])};
     }},
    {"transformed",
     [](const vars& x, const json& a) -> vars {
       const distributions::normal base{x[1], x[2]};
       const std::string b = a.at("bijector");
       if (b == "affine")
         return {
             distributions::transformed{base, distributions::affine_bijector{x[3], x[4]}}.log_prob(
                 x[0])};
       if (b == "exp")
         return {distributions::transformed{base, distributions::exp_bijector{}}.log_prob(x[0])};
       if (b == "sigmoid")
         return {
             distributions::transformed{base, distributions::sigmoid_bijector{}}.log_prob(x[0])};
       if (b == "tanh")
         return {distributions::transformed{base, distributions::tanh_bijector{}}.log_prob(x[0])};
       return {distributions::transformed{base, distributions::softplus_bijector{}}.log_prob(x[0])};
     }},
    {"kl_divergence",
     [](const vars& x, const json& a) -> vars {
       const std::string d = a.at("asks");
       if (d == "gamma") return {divergence_of_two<distributions::gamma>(x)};
       if (d == "beta") return {divergence_of_two<distributions::beta>(x)};
       if (d == "multivariate_normal")
         return {divergence_of_two<distributions::multivariate_normal>(x)};
       if (d == "dirichlet")
         return {distributions::kl_divergence(distributions::dirichlet{x[0]},
                                              distributions::dirichlet{x[1]})};
       if (d == "poisson")
         return {distributions::kl_divergence(distributions::poisson{x[0]},
                                              distributions::poisson{x[1]})};
       if (d == "normal")
         return {distributions::kl_divergence(distributions::normal{x[0], x[1]},
                                              distributions::normal{x[2], x[3]})};
       if (d == "laplace")
         return {distributions::kl_divergence(distributions::laplace{x[0], x[1]},
                                              distributions::laplace{x[2], x[3]})};
       if (d == "uniform")
         return {distributions::kl_divergence(distributions::uniform{x[0], x[1]},
                                              distributions::uniform{x[2], x[3]})};
       if (d == "exponential")
         return {distributions::kl_divergence(distributions::exponential{x[0]},
                                              distributions::exponential{x[1]})};
       if (d == "bernoulli")
         return {distributions::kl_divergence(distributions::bernoulli{x[0]},
                                              distributions::bernoulli{x[1]})};
       if (d == "categorical")
         return {distributions::kl_divergence(distributions::categorical{x[0]},
                                              distributions::categorical{x[1]})};
       return {distributions::kl_divergence(
           distributions::independent{distributions::normal{x[0], x[1]}},
           distributions::independent{distributions::normal{x[2], x[3]}})};
     }},
};

constexpr int draws = 40000;

/// The value of a function that draws.
template <class F, class... Tensors>
valued_tensor drawn(F f, const Tensors&... inputs) {
  eager_session session;
  session.bind(session.b.bodies.random_key(), i64({2}, {7, 1}));
  return session.value(f(session(inputs)...));
}

/// Samples of a distribution of numbers, all with the same parameters, checked against mean and
/// deviation of the distribution: five deviations of the estimates are allowed for.
template <class Make>
void check_moments(const char* name, Make make, double mean, double deviation) {
  INFO(name);
  const auto y =
      drawn([&](var x) { return distributions::repeated(make(x), draws).sample(); }, f64({1}, {0}))
          .values;
  REQUIRE(y.size() == std::size_t(draws));
  double sum = 0, squares = 0;
  for (const double v : y) sum += v;
  for (const double v : y) squares += (v - sum / draws) * (v - sum / draws);
  CHECK(std::abs(sum / draws - mean) < 5 * deviation / std::sqrt(double(draws)));
  CHECK(std::sqrt(squares / draws) == doctest::Approx(deviation).epsilon(0.04));
}

/// A number of the type of x.
var number(var x, double v) { return full_like(x, v); }

}  // namespace

TEST_CASE("log-probabilities, entropies and divergences have PyTorch's and SciPy's values") {
  for (const char* name : {"distributions", "scipy"}) {
    const golden file = golden::open_own(name);
    for (std::size_t i = 0; i < file.size(); ++i) {
      golden_case c = load_case(file, i);
      c.attrs["asks"] = c.name;
      const auto f = functions.find(c.op);
      if (f == functions.end())
        FAIL_CHECK(c.label() << " is not here");
      else
        check_golden_case(c, f->second);
    }
  }
}

TEST_CASE("samples have the mean and the deviation of their distribution") {
  const double pi = std::numbers::pi;
  check_moments(
      "normal",
      [](var x) {
        return distributions::normal{number(x, 2), number(x, 0.5)};
      },
      2, 0.5);
  check_moments(
      "uniform",
      [](var x) {
        return distributions::uniform{number(x, -1), number(x, 3)};
      },
      1, 4 / std::sqrt(12.0));
  check_moments(
      "exponential", [](var x) { return distributions::exponential{number(x, 4)}; }, 0.25, 0.25);
  check_moments(
      "laplace",
      [](var x) {
        return distributions::laplace{number(x, 1), number(x, 2)};
      },
      1, 2 * std::sqrt(2.0));
  check_moments(
      "logistic",
      [](var x) {
        return distributions::logistic{number(x, 1), number(x, 2)};
      },
      1, 2 * pi / std::sqrt(3.0));
  check_moments(
      "gumbel",
      [](var x) {
        return distributions::gumbel{number(x, 1), number(x, 2)};
      },
      1 + 2 * 0.5772156649, 2 * pi / std::sqrt(6.0));
  check_moments(
      "bernoulli", [](var x) { return distributions::bernoulli{number(x, -1)}; },
      1 / (1 + std::exp(1)), std::sqrt(std::exp(1)) / (1 + std::exp(1)));
  check_moments(
      "gamma",
      [](var x) {
        return distributions::gamma{number(x, 2.5), number(x, 4)};
      },
      2.5 / 4, std::sqrt(2.5) / 4);
  check_moments(
      "beta",
      [](var x) {
        return distributions::beta{number(x, 0.5), number(x, 2)};
      },
      0.2, std::sqrt(1 / (2.5 * 2.5 * 3.5)));
  check_moments(
      "poisson", [](var x) { return distributions::poisson{number(x, 3.5)}; }, 3.5, std::sqrt(3.5));
  check_moments(
      "log-normal",
      [](var x) {
        return distributions::transformed{distributions::normal{number(x, 0), number(x, 0.3)},
                                          distributions::exp_bijector{}};
      },
      std::exp(0.045), std::exp(0.045) * std::sqrt(std::exp(0.09) - 1));
}

TEST_CASE("classes are drawn as often as their probabilities say; a mixture draws from its parts") {
  const auto y = drawn(
      [](var z) { return distributions::repeated(distributions::categorical{z}, draws).sample(); },
      f64({3}, {std::log(0.5), std::log(0.2), std::log(0.3)}));
  CHECK(y.type.element == dtype::i64);
  std::array<double, 3> share{};
  for (const double k : y.values) share[std::size_t(k)] += 1.0 / draws;
  CHECK(share[0] == doctest::Approx(0.5).epsilon(0.03));
  CHECK(share[1] == doctest::Approx(0.2).epsilon(0.06));
  const auto m = drawn(
      [](var z, var mean) {
        const auto parts = distributions::normal{mean, full_like(mean, 0.1)};
        return distributions::repeated(distributions::mixture{distributions::categorical{z}, parts},
                                       draws)
            .sample();
      },
      f64({2}, {std::log(0.25), std::log(0.75)}), f64({2}, {-5, 5}));
  double low = 0;
  for (const double v : m.values) low += v < 0;
  CHECK(low / draws == doctest::Approx(0.25).epsilon(0.05));
}

TEST_CASE("derivatives go through samples to the parameters") {
  // d(mean + deviation z) is 1 and z; the mean over z^2 is 1.
  const auto f = [](var m, var s) {
    const auto loss = [](var mean, var deviation) {
      const auto many = distributions::repeated(distributions::normal{mean, deviation}, draws);
      return sum(square(many.sample())) * (1.0 / draws);
    };
    const auto d = value_and_grad<2>(loss)(m, s);
    return concat({d.gradient[0], d.gradient[1]}, 0);
  };
  const auto d = drawn(f, f64({1}, {1.5}), f64({1}, {0.5}));
  CHECK(d.values[0] == doctest::Approx(3).epsilon(0.02));
  CHECK(d.values[1] == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("vectors that are drawn have the means and covariances of their distribution") {
  // The mean of x_i x_j over draws of a distribution of vectors of two.
  const auto moments = [](const valued_tensor& y) {
    std::array<double, 5> m{};  // two means, then products
    for (std::size_t i = 0; i < y.values.size(); i += 2) {
      const double a = y.values[i], b = y.values[i + 1];
      const std::array all{a, b, a * a, a * b, b * b};
      for (std::size_t k = 0; k < 5; ++k) m[k] += all[k] / draws;
    }
    return m;
  };
  const auto n = moments(drawn(
      [](var mean, var covariance) {
        return distributions::repeated(distributions::with_covariance(mean, covariance), draws)
            .sample();
      },
      f64({2}, {1, -1}), f64({2, 2}, {1, 0.6, 0.6, 2})));
  check_close(n, std::array{1.0, -1.0, 2.0, -0.4, 3.0}, 0.04);
  // Dirichlet: means a_k / a_0, covariances (a_i a_0 [i = j] - a_i a_j) / (a_0^2 (a_0 + 1)).
  const auto d = moments(drawn(
      [](var a) { return distributions::repeated(distributions::dirichlet{a}, draws).sample(); },
      f64({2}, {0.5, 1.5})));
  check_close(d, std::array{0.25, 0.75, 0.125, 0.125, 0.625}, 0.01);
}

TEST_CASE("numbers of small shapes lie where their distribution has them, in single precision") {
  const auto draw = [](auto make, const valued_tensor& shape_of_it) {
    return drawn(
               [make](var a) {
                 return distributions::repeated(make(cast(a, dtype::f32)), draws).sample();
               },
               shape_of_it)
        .values;
  };
  // The variance of beta(a, a) is 1 / (4 (2 a + 1)): nearly all are near 0 or 1.
  const auto b = draw([](var a) { return distributions::beta{a, a}; }, f64({1}, {0.01}));
  double spread = 0;
  for (const double v : b) spread += (v - 0.5) * (v - 0.5) / draws;
  CHECK(spread == doctest::Approx(0.25 / 1.02).epsilon(0.01));
  // So are sums of the squares of Dirichlet's: (a + 1) / (n a + 1).
  const auto d =
      draw([](var a) { return distributions::dirichlet{a}; }, f64({3}, {0.01, 0.01, 0.01}));
  double squares = 0;
  for (const double v : d) squares += v * v / draws;
  CHECK(squares == doctest::Approx(1.01 / 1.03).epsilon(0.01));
}

TEST_CASE("derivatives go through samples of shapes to what they are drawn by") {
  // Of the mean of gamma alpha / rate, of beta a / (a + b): derivatives by both.
  const auto of = [](auto make, double a, double b) {
    const auto mean = [make](var x, var y) {
      return sum(distributions::repeated(make(x, y), draws).sample()) * (1.0 / draws);
    };
    return drawn(
               [mean](var x, var y) {
                 const auto d = value_and_grad<2>(mean)(x, y);
                 return concat({d.gradient[0], d.gradient[1]}, 0);
               },
               f64({1}, {a}), f64({1}, {b}))
        .values;
  };
  const auto g = of([](var x, var y) { return distributions::gamma{x, y}; }, 3, 2);
  check_close(g, reals{0.5, -0.75}, 0.02);
  const auto b = of([](var x, var y) { return distributions::beta{x, y}; }, 2, 3);
  check_close(b, reals{3.0 / 25, -2.0 / 25}, 0.005);
}

TEST_CASE("outside of its support a distribution has the probability 0") {
  CHECK(eval(
            [](var x) {
              return distributions::gamma{number(x, 2), number(x, 1)}.log_prob(x);
            },
            f64({2}, {-1, 0}))
            .values == reals{-HUGE_VAL, -HUGE_VAL});
  CHECK(eval(
            [](var x) {
              return distributions::beta{number(x, 1), number(x, 1)}.log_prob(x);
            },
            f64({4}, {-0.1, 0, 1, 1.1}))
            .values == reals{-HUGE_VAL, 0, 0, -HUGE_VAL});
  CHECK(eval([](var x) { return distributions::poisson{x}.log_prob(zeros_like(x)); },
             f64({2}, {3, 0}))
            .values == reals{-3, 0});
  const auto y = eval(
      [](var x) {
        return distributions::uniform{number(x, 0), number(x, 2)}.log_prob(x);
      },
      f64({3}, {-0.1, 0, 2}));
  CHECK(y.values == reals{-HUGE_VAL, -std::log(2.0), -HUGE_VAL});
  CHECK(eval([](var x) { return distributions::exponential{number(x, 2)}.log_prob(x); },
             f64({1}, {-1}))
            .values[0] == -HUGE_VAL);
}

TEST_CASE("a function of a number has the probability 0 where no number is mapped to") {
  const auto at = [](auto bijector, reals y) {
    const shape s{std::int64_t(y.size())};
    return eval(
               [&](var x) {
                 return distributions::transformed{
                     distributions::normal{number(x, 0), number(x, 1)}, bijector}
                     .log_prob(x);
               },
               f64(s, y))
        .values;
  };
  const double middle = -0.5 * std::log(2 * std::numbers::pi);
  check_close(at(distributions::exp_bijector{}, {-1, 0, 1, HUGE_VAL}),
              reals{-HUGE_VAL, -HUGE_VAL, middle, -HUGE_VAL}, 1e-14);
  check_close(at(distributions::sigmoid_bijector{}, {-1, 0, 0.5, 1, 2}),
              reals{-HUGE_VAL, -HUGE_VAL, middle + std::log(4), -HUGE_VAL, -HUGE_VAL}, 1e-14);
  check_close(at(distributions::tanh_bijector{}, {-2, -1, 0, 1, 2}),
              reals{-HUGE_VAL, -HUGE_VAL, middle, -HUGE_VAL, -HUGE_VAL}, 1e-14);
  const auto soft = at(distributions::softplus_bijector{}, {-1, 0, std::nan("")});
  CHECK(soft[0] == -HUGE_VAL);
  CHECK(soft[1] == -HUGE_VAL);
  CHECK(std::isnan(soft[2]));
  // Parameters have derivatives beside such a number.
  const auto d = eval(
      [](var x) {
        const auto loss = [x](var mean) {
          const auto p = distributions::transformed{distributions::normal{mean, number(x, 1)},
                                                    distributions::exp_bijector{}};
          const var all = p.log_prob(x);
          return sum(select(is_finite(all), all, zeros_like(all)));
        };
        return value_and_grad<1>(loss)(number(x, 0)).gradient[0];
      },
      f64({2}, {-1, std::exp(0.5)}));
  CHECK(d.values[1] == doctest::Approx(0.5));
  CHECK(d.values[0] == 0);
}

TEST_CASE("classes with the probability 0 count as 0") {
  const auto logits = f64({3}, {std::log(0.25), -HUGE_VAL, std::log(0.75)});
  const auto entropy = [](var z) { return distributions::categorical{z}.entropy(); };
  const double expected = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  CHECK(eval(entropy, logits).values[0] == doctest::Approx(expected));
  const auto d =
      eval([&](var z) { return value_and_grad<1>(entropy)(z).gradient[0]; }, logits).values;
  // p_k (-log p_k - entropy)
  check_close(d, reals{0.25 * (-std::log(0.25) - expected), 0, 0.75 * (-std::log(0.75) - expected)},
              1e-14);
  const auto divergence = [](var p, var q) {
    return distributions::kl_divergence(distributions::categorical{p},
                                        distributions::categorical{q});
  };
  const auto even = f64({3}, {0, 0, 0});
  CHECK(eval(divergence, logits, logits).values[0] == 0);
  CHECK(eval(divergence, logits, even).values[0] == doctest::Approx(std::log(3) - expected));
  CHECK(eval(divergence, even, logits).values[0] == HUGE_VAL);
}

TEST_CASE("the logistic density is curved where it is largest") {
  const auto bend = [](const vars& v) {
    const distributions::logistic d{v[0], v[1]};
    const var slope = gradients(sum(d.log_prob(v[2])), std::array{v[2]})[0];
    return vars{slope, gradients(sum(slope), std::array{v[2]})[0]};
  };
  const auto d = run_eagerly(bend, {scalar(0.75), scalar(0.5), f64({2}, {0.75, 1.25})});
  const double p = 1 / (1 + std::exp(-1.0));
  check_close(d[0].values, reals{0, 2 * (1 - 2 * p)}, 1e-15);
  check_close(d[1].values, reals{-2, -8 * p * (1 - p)}, 1e-15);
}

TEST_CASE("large logits do not cancel in a divergence") {
  const auto divergence = [](var p, var q) {
    return distributions::kl_divergence(distributions::bernoulli{p}, distributions::bernoulli{q});
  };
  const valued_tensor p{{dtype::f32, {4}}, {1e4, -1e4, 30, 100}},
      q{{dtype::f32, {4}}, {1, -1, 31, -100}};
  const double sure = std::log1p(std::exp(-1.0)), nearly = std::exp(-30) * std::exp(-1);
  const auto found = eval(divergence, p, q).values;
  check_close(found, reals{sure, sure, nearly, 100}, 1e-6);
  CHECK(found[2] == doctest::Approx(nearly).epsilon(1e-5));
}

TEST_CASE("what never happens diverges from what may by its rate") {
  const auto divergence = [](var p, var q) {
    return distributions::kl_divergence(distributions::poisson{p}, distributions::poisson{q});
  };
  CHECK(eval(divergence, f64({2}, {0, 0}), f64({2}, {3, 0})).values == reals{3, 0});
  CHECK(eval(divergence, scalar(2), scalar(0)).values[0] == HUGE_VAL);
}

TEST_CASE("numbers that are to be above 0 are so in any type") {
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const double least : {0x1p-25, 0x1p-126}) {
      const auto found = eval(
          [least](var v) {
            return maximum(v, distributions::detail::above_zero(v.element(), least));
          },
          valued_tensor{{t, {1}}, {0}});
      CHECK(found.values[0] > 0);
    }
  }
}

TEST_CASE("the inverse of a bijector undoes it") {
  const auto x = f64({3}, {-1.5, 0.25, 2});
  const auto check = [&](auto make) {
    const auto y = eval(
        [&](var v) {
          const auto b = make(v);
          return b.inverse(b.forward(v));
        },
        x);
    check_close(y.values, x.values, 1e-12);
  };
  check([](var v) {
    const auto b = distributions::affine_bijector{full_like(v, 3), full_like(v, -2)};
    return b;
  });
  check([](var) {
    const auto b = distributions::sigmoid_bijector{};
    return b;
  });
  check([](var) { return distributions::tanh_bijector{}; });
  check([](var) { return distributions::softplus_bijector{}; });
}

TEST_CASE("half of Cauchy's numbers are above the median, a quarter more than a scale") {
  const auto y = drawn(
      [](var x) {
        const auto wide = distributions::cauchy{full_like(x, 1), full_like(x, 2)};
        return distributions::repeated(wide, draws).sample();
      },
      f64({1}, {0}));
  double above = 0, far = 0;
  for (const double v : y.values) {
    above += v > 1;
    far += v > 3;
  }
  CHECK(above / draws == doctest::Approx(0.5).epsilon(0.03));
  CHECK(far / draws == doctest::Approx(0.25).epsilon(0.05));
}
