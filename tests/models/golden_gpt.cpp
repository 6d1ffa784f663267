// Twenty steps of a small GPT against PyTorch: as a compiled program and step by step.
#include <doctest/doctest.h>

#include <cella/models/gpt.hpp>
#include <cella/nn/losses.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/train/step.hpp>
#include <cmath>

#include "../support/golden.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int words = 11, width = 16, heads = 2, layers = 1, places = 12, samples = 4;
constexpr double rate = 0.01;
using net = models::gpt<words, width, heads, layers, places>;
using training = training_step<net, nn::token_cross_entropy, fixed<optim::adamw(0.1)>>;
template <dtype Element>
using gpt_step = program<training, true, Element, tensor<dtype::i32, samples, places>,
                         tensor<dtype::i32, samples * places>>;

std::string file_name(const std::string& path) {
  const std::vector<std::pair<std::string, std::string>> names{{"word.", "tok."},
                                                               {"blocks.0.norm1.", "n1."},
                                                               {"blocks.0.attention.qkv.", "qkv."},
                                                               {"blocks.0.attention.out.", "o."},
                                                               {"blocks.0.norm2.", "n2."},
                                                               {"blocks.0.up.", "a."},
                                                               {"blocks.0.down.", "b."},
                                                               {"norm.", "n."}};
  if (path == "place") return "pos.weight";
  for (const auto& [ours, theirs] : names) {
    if (path.starts_with(ours)) return theirs + path.substr(ours.size());
  }
  return path;
}

struct golden_run {
  std::vector<std::vector<std::int32_t>> x, y;
  std::vector<double> losses;
};
golden_run read_run(const golden& g) {
  golden_run r;
  const auto cut = [&](const std::string& name, std::vector<std::vector<std::int32_t>>& out) {
    const auto t = g.tensor("tiny_gpt." + name);
    const auto n = std::size_t(t.shape[0]);
    for (std::size_t i = 0; i < t.values.size(); ++i) {
      if (i % (t.values.size() / n) == 0) out.emplace_back();
      out.back().push_back(std::int32_t(t.values[i]));
    }
  };
  cut("x", r.x);
  cut("y", r.y);
  r.losses = g.tensor("tiny_gpt.losses").values;
  return r;
}

template <class T>
void load(const golden& g, parameter_store& store) {
  for (const auto& e : store.entries()) {
    const auto w = g.tensor("tiny_gpt.initial." + file_name(e.name));
    REQUIRE(std::int64_t(w.values.size()) == e.type.size());
    T* to = reinterpret_cast<T*>(store.value(e).data);
    for (std::size_t i = 0; i < w.values.size(); ++i) to[i] = static_cast<T>(w.values[i]);
  }
  store.touch();
}
/// The worst error of the final weights, relative to the largest of each tensor.
template <class T>
double weight_error(const golden& g, const parameter_store& store) {
  double worst = 0;
  for (const auto& e : store.entries()) {
    const auto w = g.tensor("tiny_gpt.final." + file_name(e.name));
    const T* ours = reinterpret_cast<const T*>(store.value(e).data);
    double most = 1e-3, error = 0;
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      most = std::max(most, std::abs(w.values[i]));
      const double d = std::abs(double(ours[i]) - w.values[i]);
      error = d <= error ? error : d;
    }
    worst = error / most <= worst ? worst : error / most;
  }
  return worst;
}

struct run_error {
  double loss{}, weights{};
};
double loss_error(double loss, double expected) {
  return std::isfinite(loss) ? std::abs(loss - expected) / expected : 1e9;
}

template <dtype Element>
run_error run_compiled(const golden& g) {
  using T = element<Element>;
  using P = gpt_step<Element>;
  net n;
  parameter_store store(n, 0, Element);
  load<T>(g, store);
  const golden_run data = read_run(g);
  executable<P> step(store);
  run_error r;
  for (std::size_t i = 0; i < data.losses.size(); ++i) {
    step.scalar(P::scalar("learning_rate"), rate);
    step.scalar(P::scalar("step"), double(i + 1));
    const std::size_t k = i % data.x.size();
    step(data.x[k].data(), data.y[k].data());
    r.loss = std::max(r.loss, loss_error(double(step.template result<0>()[0]), data.losses[i]));
  }
  r.weights = weight_error<T>(g, store);
  return r;
}

template <dtype Element>
run_error run_without_program(const golden& g, bool eagerly) {
  using T = element<Element>;
  training step{};
  parameter_store store(step.wrapped(), 0, Element);
  load<T>(g, store);
  golden_run data = read_run(g);
  const std::array types{tensor_type{dtype::i32, {samples, places}},
                         tensor_type{dtype::i32, {samples * places}}};
  const trace_options options{.training = true, .precision = Element};
  const graph traced = trace(step, types, options);
  const slot_store slots(traced);
  run_error r;
  for (std::size_t i = 0; i < data.losses.size(); ++i) {
    const std::size_t k = i % data.x.size();
    const std::array arguments{
        tensor_ref{reinterpret_cast<std::byte*>(data.x[k].data()), types[0]},
        tensor_ref{reinterpret_cast<std::byte*>(data.y[k].data()), types[1]}};
    const std::array<named_scalar, 2> scalars{{{"learning_rate", rate}, {"step", double(i + 1)}}};
    runtime_path path({&store, &slots, arguments, scalars});
    if (eagerly)
      path.run_eagerly(step, types, options);
    else
      path.run(traced);
    r.loss = std::max(r.loss, loss_error(read_element(path.result(0), 0), data.losses[i]));
  }
  r.weights = weight_error<T>(g, store);
  return r;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("twenty steps of a small GPT follow PyTorch in f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = run_compiled<dtype::f32>(*g);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    // No weights: the bias of the keys has no gradient but rounding errors, which Adam scales up.
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("twenty steps of a small GPT follow PyTorch in f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = run_compiled<dtype::f64>(*g);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-8);
  }
  TEST_CASE("a small GPT follows PyTorch in eager mode, f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = run_without_program<dtype::f32>(*g, true);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("a small GPT follows PyTorch in eager mode, f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = run_without_program<dtype::f64>(*g, true);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-8);
  }
  TEST_CASE("a small GPT follows PyTorch in a graph traced at run time, f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = run_without_program<dtype::f64>(*g, false);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
}
