// Recurrent nets: the values and gradients that PyTorch has, and a compiled training step.
#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/train/step.hpp>
#include <span>

#include "../support/golden.hpp"
#include "../support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using net_function = sequence_result (*)(var, const recurrent_weights&, std::source_location);

/// x, the four weights, the cotangent of the outputs -> the outputs and the gradients.
template <net_function Run>
vars outputs_and_gradients(const vars& x) {
  const var y = Run(x[0], {x[1], x[2], x[3], x[4]}, std::source_location::current()).outputs;
  const auto g = gradients(sum(y * x[5]), std::span(x).first(5));
  vars all{y};
  all.insert(all.end(), g.begin(), g.end());
  return all;
}

void check_close(const valued_tensor& found, const golden_tensor& wanted) {
  REQUIRE(found.type.shape == wanted.shape);
  for (std::size_t i = 0; i < wanted.values.size(); ++i)
    CHECK(found.values[i] == doctest::Approx(wanted.values[i]).epsilon(1e-9).scale(1e-3));
}

template <net_function Run>
void check_golden(const std::string& layer) {
  const auto layers = golden::open("layers");
  const std::array names{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
  auto read = [&](const std::string& name) {
    const golden_tensor t = layers.tensor(layer + "." + name);
    return f64(t.shape, t.values);
  };
  std::vector<valued_tensor> inputs{read("x")};
  for (const char* n : names) inputs.push_back(read(n));
  inputs.push_back(read("ct"));
  for (const bool eagerly : {false, true}) {
    INFO(layer, eagerly ? " in eager mode" : " traced");
    const auto results = eagerly ? run_eagerly(outputs_and_gradients<Run>, inputs)
                                 : run_traced(outputs_and_gradients<Run>, inputs);
    check_close(results[0], layers.tensor(layer + ".y"));
    check_close(results[1], layers.tensor(layer + ".grad.x"));
    for (std::size_t i = 0; i < names.size(); ++i)
      check_close(results[i + 2], layers.tensor(layer + ".grad." + names[i]));
  }
}

/// The last hidden state's sum of squares and its gradients by x and the weights.
template <net_function Run>
struct trained {
  constexpr auto operator()(var x, var ih, var hh, var b) const {
    const auto loss = [](var v, var w, var u, var c) {
      return sum(square(Run(v, {w, u, c, c}, std::source_location::current()).hidden));
    };
    const auto r = value_and_grad<4>(loss)(x, ih, hh, b);
    return std::tuple{r.value, r.gradient[0], r.gradient[1], r.gradient[2], r.gradient[3]};
  }
};
/// Compares the compiled program with the interpreter of the same graph and of the graph before any
/// pass.
template <net_function Run, int Gates>
void check_compiled() {
  constexpr int in = 5;
  constexpr int hidden = 24;
  auto run =
      compile<cella::tensor<dtype::f64, 7, 4, in>, cella::tensor<dtype::f64, Gates * hidden, in>,
              cella::tensor<dtype::f64, Gates * hidden, hidden>,
              cella::tensor<dtype::f64, Gates * hidden>>(trained<Run>{});
  using program = typename decltype(run)::program;
  std::vector<valued_tensor> inputs;
  generator random(5);
  for (std::size_t i = 0; i < program::graph.inputs.size(); ++i) {
    valued_tensor t{program::graph.type(program::graph.input(int(i))), {}};
    for (std::int64_t k = 0; k < t.type.size(); ++k) t.values.push_back(random.uniform() - 0.5);
    inputs.push_back(t);
  }
  run(inputs[0].values, inputs[1].values, inputs[2].values, inputs[3].values);
  const auto expected = run_traced(
      [](const vars& x) {
        const auto [y, a, b, c, d] = trained<Run>{}(x[0], x[1], x[2], x[3]);
        return vars{y, a, b, c, d};
      },
      inputs);
  const auto check = [&](const valued_tensor& wanted, std::span<const double> found) {
    REQUIRE(found.size() == wanted.values.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(wanted.values[i]).epsilon(1e-10).scale(1e-2));
  };
  check(expected[0], run.template result<0>());
  check(expected[1], run.template result<1>());
  check(expected[2], run.template result<2>());
  check(expected[3], run.template result<3>());
  check(expected[4], run.template result<4>());
}

/// Tells sequences apart by their last number's sign.
struct classifier {
  nn::lstm<2, 16> memory;
  nn::dense<16, 2> out;
  constexpr var operator()(var x) const { return out(memory(x).hidden); }
};

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("rnn") { check_golden<&cella::rnn>("rnn"); }
  TEST_CASE("lstm") { check_golden<&cella::lstm>("lstm"); }
  TEST_CASE("gru") { check_golden<&cella::gru>("gru"); }
}

TEST_CASE("compiled recurrent nets have the values and gradients of the interpreter") {
  check_compiled<&cella::rnn, 1>();
  check_compiled<&cella::lstm, 4>();
  check_compiled<&cella::gru, 3>();
}
TEST_CASE("sequences of another width are refused") {
  const auto run = [](const vars& x) { return vars{lstm(x[0], {x[1], x[2], x[3], x[3]}).outputs}; };
  const auto type = [](const shape& s) { return tensor_type{dtype::f64, s}; };
  CHECK(fault(run, {type({2, 5, 4}), type({8, 3}), type({8, 2}), type({8})}) ==
        "lstm: needs sequences [samples, steps, 3]: x0 is [2,5,4]");
}

TEST_CASE("a compiled LSTM learns, and its loop holds no weight gradient") {
  using cell = training_step<classifier, cross_entropy_loss, fixed<optim::adam{}>>;
  using program = cella::program<cell, true, dtype::f32, cella::tensor<dtype::f32, 32, 6, 2>,
                                 cella::tensor<dtype::i32, 32>>;
  // The sum over steps of dz^T h is one product behind the loop.
  int after = 0;
  for (const node& n : program::graph.nodes)
    after += n.region == 0 && is<matmul_op>(n) && n.type.shape == shape{64, 16};
  CHECK(after == 1);

  cell step;
  parameter_store store(step.net, 1);
  executable<program> run(store);
  run.scalar(program::scalar("learning_rate"), 0.01);
  std::vector<float> x(32 * 6 * 2);
  std::vector<std::int32_t> y(32);
  generator random(7);
  double first = 0;
  double last = 0;
  for (int i = 0; i < 200; ++i) {
    for (float& v : x) v = float(random.uniform() * 2 - 1);
    for (std::size_t k = 0; k < y.size(); ++k) y[k] = x[k * 12 + 11] > 0;
    run.scalar(program::scalar("step"), i + 1);
    run(x, y);
    last = double(run.result<0>()[0]);
    if (i == 0) first = last;
  }
  CHECK(first > 0.6);
  CHECK(last < 0.15);
}
