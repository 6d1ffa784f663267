// kmeans: the sum of squared distances of points from their nearest centroids, and the step of
// Newton's method for the centroids.
#include <cella/ops/functions.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// Points in one turn of the loop: a divisor of their number for which the distances from all
/// centroids stay in the cache, and which fills vectors if there is one.
constexpr int block_of(int points, int centroids) {
  int any = 1;
  int whole_vectors = 0;
  for (int b = 1; b * centroids <= 20000 && b <= points; ++b) {
    if (points % b) continue;
    any = b;
    if (b % 8 == 0) whole_vectors = b;
  }
  return whole_vectors ? whole_vectors : any;
}

/// The points in two orders: row by row [n,axes], and in blocks whose points are columns with a one
/// below them [blocks,axes+1,block], so that those of a block stand side by side.
struct cloud {
  var rows, blocks;
};

/// Which centroid is the nearest to each point [n]: the c for which |c|^2 - 2 c p is the smallest,
/// the product of (-2 c, |c|^2) and (p, 1). `factors` are -2 c.
constexpr var nearest(var factors, var squares, var blocks) {
  const var with_squares = concat({factors, expand_dims(squares, 1)}, 1);
  const auto nearest_of = [&](var p) { return argmin(matmul(with_squares, p), 0); };
  return reshape(map(nearest_of, blocks), {blocks.extent(0) * blocks.extent(2)});
}

/// The cost without the squares of the points, on which nothing depends: |c|^2 - 2 c p of the
/// nearest c, summed over all p. `squares` [k] are those of the centroids; the derivative by one of
/// them is the number of points that are nearest to it. Which centroid is the nearest changes only
/// where two are equally near, so that it has no derivative.
constexpr var relative_cost(var centroids, var squares, const cloud& points) {
  const var factors = -2 * centroids;
  const var at = nearest(factors, squares, points.blocks);
  return sum(gather(squares, at)) + sum(points.rows * gather(factors, at));
}
constexpr var squares_of(var centroids) { return sum(square(centroids), {1}); }

struct cost_cell {
  constexpr var operator()(var centroids, var rows, var blocks) const {
    return relative_cost(centroids, squares_of(centroids), {rows, blocks}) + sum(square(rows));
  }
};

/// The gradient divided by the diagonal of the Hessian, all of it that is not zero: 2 for each
/// point that is nearest.
struct step_cell {
  constexpr var operator()(var centroids, var rows, var blocks) const {
    const auto of = [&](var c, var squares) { return relative_cost(c, squares, {rows, blocks}); };
    const auto cost = value_and_grad<2>(of)(centroids, squares_of(centroids));
    const var by_products = cost.gradient[0];
    const var nearest = expand_dims(cost.gradient[1], 1);
    return (by_products + 2 * centroids * nearest) / (2 * nearest);
  }
};

struct clusters {
  explicit clusters(const json& j)
      : points(flat(j.at("points"))),
        centroids(flat(j.at("centroids"))),
        n(int(j.at("points").size())),
        k(int(j.at("centroids").size())) {}
  int axes() const { return int(points.size()) / n; }
  numbers points, centroids;
  int n, k;
};

template <class Cell, int K, int N, int D>
class evaluate {
 public:
  /// Puts the points into blocks, once.
  explicit evaluate(const clusters& c) : c_(c) {
    for (std::size_t i = 0; i < std::size_t(N); ++i) {
      double* const to = &blocks_[i / block * block * (D + 1) + i % block];
      for (std::size_t d = 0; d < D; ++d) to[d * block] = c.points[i * D + d];
    }
  }
  void operator()() {
    run_(c_.centroids, c_.points, blocks_);
    const auto y = run_.result();
    result_.assign(y.begin(), y.end());
  }
  json result() const { return result_.size() == 1 ? json(result_[0]) : rows_of(result_, D); }

 private:
  static constexpr int block = block_of(N, K);
  const clusters& c_;
  numbers blocks_ = numbers(std::size_t(N * (D + 1)), 1.0);
  numbers result_;
  compiled<Cell, reals<K, D>, reals<N, D>, reals<N / block, D + 1, block>> run_;
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const clusters c(e.input);
    e.with_sizes<kmeans_sizes>(std::array{c.k, c.n, c.axes()}, [&]<int K, int N, int D>() {
      e.function<evaluate<cost_cell, K, N, D>>("cost", c);
      e.function<evaluate<step_cell, K, N, D>>("dir", c);
    });
  });
}
