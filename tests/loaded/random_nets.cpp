// Random nets of operations of every kind, on images, signals, matrices and vectors whose extents
// are often the same: plans that are made at run time agree with the interpreter in both element
// types, whatever format they choose.
#include <doctest/doctest.h>

#include <cella/graph/random.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/diagonal.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/image.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/pooling_nd.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

#include "support/compare.hpp"
#include "support/planned.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// A net that is the same whenever it is made from a seed. Its values stay between about -10 and 10
/// and have few elements; half of the nets yield gradients, too, if they may.
class random_net {
 public:
  random_net(std::uint64_t seed, bool gradients) : seed_(seed), gradients_(gradients) {
    generator random(seed, 1);
    const auto of = [&](std::initializer_list<int> l) { return l.begin()[random() % l.size()]; };
    const int samples = of({1, 2, 3, 4, 5, 8, 9, 16}), height = of({1, 2, 3, 5, 6, 8}),
              width = of({2, 3, 4, 7, 8}), features = of({1, 3, 4, 8, 10, 17}),
              filters = of({1, 3, 4, 8, 9, 16});
    channels_ = of({1, 2, 3, 4, 8, 16});
    shapes_ = {{samples, channels_, height, width},
               {samples, features},
               {samples},
               {samples, channels_, width},
               {features, filters},
               {features, features},
               {channels_, filters},
               {channels_},
               {filters, channels_, 3, 3},
               {filters, channels_, 1, 1},
               {filters, channels_, 3}};
  }

  const std::vector<shape>& shapes() const { return shapes_; }
  vars operator()(const vars& x) const {
    return growth{generator(seed_, 2), x, x, channels_}.results(gradients_);
  }

 private:
  /// What norms divide by, so that rounding does not grow.
  static constexpr double variance_at_least = 0.1;

  struct growth {
    generator random;
    const vars& x;
    vars values;
    int channels;

    vars results(bool with_gradients) {
      const std::size_t wanted = values.size() + 4 + below(9);
      add(x[0]);
      for (int i = 0; i < 400 && values.size() < wanted; ++i) add(any());
      vars all{values.back()};
      if (below(2)) all.push_back(values[x.size() + below(values.size() - x.size())]);
      if (below(2) && with_gradients) {
        const var loss = sum(square(all[0]));
        for (const var& d : gradients(loss, x)) all.push_back(d);
      }
      return all;
    }
    std::size_t below(std::size_t n) { return std::size_t(random() % n); }
    /// A value, more often one of the last.
    var any() {
      const std::size_t n = values.size();
      return values[below(3) ? n - 1 - below(std::min<std::size_t>(3, n)) : below(n)];
    }
    void push(var y) {
      if (y.type().size() > 0 && y.type().size() <= 6000) values.push_back(y);
    }
    /// Something that is computed from `a`, if what was drawn can be.
    void add(var a) {
      const int rank = a.type().rank();
      switch (below(12)) {
        case 0:
          return push(below(2) ? tanh(a) : below(2) ? relu(a) : a * 0.5 + 0.25);
        case 1:
          return add_pointwise(a, any());
        case 2:
          return add_product(a);
        case 3:
          if (rank == 3 && a.extent(1) == channels)
            return push(tanh(conv1d(a, x[10], 1 + int(below(2)), 1, 1)));
          [[fallthrough]];
        case 4:
          return rank == 4 ? add_of_image(a) : void();
        case 5:
          return rank ? add_along(a, int(below(std::size_t(rank)))) : void();
        case 6:
          return rank ? add_joined(a, int(below(std::size_t(rank)))) : void();
        case 7:
          return add_moved(a);
        case 8:
          if (rank == 4 && a.extent(1) == channels)
            return push(batch_norm(a, x[7], x[7], variance_at_least).value);
          return rank ? push(layer_norm(a, a, a, {-1}, variance_at_least)) : void();
        default:
          return rank ? add_rare(a, int(below(std::size_t(rank)))) : void();
      }
    }
    void add_pointwise(var a, var b) {
      const int m = a.type().rank(), n = b.type().rank();
      for (int d = 1; d <= std::min(m, n); ++d) {
        const int i = a.extent(m - d), j = b.extent(n - d);
        if (i != j && i != 1 && j != 1) return;
      }
      push(below(2) ? a + b : below(2) ? a - b : tanh(a * b));
    }
    void add_product(var a) {
      const int rank = a.type().rank();
      for (const var& b : {any(), any(), x[4], x[5], x[6]}) {
        const int other = b.type().rank();
        if (rank == 1 && other == 1 && below(2)) return push(outer(a, b));
        const bool vector = other == 1 && rank >= 1 && rank <= 3;
        if ((vector || (rank == 2 && other == 2)) && a.extent(rank - 1) == b.extent(0))
          return push(tanh(matmul(a, b)));
      }
    }
    void add_of_image(var a) {
      const int h = a.extent(2), w = a.extent(3);
      if (below(3) == 0)
        return push(a + reshape(mean(a, {2, 3}), {a.extent(0), a.extent(1), 1, 1}));
      if (a.extent(1) == channels && below(2)) {
        const window o{.stride = {1 + int(below(2)), 1}, .before = {1, 1}, .after = {1, 1}};
        return push(tanh(below(3) ? conv2d(a, x[8], o) : conv2d(a, x[9])));
      }
      if (h >= 2 && w >= 2) push(below(3) ? max_pool(a, 2) : average_pool(a, 2));
    }
    void add_along(var a, int axis) {
      switch (below(5)) {
        case 0:
          return push(mean(a, {axis}));
        case 1:
          return push(max(a, {axis}));
        case 2:
          return push(tanh(sum(a, {axis}, true)));
        case 3:
          return push(softmax(a, axis));
        default:
          return push(cumsum(tanh(a), axis));
      }
    }
    void add_joined(var a, int axis) {
      const int extent = a.extent(axis);
      if (below(2))
        return extent > 2 ? push(slice(a, axis, int(below(2)), extent - int(below(2)))) : void();
      const var b = below(2) ? a : any();
      if (b.type().rank() != a.type().rank()) return;
      for (int d = 0; d < a.type().rank(); ++d) {
        if (d != axis && b.extent(d) != a.extent(d)) return;
      }
      push(concat({a, b}, axis));
    }
    void add_rare(var a, int axis) {
      const bool image = a.type().rank() == 4;
      switch (below(16)) {
        case 0:
          return push(sort(a, axis, below(2)));
        case 1:
          return push(roll(a, 1, axis));
        case 2:
          return push(repeat(a, 2, axis));
        case 3:
          return push(reverse(a, axis));
        case 4:
          return a.extent(0) == x[2].extent(0) ? push(gather(a, argsort(x[2]))) : void();
        case 5:
          return push(logsumexp(a, {axis}));
        case 6:
          return push(tanh(prod(a, {axis})));
        case 7:
          return push(cummax(a, axis));
        case 8:
          return a.extent(axis) > 1 ? push(diff(a, axis)) : void();
        case 9:
          return a.type().rank() > 1 ? push(tril(a)) : void();
        case 10: {
          std::vector<int> border(std::size_t(a.type().rank()), 0), none = border;
          border[std::size_t(axis)] = 1;
          return push(pad(a, border, below(2) ? none : border, 0.5));
        }
        case 11:
          return push(variance(a, {axis}));
        case 12:
          return push(move_axis(a, axis, 0));
        case 13:
          return image ? push(resize_nearest(a, a.extent(2) * 2, a.extent(3))) : void();
        case 14:
          return image ? push(adaptive_average_pool(a, 2, 2)) : void();
        default:
          if (image && a.extent(1) == x[8].extent(0))
            push(tanh(conv2d_transpose(a, x[8], {.before = {1, 1}, .after = {1, 1}})));
      }
    }
    void add_moved(var a) {
      const int rank = a.type().rank();
      if (below(4) == 0) return push(reshape(a, {-1}));
      if (rank > 1 && below(3) == 0) return push(reshape(a, {a.extent(0), -1}));
      if (rank == 2) return push(transpose(a, {1, 0}));
      if (rank == 3 && below(2))
        return push(reshape(a, {a.extent(0), a.extent(1), 1, a.extent(2)}));
      if (rank == 3) return push(transpose(a, {0, 2, 1}));
      if (rank == 4) push(below(2) ? transpose(a, {0, 2, 3, 1}) : transpose(a, {1, 0, 2, 3}));
    }
  };

  std::uint64_t seed_;
  bool gradients_;
  int channels_{};
  std::vector<shape> shapes_;
};

void check_net(std::uint64_t seed, dtype element) {
  CAPTURE(seed);
  CAPTURE(element);
  // Where two numbers are nearly the same, rounding in single precision decides which one a
  // gradient goes to.
  const random_net net(seed, element == dtype::f64);
  std::vector<valued_tensor> in;
  std::vector<tensor_type> types;
  for (const shape& s : net.shapes()) {
    types.push_back({element, s});
    in.push_back({types.back(), pseudo_random(s.size(), seed * 31 + types.size())});
    if (element == dtype::f32) {
      for (double& v : in.back().values) v = float(v);
    }
  }
  const traced_function traced(net, types);
  const auto expected = traced(in);
  REQUIRE(loaded_program::refusal(optimize(traced.b.g), element).view() == "");
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    const auto found = run_planned(traced.b.g, in, threads, element);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CAPTURE(k);
      const double limit = element == dtype::f32 ? 1e-4 : 1e-9;
      CHECK(relative_difference(found[k].values, expected[k].values, 1e-2) < limit);
    }
  }
}

}  // namespace

TEST_CASE("random nets: plans made at run time agree with the interpreter") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    check_net(seed, dtype::f64);
    check_net(seed, dtype::f32);
  }
}
