#include <doctest/doctest.h>

#include <cella/nn/functions.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/softmax.hpp>
#include <vector>

#include "loaded/formats.hpp"
#include "support/counted_malloc.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Whatever the processor's vectors are.
void check(const vars_function& f, const std::vector<shape>& shapes, layout wanted,
           bool whole = false) {
  check_plans(out_of_lanes(f), shapes, wanted, whole);
}

// Blocks of 16 channels in f32 and of 8 in f64, or less: 16 and 32 are whole blocks of each.
constexpr int batches[] = {1, 3, 33};

}  // namespace

TEST_CASE("images in blocks: convolutions of each form, what follows them, and their gradients") {
  const auto net = with_gradients([](const vars& x) {
    var y = tanh(biased(conv2d(x[0], x[1], walk(1, 1)), x[2]));       // a stem
    y = y + tanh(biased(conv2d(y, x[3], walk(1, 1)), x[4]));          // maybe Winograd's
    y = biased(conv2d(y, x[5], walk(2, 2)), x[6]) * 0.5;              // strided
    return vars{tanh(conv2d(y, x[7])), sum(y, {2, 3}), max(y, {0})};  // of pixels
  });
  for (int n : batches) {
    CAPTURE(n);
    check(net,
          {{n, 3, 9, 7},
           {32, 3, 3, 3},
           {32},
           {32, 32, 3, 3},
           {32},
           {16, 32, 5, 5},
           {16},
           {32, 16, 1, 1}},
          layout::blocked);
  }
}

TEST_CASE("images in blocks: activations behind convolutions, finished in registers or not") {
  // Of a convolution, a bias, and an image.
  const std::vector<vars_function> ends{
      [](const vars& x) { return vars{relu6(x[0] + x[1])}; },
      [](const vars& x) { return vars{relu(x[0] + x[1]) + x[2]}; },
      [](const vars& x) { return vars{relu(x[0] + x[1] + x[2])}; },
      [](const vars& x) { return vars{relu(x[0] + x[2] + x[1])}; },
      [](const vars& x) { return vars{x[2] + (x[0] + x[1])}; },
      [](const vars& x) { return vars{x[0] + x[2]}; },
      [](const vars& x) { return vars{relu(x[0])}; },
      [](const vars& x) { return vars{select(x[0] >= 0.5, 0.5, x[0] + x[1])}; },
      [](const vars& x) { return vars{select(x[0] >= 0.5, 0.25, relu(x[0]))}; },
      [](const vars& x) { return vars{select(x[0] >= -0.5, -0.5, relu(x[0]))}; },
      [](const vars& x) { return vars{select(x[0] + x[1] >= 0.5, 0.5, relu(x[0]))}; },
      [](const vars& x) {
        return vars{relu6(x[0]) * 0.5, relu(x[0])};
      },
      [](const vars& x) { return vars{leaky_relu(x[0] + x[1])}; }};
  for (std::size_t k = 0; k < ends.size(); ++k) {
    CAPTURE(k);
    for (const int kernel : {1, 3}) {
      CAPTURE(kernel);
      const auto net = [&](const vars& x) {
        const var y = conv2d(x[0], x[1], walk(1, kernel / 2));
        return ends[k](vars{y, reshape(x[2], {1, 32, 1, 1}), conv2d(x[0], x[3])});
      };
      check(net, {{1, 32, 9, 9}, {32, 32, kernel, kernel}, {32}, {32, 32, 1, 1}}, layout::blocked);
    }
  }
}

TEST_CASE("images in blocks: channels that are no whole blocks are convolved plain beside them") {
  const auto net = with_gradients([](const vars& x) {
    var y = tanh(conv2d(x[0], x[1], walk(1, 1)));
    y = tanh(conv2d(y, x[2], walk(1, 1)));
    y = tanh(biased(conv2d(y, x[3], walk(1, 1)), x[4]));  // 21 channels
    return vars{tanh(conv2d(y, x[5]))};
  });
  for (int n : batches) {
    CAPTURE(n);
    check(net,
          {{n, 32, 8, 8}, {32, 32, 3, 3}, {32, 32, 3, 3}, {21, 32, 3, 3}, {21}, {16, 21, 1, 1}},
          layout::blocked);
    // Rows that hold a whole tile: the last convolution reads the plain image as it is.
    check(net,
          {{n, 32, 3, 17}, {32, 32, 3, 3}, {32, 32, 3, 3}, {21, 32, 3, 3}, {21}, {16, 21, 1, 1}},
          layout::blocked);
  }
}

TEST_CASE("images in blocks: batch norm, and values that are repeated along pixels or channels") {
  const auto net = with_gradients([](const vars& x) {
    var y = conv2d(x[0], x[1], walk(1, 1));
    const auto norm = batch_norm(y, x[2], x[3]);
    y = tanh(norm.value) * reshape(x[4], {1, 1, 6, 5});
    const var gate = sigmoid(mean(y, {2, 3}, true));  // for each sample and channel
    return vars{conv2d(y * gate + y, x[5]), norm.mean, norm.variance};
  });
  // Few blocks, whose sums are taken in slices, and many.
  for (int c : {32, 128}) {
    for (int n : batches) {
      CAPTURE(c);
      CAPTURE(n);
      check(net, {{n, 16, 6, 5}, {c, 16, 3, 3}, {c}, {c}, {6, 5}, {16, c, 1, 1}}, layout::blocked);
    }
  }
}

TEST_CASE("images in blocks: sums along single axes") {
  const auto net = with_gradients([](const vars& x) {
    const var y = tanh(conv2d(x[0], x[1], walk(1, 1)));
    return vars{tanh(sum(y, {3})) * 0.5, sum(y, {2}), sum(y, {1}), sum(y, {0}), sum(y, {0, 3})};
  });
  for (int n : batches) {
    CAPTURE(n);
    check(net, {{n, 16, 5, 4}, {32, 16, 3, 3}}, layout::blocked);
  }
}

TEST_CASE(
    "images in blocks: residuals and slopes of relu, of neighbours and of pixels that lie apart") {
  const auto net = with_gradients([](const vars& x) {
    const var y = relu(conv2d(x[0], x[1]));
    const var z = relu(conv2d(y, x[2], walk(1, 1)) + y);
    return vars{relu(conv2d(z, x[3], walk(2, 1)) + conv2d(z, x[4], walk(2, 0)))};
  });
  for (const auto& [rows, columns] : {std::array{7, 7}, std::array{14, 14}, std::array{3, 28}}) {
    CAPTURE(rows);
    check(net,
          {{2, 16, rows, columns}, {32, 16, 1, 1}, {32, 32, 3, 3}, {16, 32, 3, 3}, {16, 32, 1, 1}},
          layout::blocked);
  }
}

TEST_CASE("images in blocks: pooling and its gradient, of whole numbers with many equal ones") {
  const auto net = [](const vars& x) {
    const var y = relu(conv2d(x[0], x[1]));
    const var z = conv2d(max_pool(y, 3, 2, 1), x[2]);
    vars all{z};
    for (const var& d : gradients(sum(z * x[3]), vars{x[0], x[1], x[2]})) all.push_back(d);
    return all;
  };
  for (int n : batches) {
    CAPTURE(n);
    check(net, {{n, 16, 7, 9}, {32, 16, 1, 1}, {16, 32, 1, 1}, {n, 16, 4, 5}}, layout::blocked,
          true);
  }
}

TEST_CASE("images in blocks: one filter for each channel") {
  const auto net = with_gradients([](const vars& x) {
    const var y = tanh(conv2d(x[0], x[1], walk(1, 1)));
    return vars{conv2d(tanh(conv2d(y, x[2], walk(2, 1, 32))), x[3])};
  });
  for (int n : batches) {
    CAPTURE(n);
    check(net, {{n, 16, 9, 8}, {32, 16, 3, 3}, {32, 1, 3, 3}, {16, 32, 1, 1}}, layout::blocked);
  }
}

TEST_CASE("images without whole blocks of channels stay plain") {
  const auto net = with_gradients(
      [](const vars& x) { return vars{conv2d(tanh(conv2d(x[0], x[1], walk(1, 1))), x[2])}; });
  check(net, {{3, 3, 6, 6}, {21, 3, 3, 3}, {3, 21, 1, 1}}, layout::plain);
}

TEST_CASE("weights are packed once, and again when they have changed") {
  // Convolutions of each form and a product, whose weights are parameters.
  const std::vector<shape> shapes{{16, 3, 4, 4}, {32, 3, 3, 3},  {32, 32, 3, 3},
                                  {32, 1, 3, 3}, {32, 32, 1, 1}, {512, 64}};
  auto in = made_up(shapes, dtype::f32, false);
  const auto net = [](const vars& x) {
    const var y = tanh(conv2d(tanh(conv2d(x[0], x[1], walk(1, 1))), x[2], walk(1, 1)));
    const var z = tanh(conv2d(tanh(conv2d(y, x[3], walk(1, 1, 32))), x[4]));
    return matmul(reshape(z, {16, 512}), x[5]);
  };
  builder b;
  vars x;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto role = i == 0 ? input_role::argument : input_role::parameter;
    x.push_back({&b, b.input(in[i].type, role, "x")});
  }
  // Beside a part of a tensor the batch stays out of the lanes.
  const ids outputs{net(x).id, slice(x[0], 1, 0, 1).id};
  b.g.outputs.resize(2);
  b.end(outputs);
  bindings memory;
  std::vector<tensor_ref> at;
  loaded_program run(optimize(b.g), dtype::f32);
  for (std::size_t i = 0; i < in.size(); ++i) {
    at.push_back(memory.store(in[i]));
    run.bind(int(i), at.back().data);
  }
  const auto check_result = [&] {
    run();
    CHECK(relative_difference(read(run.result(0)).values, run_graph(b.g, in)[0].values) < 1e-4);
  };
  check_result();
  for (double& v : in[0].values) v = -v;  // the image is read anew each time
  run.bind(0, memory.store(in[0]).data);
  check_result();
  const reals before = read(run.result(0)).values;
  for (std::size_t i = 1; i < in.size(); ++i) {
    for (std::size_t k = 0; k < in[i].values.size(); ++k) {
      in[i].values[k] *= 1.25;
      write_element(at[i], std::int64_t(k), in[i].values[k]);
    }
  }
  run();
  CHECK(read(run.result(0)).values == before);
  run.prepare_again();
  check_result();
  for (std::size_t i = 1; i < in.size(); ++i) {
    for (double& v : in[i].values) v *= -0.5;
    run.bind(int(i), memory.store(in[i]).data);
    check_result();
  }
}

TEST_CASE("a planned step allocates nothing") {
  const auto check_step = [](const vars_function& net, const std::vector<shape>& shapes) {
    const auto in = made_up(shapes, dtype::f32, false);
    std::vector<tensor_type> types;
    for (const valued_tensor& t : in) types.push_back(t.type);
    const traced_function traced(net, types);
    thread_pool pool(2);
    bindings memory;
    loaded_program run(optimize(traced.b.g), dtype::f32, &pool);
    for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), memory.store(in[i]).data);
    run();
    const long before = allocations;
    for (int i = 0; i < 10; ++i) run();
    CHECK(allocations == before);
  };
  const auto blocks = with_gradients([](const vars& x) {
    const var y = batch_norm(conv2d(x[0], x[1], walk(1, 1)), x[2], x[3]).value;
    const var z = reshape(max_pool(tanh(conv2d(y, x[4], walk(1, 1))), 2), {3, 512});
    return vars{softmax(matmul(z, x[5])) * matmul(layer_norm(z, x[6], x[6]), x[5])};
  });
  check_step(blocks, {{3, 3, 8, 8}, {32, 3, 3, 3}, {32}, {32}, {32, 32, 3, 3}, {512, 10}, {512}});
  const auto lanes = with_gradients([](const vars& x) {
    const var y = reshape(max_pool(tanh(conv2d(x[0], x[1])), 2), {-1, 45});
    return vars{softmax(matmul(y, x[2]))};
  });
  check_step(lanes, {{33, 3, 8, 8}, {5, 3, 3, 3}, {45, 9}});
  const auto loop = with_gradients([](const vars& x) {
    return vars{lstm(x[0], {x[1], x[2], x[3], x[4]}).hidden};
  });
  check_step(loop, {{33, 5, 3}, {64, 3}, {64, 16}, {64}, {64}});
#if defined(CELLA_COUNTS_MALLOC)
  // The counter counts: operator new ends in malloc.
  const long before = allocations;
  const auto p = std::make_unique<int>(1);
  CHECK(allocations > before);
#endif
}
