// Training in 16 bits on plans that are made at run time, held against training in single
// precision.
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/slots.hpp>
#include <cella/train/step.hpp>
#include <numeric>
#include <sstream>

#include "../train/digits.hpp"
#include "formats.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct course {
  std::vector<double> losses;
  std::int64_t arena{};
};
/// Makes `count` steps on the same arguments, which are given as numbers.
template <class Step>
course learn(const std::vector<valued_tensor>& arguments, int count, double rate,
             bool scaled = false) {
  Step step{};
  std::array<tensor_type, 2> types{arguments[0].type, arguments[1].type};
  const graph g = optimize(trace(step, types, {true, dtype::f32}));
  std::remove_cvref_t<decltype(step.net)> net{};
  parameter_store store(net, 1);
  slot_store slots(g);
  bindings memory;
  std::array<float, 2> scalars{};
  std::ptrdiff_t count_at = -1;
  loaded_program run(g, dtype::f32);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const input_info& in = g.inputs[i];
    const std::string_view name = g.view(in.name);
    std::byte* at = nullptr;
    if (in.role == input_role::argument) {
      at = memory.store(arguments[std::size_t(in.index)]).data;
    } else if (in.role == input_role::scalar) {
      if (name == "step") count_at = in.index;
      scalars[std::size_t(in.index)] = float(rate);
      at = reinterpret_cast<std::byte*>(&scalars[std::size_t(in.index)]);
    } else {
      at = in.role == input_role::slot ? slots.value(*slots.find(name)).data
                                       : store.value(*store.find(name)).data;
    }
    run.bind(int(i), at);
  }
  course c;
  for (int i = 0; i < count; ++i) {
    if (count_at >= 0) scalars[std::size_t(count_at)] = float(i + 1);
    run();
    c.losses.push_back(read(run.result(0)).values[0]);
  }
  std::ostringstream explained;
  run.explain(explained);
  const std::string text = explained.str();
  // A loss whose scale is a number of the step is no longer one kernel with its gradient.
  if (!scaled) CHECK(text.find(" generic ") == std::string::npos);
  std::istringstream line(text.substr(text.rfind("arena ", text.find("values between steps")) + 6));
  for (char d; line.get(d) && d != 'v';) {
    if (d >= '0' && d <= '9') c.arena = c.arena * 10 + (d - '0');
  }
  return c;
}
double last(const course& c) {
  return std::accumulate(c.losses.end() - 5, c.losses.end(), 0.0) / 5;
}

constexpr optim::sgd momentum{.momentum = 0.9};
template <class Net, class Loss, auto Rule, dtype Compute = dtype::f32>
using step_in = training_step<Net, Loss, fixed<Rule>, var, Compute>;

/// Trains in all three types. What is rounded to 8 or 11 binary digits changes the first loss by
/// less than 2^-7, and the losses that are reached by less than `limit`.
template <class Net, class Loss, auto Rule = momentum>
void compare(const std::vector<valued_tensor>& arguments, int count, double rate, double limit) {
  const auto exact = learn<step_in<Net, Loss, Rule>>(arguments, count, rate);
  const auto brain = learn<step_in<Net, Loss, Rule, dtype::bf16>>(arguments, count, rate);
  const auto half = learn<step_in<Net, Loss, optim::dynamic_loss_scale(Rule), dtype::f16>>(
      arguments, count, rate, true);
  CHECK(last(exact) < exact.losses[0] / 4);
  for (const course* c : {&brain, &half}) {
    CHECK(c->losses != exact.losses);
    CHECK(c->losses[0] == doctest::Approx(exact.losses[0]).epsilon(0.0078));
    CHECK(std::abs(last(*c) - last(exact)) < limit);
    CHECK(c->arena > 0);
  }
}

/// Noise, and in each sample a bright column that tells its class.
std::vector<valued_tensor> images(int samples, int channels, int size) {
  auto x = made_up({{samples, channels, size, size}}, dtype::f32, false);
  valued_tensor labels{{dtype::i32, {samples}}, {}};
  for (int n = 0; n < samples; ++n) {
    labels.values.push_back(n * 3 % 10);
    for (int k = 0; k < channels * size; ++k)
      x[0].values[std::size_t((n * channels * size + k) * size + n * 3 % 10 + 1)] += 1;
  }
  return {x[0], labels};
}
/// Each word follows from the one before.
std::vector<valued_tensor> sentences(int samples, int places, int words) {
  valued_tensor x{{dtype::i32, {samples, places}}, {}}, y{{dtype::i32, {samples * places}}, {}};
  for (int n = 0; n < samples; ++n) {
    for (int t = 0, w = n % words; t < places; ++t) {
      x.values.push_back(w);
      y.values.push_back(w = (3 * w + 1) % words);
    }
  }
  return {x, y};
}
/// Whole blocks of channels.
struct residual_net {
  nn::conv2d<3, 32, 3> stem{.padding = 1};
  nn::conv2d<32, 32, 3, false> conv{.padding = 1};
  nn::batch_norm<32> norm{};
  nn::dense<32, 10> last{};
  constexpr var operator()(var x) const {
    x = max_pool(relu(stem(x)), 2);
    return last(mean(relu(norm(conv(x)) + x), {2, 3}));
  }
};

}  // namespace

TEST_CASE("LeNet-5 in 16 bits learns as in single precision") {
  compare<models::lenet5, cross_entropy_loss, optim::adam{}>(images(16, 1, 28), 100, 0.003, 0.02);
}
TEST_CASE("a residual net in 16 bits learns as in single precision") {
  compare<residual_net, cross_entropy_loss>(images(16, 3, 16), 40, 0.1, 0.05);
}
TEST_CASE("a GPT in 16 bits learns as in single precision, in less memory") {
  const auto words = sentences(8, 64, 24);
  using net = models::gpt<24, 64, 2, 2, 64>;
  compare<net, nn::token_cross_entropy>(words, 60, 0.05, 0.05);
  const auto exact = learn<step_in<net, nn::token_cross_entropy, momentum>>(words, 5, 0.05);
  const auto brain =
      learn<step_in<net, nn::token_cross_entropy, momentum, dtype::bf16>>(words, 5, 0.05);
  CHECK(double(brain.arena) < 0.62 * double(exact.arena));
}

TEST_CASE("products of operands of 16 bits, as large as are packed and as small as are not") {
  for (const dtype narrow : {dtype::bf16, dtype::f16}) {
    for (const auto& [rows, depth, columns] :
         {std::array{1, 40, 9}, std::array{3, 5, 2}, std::array{32, 400, 120},
          std::array{61, 33, 70}, std::array{200, 7, 1}}) {
      CAPTURE(rows);
      CAPTURE(narrow);
      const auto in = made_up({{rows, depth}, {columns, depth}}, dtype::f32, true);
      check_plan(
          [narrow](const vars& x) {
            const var a = cast(x[0], narrow), b = cast(x[1], narrow);
            const var y = matmul(a, b, false, true);
            return vars{cast(y, dtype::f32), cast(relu(y) - 1, dtype::f32)};
          },
          in, dtype::f32, layout::plain);
    }
  }
}

TEST_CASE("a model computes in 16 bits if its options say so; its parameters stay as they are") {
  using net = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{}, momentum,
                    model_options{.batch = 16, .compute = dtype::bf16, .compiled = false}>;
  using exact_net = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{}, momentum,
                          model_options{.batch = 16, .compiled = false}>;
  const auto in = images(16, 1, 28);
  std::vector<float> x(in[0].values.begin(), in[0].values.end());
  std::vector<std::int32_t> y(in[1].values.begin(), in[1].values.end());
  net brain({.seed = 1}), eager({.seed = 1, .mode = execution::eager});
  exact_net exact({.seed = 1});
  for (int i = 0; i < 3; ++i) {
    const double loss = brain.train_step(x.data(), y.data(), 16, 0.02);
    CHECK(loss == doctest::Approx(exact.train_step(x.data(), y.data(), 16, 0.02)).epsilon(0.0078));
    if (i == 0)
      CHECK(loss == doctest::Approx(eager.train_step(x.data(), y.data(), 16, 0.02)).epsilon(1e-3));
  }
  for (const auto& e : brain.parameters().entries()) CHECK(e.type.element == dtype::f32);
}
