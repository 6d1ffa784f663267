// What K-FAC refuses: parameters that are none of a layer's, and options that cannot be meant. Each
// sentence names the parameter or option, and what to do.
#include <doctest/doctest.h>

#include <array>
#include <cella/nn/convolutions.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/optim/lazy.hpp>
#include <cella/optim/parts.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/control.hpp>
#include <string>

using namespace cella;
using optim::kfac;

namespace {

/// The fault of a training step for images [4,2,6,6]; empty if there is none.
template <class Net, auto Rule = kfac{}>
std::string fault() {
  training_step<Net, squared_error_loss, fixed<Rule>> step;
  try {
    const tensor_type images{dtype::f32, {4, 2, 6, 6}};
    trace(step, std::array{images, tensor_type{dtype::f32, {4, 3}}}, {.training = true});
    return {};
  } catch (const model_error& e) { return e.what(); }
}

constexpr int pixels = 2 * 6 * 6;
struct plain {
  nn::dense<pixels, 3> fc{};
  constexpr var operator()(var x) const { return fc(flatten(x)); }
};
struct normed {
  nn::dense<pixels, 3> fc{};
  nn::layer_norm<3> norm{};
  constexpr var operator()(var x) const { return norm(fc(flatten(x))); }
};
struct grouped {
  nn::conv2d<2, 4, 3, true, 2> conv{};
  nn::dense<4 * 4 * 4, 3> fc{};
  constexpr var operator()(var x) const { return fc(flatten(conv(x))); }
};
struct widened {
  nn::conv2d_transpose<2, 1, 3> up{};
  nn::dense<8 * 8, 3> fc{};
  constexpr var operator()(var x) const { return fc(flatten(up(x))); }
};
struct shared {
  nn::dense<pixels, 3> first{};
  nn::dense<3, 3> again{};
  constexpr var operator()(var x) const { return again(tanh(again(first(flatten(x))))); }
};
struct looped {
  nn::dense<pixels, 3> first{};
  nn::dense<3, 3> again{};
  constexpr var operator()(var x) const {
    return for_i(
        2, [&](var, var h) { return again(h); }, first(flatten(x)));
  }
};
struct unused {
  nn::dense<pixels, 3> fc{};
  parameter<3> other{};
  constexpr var operator()(var x) const { return fc(flatten(x)); }
};
struct looked_up {
  nn::dense<pixels, 3> fc{};
  nn::embedding<4, 3> words{};
  constexpr var operator()(var x) const {
    return fc(flatten(x)) + words(iota(*x.b, {dtype::i32, {4}}, 0));
  }
};

std::string remedy(const std::string& pattern) {
  return "; the rule is for the weights and biases of dense layers and convolutions: "
         "optim::parts(optim::part<\"" +
         pattern + "\">(optim::adamw{}), optim::rest(optim::kfac{}))";
}

}  // namespace

TEST_CASE("parameters that are none of a layer's are refused by their names") {
  CHECK(fault<plain>().empty());
  CHECK(fault<normed>() ==
        "optim::kfac: \"norm.weight\" f32[3] is no weight of such a layer, nor a bias beside one: "
        "its gradient is made by sum" +
            remedy("norm.*"));
  CHECK(fault<grouped>() ==
        "optim::kfac: \"conv.weight\" f32[4,1,3,3] is the filter of a convolution with groups" +
            remedy("conv.*"));
  CHECK(fault<widened>() ==
        "optim::kfac: \"up.weight\" f32[2,1,3,3] is the filter of a transposed convolution" +
            remedy("up.*"));
  CHECK(fault<shared>() ==
        "optim::kfac: \"again.weight\" f32[3,3] is used more than once: its gradient is a sum" +
            remedy("again.*"));
  CHECK(fault<looped>() ==
        "optim::kfac: \"again.weight\" f32[3,3] has a gradient from a loop or a branch" +
            remedy("again.*"));
  CHECK(fault<unused>() ==
        "optim::kfac: \"other\" f32[3] has no gradient: the loss does not depend on it" +
            remedy("other"));
  CHECK(fault<looked_up>() ==
        "optim::kfac: \"words.weight\" f32[4,3] is no weight of such a layer, nor a bias beside "
        "one: its gradient is made by scatter" +
            remedy("words.*"));
}

TEST_CASE("other rules take what it refuses") {
  CHECK(fault<normed, optim::parts(optim::part<"fc*">(kfac{}), optim::rest(optim::adamw{}))>()
            .empty());
  CHECK(fault<looped, optim::parts(optim::part<"again.*">(optim::adamw{}), optim::rest(kfac{}))>()
            .empty());
  // A weight without its bias is a layer, a bias alone is none.
  CHECK(fault<plain, optim::parts(optim::part<"*.weight">(kfac{}), optim::rest(optim::sgd{}))>()
            .empty());
  CHECK(fault<plain, optim::parts(optim::part<"*.bias">(kfac{}), optim::rest(optim::sgd{}))>()
            .starts_with("optim::kfac: \"fc.bias\" f32[3] is no weight of such a layer, nor a "
                         "bias beside one"));
}

TEST_CASE("options that cannot be meant are refused") {
  CHECK(fault<plain, kfac{.decay = 1}>() == "optim::kfac: decay is 1; it must lie in [0, 1)");
  CHECK(fault<plain, kfac{.damping = 0}>() ==
        "optim::kfac: damping is 0; it must be at least 1e-12, and finite");
  CHECK(fault<plain, kfac{.kl_clip = -1}>() ==
        "optim::kfac: kl_clip is -1; it must be at least 0, and finite");
  CHECK(fault<plain, kfac{.momentum = 1}>() == "optim::kfac: momentum is 1; it must lie in [0, 1)");
  CHECK(fault<plain, kfac{.weight_decay = -0.1}>() ==
        "optim::kfac: weight_decay is -0.1; it must be at least 0, and finite");
  CHECK(fault<plain, kfac{.every = 0}>() ==
        "optim::kfac: every is 0; it must be at least 1, and finite");
}
