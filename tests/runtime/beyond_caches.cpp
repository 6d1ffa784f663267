// Results that no cache holds are stored past the caches: programs of many rows or samples agree
// with those of few, whose results are stored as usual.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/host/threads.hpp>
#include <cella/nn/layers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <vector>

using namespace cella;

namespace {

/// Whether a step of this kind stores past the caches.
template <class P>
constexpr bool passes_caches(step_kind kind) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return (... ||
            (P::plan.steps[I].kind == kind && cpu::program_step<P, int(I)>::passes_caches()));
  }
  (std::make_index_sequence<P::plan.steps.size()>{});
}

/// Neither norm nor softmax has its batch in the lanes.
struct normed {
  nn::layer_norm<1024> norm{};
  constexpr var operator()(var x) const { return sum(softmax(norm(x)) * x, {1}); }
};
struct logarithms {
  constexpr var operator()(var x) const { return sum(log_softmax(2 * x) * x, {1}); }
};
struct pooled {
  nn::conv2d<16, 64, 1> conv{};
  constexpr var operator()(var x) const {
    const auto loss = [this](var y) { return sum(square(max_pool(relu(conv(y)), 3, 2, 1))); };
    return sum(square(grad(loss)(x)), {1, 2, 3});
  }
};
/// The result for `Many` rows or samples, the first `Few` of them repeated, beside that for `Few`.
template <class Cell, int Many, int Few, int... Extents>
void check(std::initializer_list<step_kind> kinds) {
  using large = program<Cell, true, dtype::f32, tensor<dtype::f32, Many, Extents...>>;
  using small = program<Cell, true, dtype::f32, tensor<dtype::f32, Few, Extents...>>;
  for (const step_kind kind : kinds) {
    CAPTURE(name(kind));
    CHECK(passes_caches<large>(kind));
    CHECK(!passes_caches<small>(kind));
  }
  Cell cell{};
  parameter_store store(cell, 3);
  thread_pool pool(2);
  executable<large> alone(store), shared(store, &pool);
  executable<small> expected(store);
  constexpr std::size_t size = (std::size_t{1} * ... * Extents);
  std::vector<float> x(Many * size);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i < Few * size ? uniform<float>(4, i) * 2 - 1 : x[i - Few * size];
  alone(x);
  shared(x);
  expected(std::span(x).first(Few * size));
  const auto y = alone.template result<0>(), z = shared.template result<0>();
  const auto first = expected.template result<0>();
  CHECK(std::equal(y.begin(), y.end(), z.begin()));
  float worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float error = std::abs(y[i] - first[i % Few]) / (1 + std::abs(first[i % Few]));
    worst = error <= worst ? worst : error;
  }
  CHECK(worst < 1e-4f);
  CHECK(first[0] != 0);
}

constexpr int vocabulary = 32768, width = 272;
struct looked_up {
  constexpr var operator()(var table, var text) const {
    const auto loss = [text](var t) { return sum(square(embedding(text, t))); };
    return sum(grad(loss)(table) * table, {1});
  }
};

}  // namespace

TEST_CASE("layer norm and softmax") {
  check<normed, 8192, 16, 1024>({step_kind::rows, step_kind::softmax});
  check<logarithms, 8192, 16, 1024>({step_kind::softmax});
}
TEST_CASE("the gradient of max pooling") {
  // Short vectors are filled by the batch: then its images lie in the lanes, not in blocks.
  constexpr bool in_blocks = cpu::vec<float>::size > 8;
  check<pooled, 8, 1, 16, 128, 128>(
      {in_blocks ? step_kind::max_unpool : step_kind::elementwise, step_kind::elementwise});
}
TEST_CASE("sums of rows by word") {
  using P = program<looked_up, true, dtype::f32, tensor<dtype::f32, vocabulary, width>,
                    tensor<dtype::i32, 50>>;
  CHECK(passes_caches<P>(step_kind::scatter));
  looked_up cell;
  parameter_store store(cell, 3);
  thread_pool pool(2);
  executable<P> run(store, &pool);
  std::vector<float> table(std::size_t{vocabulary} * width);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = float(i % 17) - 8;
  std::vector<std::int32_t> text;
  for (int i = 0; i < 50; ++i) text.push_back(i * i % 40 * 800);
  run(table, text);
  // Twice the table's row for each time that its word occurs; integers, so the sums are exact.
  const auto y = run.result<0>();
  for (int w = 0; w < vocabulary; ++w) {
    float expected = 0;
    const auto times = float(std::count(text.begin(), text.end(), w));
    for (int j = 0; j < width && times > 0; ++j) {
      const float x = table[std::size_t(w) * width + std::size_t(j)];
      expected += 2 * x * x * times;
    }
    if (y[std::size_t(w)] != expected) FAIL("word " << w);
  }
}
