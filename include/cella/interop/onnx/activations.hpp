// Activations.
#pragma once

#include <cella/interop/onnx/elementwise.hpp>
#include <cella/ops/activation.hpp>

namespace cella::interop {

inline list<var> leaky_relu_rule(onnx_node& n) {
  return {leaky_relu(n.in(0), n.number("alpha", 0.01))};
}
inline list<var> elu_rule(onnx_node& n) { return {elu(n.in(0), n.number("alpha", 1))}; }
inline list<var> selu_rule(onnx_node& n) {
  const double alpha = n.number("alpha", 1.67326319217681884765625);
  return {n.number("gamma", 1.05070102214813232421875) * elu(n.in(0), alpha)};
}
inline list<var> celu_rule(onnx_node& n) {
  const double alpha = n.number("alpha", 1);
  return {alpha * elu(n.in(0) / alpha, 1)};
}
inline list<var> thresholded_relu_rule(onnx_node& n) {
  const var x = n.in(0);
  return {select(x > n.number("alpha", 1), x, zeros_like(x))};
}
inline list<var> hard_sigmoid_rule(onnx_node& n) {
  return {clamp(n.number("alpha", 0.2) * n.in(0) + n.number("beta", 0.5), 0, 1)};
}
inline list<var> hard_swish_rule(onnx_node& n) {
  const var x = n.in(0);
  return {x * clamp(x / 6 + 0.5, 0, 1)};
}
inline list<var> shrink_rule(onnx_node& n) {
  const var x = n.in(0);
  const double limit = n.number("lambd", 0.5), bias = n.number("bias", 0);
  return {select(x < -limit, x + bias, select(x > limit, x - bias, zeros_like(x)))};
}
inline list<var> gelu_rule(onnx_node& n) {
  const bool exact = n.one_of("approximate", {"none", "tanh"}) == "none";
  return {exact ? gelu(n.in(0)) : gelu_tanh(n.in(0))};
}
inline list<var> prelu_rule(onnx_node& n) {
  const var x = n.in(0);
  var slope = n.in(1);
  if (n.opset() < 7 && slope.rank() == 1 && x.rank() > 1) {
    shape s = slope.shape();
    while (s.rank < x.rank() - 1) s.push_back(1);
    slope = reshape(slope, s);
  }
  return {select(x < 0, x * slope, x)};
}

inline constexpr named_onnx_rule activation_rules[] = {
    {"Celu", celu_rule},
    {"Elu", elu_rule},
    {"Gelu", gelu_rule},
    {"HardSigmoid", hard_sigmoid_rule},
    {"HardSwish", hard_swish_rule},
    {"LeakyRelu", leaky_relu_rule},
    {"Mish", unary_rule<mish>},
    {"PRelu", prelu_rule},
    {"Relu", unary_rule<relu>},
    {"Selu", selu_rule},
    {"Shrink", shrink_rule},
    {"Sigmoid", unary_rule<sigmoid>},
    {"Softplus", unary_rule<softplus>},
    {"Softsign", unary_rule<softsign>},
    {"ThresholdedRelu", thresholded_relu_rule},
};

}  // namespace cella::interop
