#include <doctest/doctest.h>

#include <cella/nn/functions.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/softmax.hpp>
#include <vector>

#include "loaded/formats.hpp"

using namespace cella;
using namespace cella::test;

namespace {

// Half a vector of samples, or more; and several vectors, of which the last is not full. No other
// first axis is that long, and no channels are whole blocks.
constexpr int batches[] = {8, 33, 48};

}  // namespace

TEST_CASE("the batch in the lanes: convolutions with pooling, of whole numbers with many equal") {
  const auto net = [](const vars& x) {
    const var y = relu(max_pool(biased(conv2d(x[0], x[1], walk(1, 2)), x[2]), 2));
    const var z = max_pool(relu(biased(conv2d(y, x[3]), x[4])), 2);
    vars all{z, y};
    for (const var& d : gradients(sum(z * x[5]), x)) all.push_back(d);
    return all;
  };
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n, 3, 11, 9}, {5, 3, 5, 5}, {5}, {7, 5, 3, 3}, {7}, {n, 7, 1, 1}},
                layout::lanes, true);
  }
}

TEST_CASE("the batch in the lanes: numbers of 16 bits, rounded as memory would hold them") {
  for (const dtype narrow : {dtype::bf16, dtype::f16}) {
    const auto net = [narrow](const vars& x) {
      vars in;
      for (const var& v : x) in.push_back(cast(v, narrow));
      const var y = relu(max_pool(biased(conv2d(in[0], in[1], walk(1, 2)), in[2]), 2));
      const var z = cast(matmul(reshape(y, {y.extent(0), 100}), in[3]) + 0.3, dtype::f32);
      vars all{z, cast(y, dtype::f32)};
      for (const var& d : gradients(sum(z * x[4]), x)) all.push_back(d);
      return all;
    };
    for (int n : batches) {
      CAPTURE(n);
      const std::vector<shape> shapes{{n, 3, 11, 9}, {5, 3, 5, 5}, {5}, {100, 7}, {n, 7}};
      check_plan(net, made_up(shapes, dtype::f32, true), dtype::f32, layout::lanes);
    }
  }
}

TEST_CASE("the batch in the lanes: the positions of maxima may be a result") {
  const auto net = [](const vars& x) {
    const var y = max_pool(conv2d(x[0], x[1]), 2);
    const node_id pool = y.b->g.operand(y.id, 0);
    return vars{y, var{y.b, y.b->get(pool, 1)}, max_pool(conv2d(y, x[2]), 2)};
  };
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n, 3, 14, 14}, {5, 3, 5, 5}, {7, 5, 2, 2}}, layout::lanes, true);
  }
}

TEST_CASE("the batch in the lanes: convolutions by filters of each width, strided, with borders") {
  const auto net = with_gradients([](const vars& x) {
    var y = tanh(max_pool(conv2d(x[0], x[1], walk(1, 1)), 2));
    y = tanh(biased(conv2d(y, x[2], walk(1, 2)), x[3]));
    y = y + tanh(conv2d(y, x[4], walk(1, 1)));
    y = conv2d(tanh(conv2d(y, x[5])), x[6], walk(2, 3));
    return vars{biased(conv2d(y, x[7], walk(2, 0)), x[8]) * 0.5, exp(y)};
  });
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net,
                {{n, 1, 18, 14},
                 {5, 1, 3, 3},
                 {13, 5, 5, 5},
                 {13},
                 {13, 13, 3, 3},
                 {3, 13, 1, 1},
                 {7, 3, 7, 7},
                 {5, 7, 2, 2},
                 {5}},
                layout::lanes);
  }
}

TEST_CASE("the batch in the lanes: dense layers of every number of rows in a tile") {
  for (int n : batches) {
    for (int width : {1, 2, 5, 12, 15, 30, 67}) {
      CAPTURE(n);
      CAPTURE(width);
      const auto net = with_gradients([](const vars& x) {
        const var y = tanh(matmul(x[0], transpose(x[1], {1, 0})) + x[2]);
        return vars{matmul(y, x[3]) * 0.5 + x[4], y};
      });
      check_plans(net, {{n, 19}, {width, 19}, {width}, {width, 21}, {21}}, layout::lanes);
    }
  }
}

TEST_CASE("the batch in the lanes: dense layers of batches that single precision cannot add up") {
  const auto net =
      with_gradients([](const vars& x) { return vars{tanh(matmul(x[0], x[1]) + x[2])}; });
  check_plans(net, {{2100, 3}, {3, 17}, {17}}, layout::lanes);
}

TEST_CASE("the batch in the lanes: sums over samples, over features and over both") {
  // What a lane without a sample holds would be 1 or more behind the exponential function.
  const auto net = with_gradients([](const vars& x) {
    const var y = exp(matmul(x[0], x[1]) - 1.0);
    const var scaled = y / sum(y, {1}, true) + mean(y, {0}, true);
    return vars{scaled, sum(y, {0}), sum(exp(y), {1}), sum(exp(scaled)), max(y, {1})};
  });
  const auto images = with_gradients([](const vars& x) {
    const var y = exp(max_pool(conv2d(x[0], x[1]), 2));
    const var of_channels = sum(exp(y), {0, 2, 3});
    const var gate = sigmoid(mean(y, {2, 3}, true));
    return vars{y * gate + reshape(x[2], {1, 1, 3, 4}), of_channels, sum(exp(y), {0}), sum(y, {1}),
                sum(exp(y), {0, 1})};
  });
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n, 19}, {19, 71}}, layout::lanes);
    check_plans(images, {{n, 3, 8, 10}, {5, 3, 3, 3}, {3, 4}}, layout::lanes);
  }
}

TEST_CASE("the batch in the lanes: images that are another shape of what has no border") {
  const auto net = with_gradients([](const vars& x) {
    const var y = tanh(conv1d(x[0], x[1], 2, 1, 1));
    return vars{conv1d(y, x[2], 1, 2, 2) + sum(x[0]), y};
  });
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n, 3, 9}, {5, 3, 3}, {7, 5, 5}}, layout::lanes);
  }
}

TEST_CASE("the batch in the lanes: numbers of samples that lie along another axis, too") {
  const auto net = with_gradients([](const vars& x) {
    const var of_pairs = outer(x[0], x[1]);  // samples along both axes
    return vars{matmul(of_pairs, x[2]) * 0.5, matmul(of_pairs * of_pairs, x[0])};
  });
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n}, {n}, {n, 5}}, layout::lanes);
  }
}

TEST_CASE("the batch in the lanes: what has kernels of plain tensors only is unpacked for them") {
  const auto net = with_gradients([](const vars& x) {
    const var y = max_pool(conv2d(x[0], x[1]), 2);
    const var norm = batch_norm(y, x[2], x[3]).value;
    const var z = reshape(max_pool(tanh(norm), 3, 1, 1), {-1, 5 * 3 * 4});
    return vars{softmax(matmul(layer_norm(z, x[4], x[4]), x[5]), 1)};
  });
  for (int n : batches) {
    CAPTURE(n);
    check_plans(net, {{n, 3, 8, 10}, {5, 3, 3, 3}, {5}, {5}, {60}, {60, 9}}, layout::lanes);
  }
}

TEST_CASE("the batch in the lanes: the loss of few classes, and updates of the weights") {
  const auto net = [](const vars& x) {
    const var loss = softmax_cross_entropy(matmul(tanh(matmul(x[0], x[1]) + x[2]), x[3]), x[4]);
    vars all{loss};
    const vars weights{x[1], x[2], x[3]};
    const vars d = gradients(loss, weights);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const var momentum = weights[k] * 0.9 + d[k];
      all.push_back(momentum);
      all.push_back(weights[k] - momentum * 0.1);
    }
    return all;
  };
  for (int n : batches) {
    for (const dtype element : {dtype::f32, dtype::f64}) {
      CAPTURE(n);
      CAPTURE(element);
      auto in = made_up({{n, 45}, {45, 25}, {25}, {25, 7}}, element, false);
      valued_tensor labels{{dtype::i32, {n}}, {}};
      for (int i = 0; i < n; ++i) labels.values.push_back(i * 5 % 7);
      in.push_back(std::move(labels));
      check_plan(net, in, element, layout::lanes);
    }
  }
}
