#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/nn/functions.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/strided.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

#include "support/compare.hpp"
#include "support/counted_malloc.hpp"
#include "support/planned.hpp"

namespace cella::test {

namespace {

layout format_of(const graph& g, dtype element) {
  return cpu::loaded_planning::choose_formats(g, {.element = element},
                                              cpu::loaded_planning::machine)
      .program;
}
/// Inputs of these shapes: numbers from -1/4 to 1/4, or whole ones from -2 to 2.
std::vector<tensor> made_up(const std::vector<shape>& shapes, dtype element, bool whole) {
  std::vector<tensor> all;
  std::uint64_t i = 0;
  for (const shape& s : shapes) {
    tensor t{{element, s}, {}};
    for (std::int64_t k = 0; k < s.size(); ++k, ++i) {
      const float u = uniform<float>(7, i);
      t.values.push_back(whole ? double(int(u * 5) - 2) : double(u - 0.5f) / 2);
    }
    all.push_back(std::move(t));
  }
  return all;
}
/// Holds the plan of `f` against the interpreter, in both types.
void check(const vars_function& f, const std::vector<shape>& shapes, layout wanted,
           bool whole = false) {
  for (const dtype element : {dtype::f32, dtype::f64}) {
    CAPTURE(element);
    const auto in = made_up(shapes, element, whole);
    std::vector<tensor_type> types;
    for (const tensor& t : in) types.push_back(t.type);
    const traced_graph traced(f, types);
    const graph g = optimize(traced.b.g);
    CHECK(format_of(g, element) == wanted);
    bindings memory;
    loaded_program run(g, element);
    for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), memory.store(in[i]).data);
    run();
    run();
    const auto expected = traced(in);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CAPTURE(k);
      const double limit = element == dtype::f32 ? 1e-4 : 1e-12;
      CHECK(relative_difference(read(run.result(int(k))).values, expected[k].values, 1e-3) < limit);
    }
    if (element != dtype::f64) continue;
    const auto shared = run_planned(traced.b.g, in, 3);
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(relative_difference(shared[k].values, expected[k].values, 1e-3) < 1e-12);
  }
}
/// `f` and the gradients of the sum of its squares by all inputs.
vars_function with_gradients(const vars_function& f) {
  return [f](const vars& x) {
    vars all = f(x);
    const var loss = sum(square(all[0]));
    for (const var& d : gradients(loss, x)) all.push_back(d);
    return all;
  };
}
var biased(var x, var bias) { return x + reshape(bias, {bias.extent(0), 1, 1}); }
constexpr window walk(int stride, int padding, int groups = 1) {
  return {{stride, stride}, {padding, padding}, {padding, padding}, {1, 1}, groups};
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
  for (int n : batches) {
    CAPTURE(n);
    check(net, {{n, 16, 6, 5}, {32, 16, 3, 3}, {32}, {32}, {6, 5}, {16, 32, 1, 1}},
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
  const ids outputs{net(x).id};
  b.g.outputs.push_back({});
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
  const auto net = with_gradients([](const vars& x) {
    const var y = batch_norm(conv2d(x[0], x[1], walk(1, 1)), x[2], x[3]).value;
    const var z = reshape(max_pool(tanh(conv2d(y, x[4], walk(1, 1))), 2), {3, 512});
    return vars{softmax(matmul(z, x[5])) * matmul(layer_norm(z, x[6], x[6]), x[5])};
  });
  const auto in =
      made_up({{3, 3, 8, 8}, {32, 3, 3, 3}, {32}, {32}, {32, 32, 3, 3}, {512, 10}, {512}},
              dtype::f32, false);
  std::vector<tensor_type> types;
  for (const tensor& t : in) types.push_back(t.type);
  const traced_graph traced(net, types);
  thread_pool pool(2);
  bindings memory;
  loaded_program run(optimize(traced.b.g), dtype::f32, &pool);
  for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), memory.store(in[i]).data);
  run();
  const long before = allocations;
  for (int i = 0; i < 10; ++i) run();
  CHECK(allocations == before);
#if defined(CELLA_COUNTS_MALLOC)
  // The counter counts: operator new ends in malloc.
  const auto p = std::make_unique<int>(1);
  CHECK(allocations > before);
#endif
}

}  // namespace cella::test
