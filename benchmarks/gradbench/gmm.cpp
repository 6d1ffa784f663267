// gmm: the log posterior of a Gaussian mixture, and its gradient.
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <numbers>
#include <span>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// The largest of each column, [k,n] -> [1,n], by comparing halves (which may overlap).
constexpr var largest_of(var x) {
  while (x.extent(0) > 1) {
    const int k = x.extent(0);
    const int half = (k + 1) / 2;
    x = maximum(slice(x, 0, 0, half), slice(x, 0, k - half, k));
  }
  return x;
}
/// log(sum(exp(x))) of each column, [k,n] -> [1,n].
constexpr var log_sum_exp(var x) {
  const var top = stop_gradient(largest_of(x));
  return log(sum(exp(x - top), {0}, true)) + top;
}

/// Points in one turn of the loop: a divisor of their number for which what the loop computes of
/// them (`width` numbers each) stays in the cache, and which fills vectors if there is one.
constexpr int block_of(int points, int width) {
  int any = 1;
  int whole_vectors = 0;
  for (int b = 1; b * width <= 65536 && b <= points; ++b) {
    if (points % b) continue;
    any = b;
    if (b % 8 == 0) whole_vectors = b;
  }
  return whole_vectors ? whole_vectors : any;
}

/// alpha [1,k], mu and q [k,d], l [k,d,d] (below the diagonal), points [n,d], the unit matrix, and
/// the prior's degrees of freedom and precision [1]. Without the terms that are constant.
constexpr var log_posterior(var alpha, var mu, var q, var l, var points, var unit, var freedom,
                            var precision) {
  const int k = mu.extent(0);
  const int d = mu.extent(1);
  const int n = points.extent(0);
  const var diagonal = exp(q);
  const var factors = reshape(l + unit * expand_dims(diagonal, 2), {k * d, d});
  // Q (x - mu) = Q x - Q mu: all components and all points of a block are one product.
  const var centers = reshape(matmul(reshape(factors, {k, d, d}), expand_dims(mu, 2)), {k * d});
  const var weights = reshape(alpha, {k, 1}) + sum(q, {1}, true);
  const int block = block_of(n, k * d);
  // Checkpointed: the backward pass computes a block again rather than read it.
  const auto likelihood_of = checkpoint([&](var x) {
    const var y = tensor_dot(factors, x, {1}, {1}) - expand_dims(centers, 1);
    const var distances = sum(square(reshape(y, {k, d, block})), {1});
    return sum(log_sum_exp(weights - 0.5 * distances));
  });
  const auto add_block = [&](var total, var x) { return std::tuple{total + likelihood_of(x)}; };
  const var none = constant(*mu.b, 0, {mu.element(), {}});
  const auto [likelihood] = scan(add_block, none, reshape(points, {n / block, block, d}));
  const var prior =
      sum(square(precision)) * (sum(square(diagonal)) + sum(square(l))) / 2 - sum(freedom) * sum(q);
  return likelihood - n * sum(log_sum_exp(reshape(alpha, {k, 1}))) - prior;
}

struct value_cell {
  constexpr var operator()(var alpha, var mu, var q, var l, var points, var unit, var freedom,
                           var precision) const {
    return log_posterior(alpha, mu, q, l, points, unit, freedom, precision);
  }
};
struct gradient_cell {
  constexpr auto operator()(var alpha, var mu, var q, var l, var points, var unit, var freedom,
                            var precision) const {
    return value_and_grad<4>(&log_posterior)(alpha, mu, q, l, points, unit, freedom, precision)
        .gradient;
  }
};

struct mixture {
  explicit mixture(const json& j)
      : alpha(j.at("alpha")),
        mu(flat(j.at("mu"))),
        q(flat(j.at("q"))),
        l(flat(j.at("l"))),
        points(flat(j.at("x"))),
        d(j.at("d")),
        k(j.at("k")),
        n(j.at("n")),
        m(j.at("m")),
        gamma(j.at("gamma")) {}
  numbers alpha, mu, q, l, points;
  int d, k, n;
  double m, gamma;
};

/// A program on a mixture. The suite packs matrices below their diagonals, column by column; here
/// they are unpacked.
template <class Cell, int D, int K, int N>
class program_of {
 public:
  explicit program_of(const mixture& mix) : mix_(mix) {
    for (std::size_t i = 0; i < D; ++i) unit_[i * D + i] = 1;
  }
  void operator()() {
    for_each_packed([&](std::size_t packed, std::size_t at) { l_[at] = mix_.l[packed]; });
    run_(mix_.alpha, mix_.mu, mix_.q, l_, mix_.points, unit_, std::span(&mix_.m, 1),
         std::span(&mix_.gamma, 1));
  }
  template <int R = 0>
  std::span<const double> result() const {
    return run_.template result<R>();
  }
  template <class F>
  static void for_each_packed(F f) {
    std::size_t packed = 0;
    for (std::size_t c = 0; c < K; ++c) {
      for (std::size_t j = 0; j < D; ++j) {
        for (std::size_t i = j + 1; i < D; ++i) f(packed++, (c * D + i) * D + j);
      }
    }
  }

 private:
  const mixture& mix_;
  numbers unit_ = numbers(std::size_t(D) * D, 0.0);
  numbers l_ = numbers(std::size_t(K) * D * D, 0.0);
  compiled<Cell, reals<1, K>, reals<K, D>, reals<K, D>, reals<K, D, D>, reals<N, D>, reals<D, D>,
           reals<1>, reals<1>>
      run_;
};

template <int D, int K, int N>
class value {
 public:
  explicit value(const mixture& mix) : mix_(mix), run_(mix) {}
  void operator()() {
    run_();
    result_ = run_.result()[0] + constants();
  }
  json result() const { return result_; }

 private:
  double constants() const {
    const double half = 0.5 * (D + mix_.m + 1);
    double log_gammas = 0.25 * D * (D - 1) * std::log(std::numbers::pi);
    for (int j = 1; j <= D; ++j) log_gammas += std::lgamma(half + 0.5 * (1 - j));
    const double prior = 2 * half * D * (std::log(mix_.gamma) - 0.5 * std::log(2.0)) - log_gammas;
    return K * prior - 0.5 * N * D * std::log(2 * std::numbers::pi);
  }
  const mixture& mix_;
  double result_{};
  program_of<value_cell, D, K, N> run_;
};

template <int D, int K, int N>
class gradient {
 public:
  explicit gradient(const mixture& mix) : run_(mix) {}
  void operator()() {
    run_();
    copy(run_.template result<0>(), alpha_);
    copy(run_.template result<1>(), mu_);
    copy(run_.template result<2>(), q_);
    l_.resize(std::size_t(K) * D * (D - 1) / 2);
    const auto dense = run_.template result<3>();
    run_.for_each_packed([&](std::size_t packed, std::size_t at) { l_[packed] = dense[at]; });
  }
  json result() const {
    return {{"alpha", alpha_},
            {"mu", rows_of(mu_, D)},
            {"q", rows_of(q_, D)},
            {"l", rows_of(l_, std::size_t(D) * (D - 1) / 2)}};
  }

 private:
  static void copy(std::span<const double> from, numbers& to) {
    to.assign(from.begin(), from.end());
  }
  numbers alpha_, mu_, q_, l_;
  program_of<gradient_cell, D, K, N> run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const mixture mix(e.input);
    e.with_sizes<gmm_sizes>(std::array{mix.d, mix.k, mix.n}, [&]<int D, int K, int N>() {
      e.function<value<D, K, N>>("objective", mix);
      e.function<gradient<D, K, N>>("jacobian", mix);
    });
  });
}
