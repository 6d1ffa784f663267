#include <doctest/doctest.h>

#include <cella/models/mlp.hpp>
#include <cella/runtime/executable.hpp>
#include <cmath>
#include <vector>

using namespace cella;

namespace {

constexpr int samples = 3, in = 5, hidden = 4, out = 2;
using net = models::mlp<in, hidden, out>;
using program_type = inference_program<net, tensor<dtype::f32, samples, in>>;

const float* values(const parameter_store& store, std::string_view name) {
  const named_parameter* p = store.find(name);
  REQUIRE(p);
  return reinterpret_cast<const float*>(store.value(*p).data);
}

}  // namespace

TEST_CASE("a multilayer perceptron has a weight and a bias for each layer, found by their paths") {
  net n;
  const parameter_store store(n, 1);
  std::vector<std::string> names;
  for (const auto& e : store.entries()) names.push_back(e.name);
  CHECK(names == std::vector<std::string>{"layer.weight", "layer.bias", "rest.layer.weight",
                                          "rest.layer.bias"});
  CHECK(store.trainable_count() == in * hidden + hidden + hidden * out + out);
}

TEST_CASE("a multilayer perceptron applies ReLU between its layers and none after the last") {
  net n;
  parameter_store store(n, 3);
  executable<program_type> run(store);
  std::vector<float> x(samples * in);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) - 3;
  run(x);

  const float *w1 = values(store, "layer.weight"), *b1 = values(store, "layer.bias");
  const float *w2 = values(store, "rest.layer.weight"), *b2 = values(store, "rest.layer.bias");
  int negative_hidden = 0, negative_results = 0;
  for (int s = 0; s < samples; ++s) {
    double h[hidden];
    for (int j = 0; j < hidden; ++j) {
      h[j] = b1[j];
      for (int i = 0; i < in; ++i)
        h[j] += double(w1[j * in + i]) * double(x[std::size_t(s * in + i)]);
      negative_hidden += h[j] < 0;
      h[j] = std::max(h[j], 0.0);
    }
    for (int k = 0; k < out; ++k) {
      double y = b2[k];
      for (int j = 0; j < hidden; ++j) y += double(w2[k * hidden + j]) * h[j];
      negative_results += y < 0;
      CHECK(double(run.result<0>()[std::size_t(s * out + k)]) == doctest::Approx(y).epsilon(1e-5));
    }
  }
  // Otherwise the case would not tell where ReLU is.
  CHECK(negative_hidden > 0);
  CHECK(negative_results > 0);
}
