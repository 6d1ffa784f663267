// Small cells, each with a pattern that fusion, layout or the memory plan could get wrong.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/transform/gradient.hpp>

namespace cella::test {

/// Values used by several consumers, residual connections, an output in the middle of a group.
struct fan_out {
  nn::dense<7, 9> a{};
  nn::dense<9, 9> b{};
  constexpr std::array<var, 3> operator()(var x) const {
    const var h = tanh(a(x));
    const var y = relu(b(h) + h);
    return {y * 2 + 1, h, sum(y * h)};
  }
};

/// Sums over features, samples and everything, with elementwise work before and after.
struct sums {
  constexpr std::array<var, 5> operator()(var x) const {
    const var per_sample = sum(square(x) * 0.5, {1});
    const var per_feature = sum(x * x + 1, {0}) * 3;
    const var centred = x - mean(x, {1}, true);
    return {per_sample, per_feature, mean(exp(-abs(x))), centred / (1 + per_sample.b->failed()),
            variance(x, {0})};
  }
};

/// Softmax and layer norm written out, broadcasts along every axis.
struct normalized {
  parameter<5> gamma{initializer::uniform(0.5, 1.5)};
  parameter<5> beta{initializer::normal()};
  parameter<4, 5> table{initializer::normal()};
  constexpr std::array<var, 2> operator()(var x) const {
    const var centred = x - mean(x, {2}, true);
    const var y = centred * rsqrt(variance(x, {2}, true) + 1e-5) * gamma + beta;
    const var z = exp(y - max(y, {2}, true));
    return {z / sum(z, {2}, true) + table, y * operand(table).in(*x.b)};
  }
};

/// Convolutions with stride, padding and without pooling; pooling that is not fused; averages.
struct image_net {
  nn::conv2d<3, 5, 3> first{.stride = 2, .padding = 1};
  nn::conv2d<5, 4, 3, false> second{.padding = 1};
  nn::batch_norm<4> norm{};
  nn::dense<4, 3> head{};
  constexpr std::array<var, 2> operator()(var x) const {
    const var h = relu(first(x));
    const var p = max_pool(norm(second(h)) + 1, 3, 2, 1);
    return {head(global_average_pool(p)), average_pool(h, 2)};
  }
};

/// Transposed and batched products, a product of two activations, a product with a transposed
/// result.
struct products {
  parameter<6, 4> w{};
  parameter<4, 6> v{};
  constexpr std::array<var, 4> operator()(var x) const {  // [N, 3, 4]
    const var y = matmul(x, w, false, true);              // [N, 3, 6]
    const var s = matmul(y, y, false, true);              // [N, 3, 3]
    const var t = tensor_dot(operand(v), y, {1}, {2});    // [4, N, 3]
    return {y + 1, softmax(s), t * 2, matmul(x, v) - y};
  }
};

/// Selections, comparisons and clamps in one group; a truth value that two operations read.
struct choices {
  constexpr std::array<var, 3> operator()(var x) const {
    const var positive = x > 0;
    const var y = select(positive, log(x + 2), x * 3);
    return {select(positive, y, -y), clamp(y, -0.5, 0.5),
            select(x < 0.25, maximum(x, y), minimum(x, 0.1))};
  }
};

/// Reshapes, slices, concatenation, transposes and padding between elementwise groups.
struct movements {
  constexpr std::array<var, 3> operator()(var x) const {  // [N, 4, 6]
    const var a = tanh(x);
    const var t = transpose(a, {0, 2, 1}) * 2;  // [N, 6, 4]
    const var r = reshape(t + 1, {x.extent(0), 24});
    const var c = concat({slice(r, 1, 0, 10), slice(r, 1, 12, 24, 2)}, 1);  // [N, 16]
    return {exp(c) + 1, pad(a, {0, 1, 0}, {0, 0, 2}), reshape(a, {x.extent(0) * 4, 6}) * 2};
  }
};

/// A loss whose gradient is not zero where a lane has no sample.
template <class Net>
struct loss_gradients_of {
  Net net{};
  constexpr Net& wrapped() { return net; }
  constexpr std::vector<var> operator()(var x) {
    std::vector<var> parameters;
    builder& b = *x.b;
    for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
      if (b.g.inputs[i].role == input_role::parameter)
        parameters.push_back({&b, b.g.input(int(i))});
    }
    list<var> results;
    detail::flatten_results(net(x), results);
    var loss = sum(square(results[0] - 0.3));
    for (std::size_t i = 1; i < results.size(); ++i) loss = loss + mean(exp(results[i] * 0.1));
    std::vector<var> out{loss};
    for (var g : gradients(loss, parameters)) out.push_back(g);
    return out;
  }
};

}  // namespace cella::test
