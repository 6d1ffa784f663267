// K-FAC against plain loops in double precision, in each of the ways that steps run.
#include <doctest/doctest.h>

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/optim/accumulate.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/optim/lazy.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/optim/parts.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/train/step.hpp>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "plain_kfac.hpp"

using namespace cella;
using namespace cella::test;
using optim::kfac;

namespace {

constexpr int batch = 6;

double wave(int k) { return std::sin(1.3 * k + 0.2 * (k % 7)); }

struct mlp {
  static constexpr std::array<int, 1> features{5};
  nn::dense<5, 4> first;
  nn::dense<4, 3> last;
  constexpr var operator()(var x) const { return last(relu(first(x))); }
};
struct plain_mlp {
  plain_layer first{4, 5}, last{3, 4};
  std::vector<plain_layer*> layers() { return {&first, &last}; }
  void differentiate(const images& x, const std::vector<int>& labels) {
    images h = first.forward(x);
    for (double& v : h.values) v = std::max(v, 0.0);
    images d = last.backward(cross_entropy_gradient(last.forward(h), labels));
    for (std::size_t i = 0; i < d.values.size(); ++i) d.values[i] *= h.values[i] > 0;
    first.backward(d);
  }
};
/// Stride, padding, dilation, a bias that `sink_monotone` puts behind a pooling, and no bias.
struct conv_net {
  static constexpr std::array<int, 3> features{2, 9, 8};
  nn::conv2d<2, 3, 3> first{.padding = 1};
  nn::conv2d<3, 4, 2, false> second{.stride = 2, .padding = 1, .dilation = 2};
  nn::dense<4 * 2 * 2, 3> last;
  constexpr var operator()(var x) const {
    const var y = max_pool(relu(first(x)), 2);
    return last(flatten(tanh(second(y))));
  }
};
struct plain_conv_net {
  plain_layer first{3, 2, 3, 1, 1}, second{4, 3, 2, 2, 1, 2, false}, last{3, 16};
  std::vector<plain_layer*> layers() { return {&first, &second, &last}; }
  void differentiate(const images& x, const std::vector<int>& labels) {
    images y = first.forward(x);
    images pooled = images_of(y.count, y.channels, y.height / 2, y.width / 2);
    std::vector<double*> largest;
    for (int n = 0; n < y.count; ++n) {
      for (int c = 0; c < y.channels; ++c) {
        for (int i = 0; i < pooled.height; ++i) {
          for (int j = 0; j < pooled.width; ++j) {
            double* best = &y.at(n, c, 2 * i, 2 * j);
            for (int k = 1; k < 4; ++k) {
              double* v = &y.at(n, c, 2 * i + k / 2, 2 * j + k % 2);
              if (*v > *best) best = v;
            }
            largest.push_back(best);
            pooled.at(n, c, i, j) = std::max(*best, 0.0);
          }
        }
      }
    }
    images h = second.forward(pooled);
    for (double& v : h.values) v = std::tanh(v);
    images flat{h.count, h.channels * h.height * h.width, 1, 1, h.values};
    images d = last.backward(cross_entropy_gradient(last.forward(flat), labels));
    d.channels = h.channels, d.height = h.height, d.width = h.width;
    for (std::size_t i = 0; i < d.values.size(); ++i) d.values[i] *= 1 - h.values[i] * h.values[i];
    const images dp = second.backward(d);
    images dy = images_of(y.count, y.channels, y.height, y.width);
    for (std::size_t i = 0; i < largest.size(); ++i)
      dy.values[std::size_t(largest[i] - y.values.data())] = *largest[i] > 0 ? dp.values[i] : 0;
    first.backward(dy);
  }
};

template <class Net, dtype Element, std::size_t... D>
auto argument_of(std::index_sequence<D...>) -> tensor<Element, batch, Net::features[D]...>;
template <class Net, dtype Element>
using input_of =
    decltype(argument_of<Net, Element>(std::make_index_sequence<Net::features.size()>()));

template <class Net>
images samples(int step) {
  images x = images_of(batch, Net::features[0]);
  if constexpr (Net::features.size() == 3)
    x = images_of(batch, Net::features[0], Net::features[1], Net::features[2]);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    x.values[i] = 0.5 + wave(int(i) + 100 * step) * (1 + double(i % 3));
  return x;
}
std::vector<int> labels(int step) {
  std::vector<int> y;
  for (int n = 0; n < batch; ++n) y.push_back((n * n + step) % 3);
  return y;
}

/// Weights of all parameters, one behind the other, after each step.
using history = std::vector<numbers>;
enum class way { eager, traced, compiled };

template <dtype Element>
using number_of = std::conditional_t<Element == dtype::f64, double, float>;

numbers values_of(const parameter_store& store) {
  numbers all;
  for (const auto& e : store.entries()) {
    const tensor_ref v = store.value(e);
    for (std::int64_t k = 0; k < v.type.size(); ++k) all.push_back(read_element(v, k));
  }
  return all;
}

template <class Net, auto Rule, way How = way::traced, dtype Element = dtype::f64>
history trained(int steps, double rate, double* first_weights = nullptr) {
  using step = training_step<Net, cross_entropy_loss, fixed<Rule>>;
  using in = input_of<Net, Element>;
  step cell;
  parameter_store store(cell.net, 3, Element);
  if (first_weights) {
    for (const auto& e : store.entries())
      for (std::int64_t k = 0; k < store.value(e).type.size(); ++k)
        *first_weights++ = read_element(store.value(e), k);
  }
  const std::array<tensor_type, 2> types{in::type, {dtype::i32, {batch}}};
  const trace_options options{.training = true, .precision = Element};
  const graph g = trace(cell, types, options);
  const slot_store slots(g);
  history all;
  for (int k = 1; k <= steps; ++k) {
    const numbers wide = samples<Net>(k).values;
    std::vector<number_of<Element>> x(wide.begin(), wide.end());
    std::vector<std::int32_t> y;
    for (int label : labels(k)) y.push_back(label);
    const std::array<tensor_ref, 2> arguments{{{reinterpret_cast<std::byte*>(x.data()), types[0]},
                                               {reinterpret_cast<std::byte*>(y.data()), types[1]}}};
    const std::array<named_scalar, 2> scalars{{{"learning_rate", rate}, {"step", double(k)}}};
    if constexpr (How == way::compiled) {
      using compiled = program<step, true, Element, in, tensor<dtype::i32, batch>>;
      executable<compiled> run(store, nullptr, slots.data());
      run.scalar(compiled::scalar("learning_rate"), rate);
      run.scalar(compiled::scalar("step"), k);
      run.call_unchecked(arguments[0].data, arguments[1].data);
    } else {
      runtime_path path({&store, &slots, arguments, scalars});
      if (How == way::eager)
        path.run_eagerly([&](builder& b) { trace_into(b, cell, types); }, options);
      else
        path.run(g);
    }
    all.push_back(values_of(store));
  }
  return all;
}

/// The same by plain loops, from these first weights on. `Batches`: steps for one of the rule's.
template <class Plain, class Net>
history expected(const double* first, int steps, double rate, const plain_options& o,
                 int batches = 1) {
  Plain net;
  for (plain_layer* l : net.layers()) {
    const int p = l->columns(), weights = p - l->has_bias;
    l->w.resize(std::size_t(l->out * p));
    for (int i = 0; i < l->out; ++i)
      for (int j = 0; j < weights; ++j) l->w[std::size_t(i * p + j)] = *first++;
    for (int i = 0; i < l->out && l->has_bias; ++i) l->w[std::size_t(i * p + p - 1)] = *first++;
  }
  history all;
  std::vector<numbers> sums(net.layers().size());
  for (int k = 1; k <= steps; ++k) {
    net.differentiate(samples<Net>(k), labels(k));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      numbers& d = net.layers()[i]->gradient;
      sums[i].resize(d.size());
      for (std::size_t j = 0; j < d.size(); ++j) sums[i][j] += d[j] / batches;
    }
    if (k % batches == 0) {
      for (std::size_t i = 0; i < sums.size(); ++i)
        net.layers()[i]->gradient = std::exchange(sums[i], {});
      take_step(net.layers(), o, rate, k / batches);
    }
    numbers now;
    for (const plain_layer* l : net.layers()) {
      const int p = l->columns(), weights = p - l->has_bias;
      for (int i = 0; i < l->out; ++i)
        for (int j = 0; j < weights; ++j) now.push_back(l->w[std::size_t(i * p + j)]);
      for (int i = 0; i < l->out && l->has_bias; ++i)
        now.push_back(l->w[std::size_t(i * p + p - 1)]);
    }
    all.push_back(now);
  }
  return all;
}

/// The largest difference of two trainings.
double difference(const history& x, const history& y) {
  double most = 0;
  REQUIRE(x.size() == y.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    REQUIRE(x[k].size() == y[k].size());
    for (std::size_t i = 0; i < x[k].size(); ++i) {
      const double e = std::abs(x[k][i] - y[k][i]);
      most = std::isfinite(e) ? std::max(most, e) : HUGE_VAL;
    }
  }
  return most;
}

template <class Net, class Plain, auto Rule, way How = way::traced>
void check(int steps, double rate, const plain_options& o, double single, int batches = 1) {
  INFO("way ", int(How));
  numbers first(1000);
  const history found = trained<Net, Rule, How>(steps, rate, first.data());
  const history wanted = expected<Plain, Net>(first.data(), steps, rate, o, batches);
  CHECK(difference(found, wanted) < 1e-9);
  first.resize(wanted.back().size());
  CHECK(difference({first}, {wanted.back()}) > 1e-3);
  first.resize(1000);
  const history rough = trained<Net, Rule, How, dtype::f32>(steps, rate, first.data());
  CHECK(difference(rough, expected<Plain, Net>(first.data(), steps, rate, o, batches)) < single);
}
template <class Net, class Plain, auto Rule>
void check_all(int steps, double rate, const plain_options& o, double single) {
  check<Net, Plain, Rule, way::eager>(steps, rate, o, single);
  check<Net, Plain, Rule, way::traced>(steps, rate, o, single);
  check<Net, Plain, Rule, way::compiled>(steps, rate, o, single);
}

/// The net of dense layers, with the first product written in other ways.
enum class form { turned, reshaped, axes, columns, places };
template <form Form>
struct written {
  static constexpr std::array<int, 1> features{5};
  static constexpr bool has_axes = Form == form::reshaped || Form == form::axes;
  using weight_type = std::conditional_t<has_axes, parameter<2, 2, 5>, parameter<4, 5>>;
  using bias_type = std::conditional_t<has_axes, parameter<2, 2>, parameter<4>>;
  weight_type weight{initializer::fan_in_uniform(5)};
  bias_type bias{initializer::fan_in_uniform(5)};
  nn::dense<4, 3> last;
  constexpr var operator()(var x) const {
    const var w = operand(weight).in(*x.b), b = operand(bias).in(*x.b);
    if constexpr (Form == form::turned) {
      return last(relu(matmul(x, transpose(w, {1, 0})) + b));
    } else if constexpr (Form == form::reshaped) {
      return last(relu(matmul(x, reshape(w, {4, 5}), false, true) + reshape(b, {4})));
    } else if constexpr (Form == form::axes) {
      return last(relu(reshape(tensor_dot(x, w, {1}, {2}) + b, {batch, 4})));
    } else if constexpr (Form == form::columns) {
      const var y = matmul(w, transpose(x, {1, 0})) + reshape(b, {4, 1});
      return last(relu(transpose(y, {1, 0})));
    } else {
      const var y = matmul(reshape(x, {2, 3, 5}), w, false, true);
      return last(relu(reshape(y, {batch, 4}) + b));
    }
  }
};

}  // namespace

TEST_CASE("one step of a net of dense layers") {
  constexpr kfac rule{.kl_clip = 0, .momentum = 0};
  check_all<mlp, plain_mlp, rule>(1, 0.1, {.kl_clip = 0, .momentum = 0}, 1e-4);
}

TEST_CASE("one step of a net of convolutions") {
  constexpr kfac rule{.kl_clip = 0, .momentum = 0};
  check_all<conv_net, plain_conv_net, rule>(1, 0.1, {.kl_clip = 0, .momentum = 0}, 2e-3);
}

TEST_CASE("several steps: averages, the trust region, momentum, weight decay") {
  constexpr kfac rule{.decay = 0.6, .damping = 0.01, .weight_decay = 0.02};
  constexpr plain_options o{.decay = 0.6, .damping = 0.01, .weight_decay = 0.02};
  check<mlp, plain_mlp, rule>(5, 0.1, o, 1e-4);
  check<conv_net, plain_conv_net, rule>(5, 0.1, o, 1e-4);
}

TEST_CASE("factors and inverses that are renewed in every third step") {
  constexpr kfac rule{.decay = 0.6, .damping = 0.01, .every = 3};
  check_all<conv_net, plain_conv_net, rule>(7, 0.05, {.decay = 0.6, .damping = 0.01, .every = 3},
                                            1e-4);
}

TEST_CASE("layers that are written in other ways") {
  constexpr kfac rule{.damping = 0.01, .kl_clip = 0};
  constexpr plain_options o{.damping = 0.01, .kl_clip = 0};
  check<written<form::turned>, plain_mlp, rule>(2, 0.1, o, 1e-4);
  check<written<form::reshaped>, plain_mlp, rule>(2, 0.1, o, 1e-4);
  check<written<form::axes>, plain_mlp, rule>(2, 0.1, o, 1e-4);
  check<written<form::columns>, plain_mlp, rule>(2, 0.1, o, 1e-4);
  check<written<form::places>, plain_mlp, rule>(2, 0.1, o, 1e-4);
}

TEST_CASE("batches that make one step: the mean of the gradients, factors of the last") {
  constexpr kfac rule{.decay = 0.6, .damping = 0.01}, seldom{.damping = 0.01, .every = 2};
  check<mlp, plain_mlp, optim::accumulate<2>(rule)>(6, 0.1, {.decay = 0.6, .damping = 0.01}, 1e-4,
                                                    2);
  check<mlp, plain_mlp, optim::accumulate<3>(seldom)>(9, 0.1, {.damping = 0.01, .every = 2}, 1e-4,
                                                      3);
}

TEST_CASE("biases that do not decay stay with their weights") {
  constexpr auto rule = optim::undecayed<"*.bias">(kfac{.damping = 0.01, .weight_decay = 0.1});
  check<conv_net, plain_conv_net, rule>(
      4, 0.1, {.damping = 0.01, .weight_decay = 0.1, .decays_biases = false}, 1e-4);
}

TEST_CASE("a part takes the step that it takes in the whole") {
  constexpr kfac rule{.kl_clip = 0, .momentum = 0};
  constexpr auto mixed = optim::parts(optim::part<"last.*">(rule), optim::rest(optim::sgd{}));
  const numbers found = trained<mlp, mixed>(1, 0.1)[0];
  const numbers by_layers = trained<mlp, rule>(1, 0.1)[0];
  const numbers by_gradient = trained<mlp, optim::sgd{}>(1, 0.1)[0];
  const std::size_t first = 4 * 5 + 4;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == doctest::Approx((i < first ? by_gradient : by_layers)[i]).epsilon(1e-12));
    CHECK(by_layers[i] != by_gradient[i]);
  }
}

TEST_CASE("a loss that is scaled makes the same steps") {
  constexpr kfac rule{.damping = 0.01};
  CHECK(difference(trained<conv_net, optim::loss_scale(1024, rule)>(3, 0.1),
                   trained<conv_net, rule>(3, 0.1)) < 1e-11);
}

TEST_CASE("gradients that are clipped step as far as they are left, by the same factors") {
  constexpr kfac rule{.kl_clip = 0, .momentum = 0};
  numbers first(1000);
  const numbers whole = trained<mlp, rule>(1, 0.1, first.data())[0];
  const numbers cut = trained<mlp, optim::clip_by_global_norm(1e-2, rule)>(1, 0.1)[0];
  const double part = (cut[0] - first[0]) / (whole[0] - first[0]);
  CHECK(part > 0);
  CHECK(part < 0.5);
  for (std::size_t i = 0; i < whole.size(); ++i)
    CHECK(cut[i] - first[i] == doctest::Approx(part * (whole[i] - first[i])).epsilon(1e-8));
}
