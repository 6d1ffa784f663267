// The search for the cheapest assignment, held against trying everything.
#include <doctest/doctest.h>

#include <cella/ops/array.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/parallel/search.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <random>

using namespace cella;
using namespace cella::parallel;

namespace {

/// A graph of products, sums, transposes and elementwise functions of square matrices, in which
/// any node may read any before it.
graph random_graph(std::mt19937& random, int nodes) {
  builder b;
  list<var> all;
  const int extents[] = {64, 96, 512};
  const int n = extents[random() % 3];
  for (int i = 0; i < 2; ++i)
    all.push_back(
        {&b, b.input({dtype::f32, {n, n}}, i ? input_role::parameter : input_role::argument, "x")});
  while (int(all.size()) < nodes) {
    const auto pick = [&] {
      return all[all.size() - 1 - random() % std::min<std::size_t>(all.size(), 3)];
    };
    const var x = pick(), y = pick();
    switch (random() % 5) {
      case 0:
      case 1:
        all.push_back(matmul(x, y));
        break;
      case 2:
        all.push_back(x + y);
        break;
      case 3:
        all.push_back(softmax(x, 1));
        break;
      default:
        all.push_back(transpose(x));
    }
  }
  // The parameter gets a new value, and the sum of the last is the result.
  const node_id out[] = {sum(all.back()).id, (all[1] - all.back()).id};
  b.g.outputs.push_back({});
  b.g.outputs.push_back({1, {}});
  b.end({out, 2});
  return dce(std::move(b.g));
}

/// The cheapest decision of a network and its memory, by trying all.
struct tried {
  double least = 1e300;
  double least_fitting = 1e300;
  std::int64_t count = 0;
};
tried try_all(const assignment_search& s, double limit) {
  const cost_network& n = s.network();
  list<int> d(n.alone.size(), 0);
  tried t;
  for (;;) {
    const double c = n.cost(d);
    t.least = std::min(t.least, c);
    if (s.bytes_of(d) <= limit) t.least_fitting = std::min(t.least_fitting, c);
    ++t.count;
    std::size_t v = 0;
    while (v < d.size() && ++d[v] == n.possibilities(int(v))) d[v++] = 0;
    if (v == d.size()) return t;
  }
}

}  // namespace

TEST_CASE("the search finds the least cost of 1000 random graphs") {
  std::mt19937 random(3);
  std::int64_t tries = 0;
  int optimal_with_limit = 0, limited = 0, over = 0;
  double worst = 1;
  for (int i = 0; i < 1000; ++i) {
    const graph g = random_graph(random, 4 + int(random() % 2));
    device_mesh m = parse_mesh(i % 2 ? "a=2" : "a=4");
    m.axes[0].latency = i % 3 ? 1e-6 : 1e-4;
    m.each.flops_per_second = i % 5 ? 1e10 : 1e12;
    const search_space space;
    const assignment_search s(g, m, space);
    const auto found = assignment_search(g, m, space).run({.memory_bytes = 1e15});
    CHECK(found.forced == 0);
    // Half of what the fastest takes.
    const double limit = 0.6 * found.bytes;
    const tried all = try_all(s, limit);
    tries += all.count;
    CHECK(found.seconds == doctest::Approx(all.least).epsilon(1e-9));
    const auto fitting = assignment_search(g, m, space).run({.memory_bytes = limit});
    CHECK(fitting.fits == (all.least_fitting < 1e299));
    if (!fitting.fits) continue;
    CHECK(fitting.bytes <= limit);
    ++limited;
    const double ratio = fitting.seconds / all.least_fitting;
    worst = std::max(worst, ratio);
    optimal_with_limit += ratio < 1 + 1e-9;
    over += ratio > 1.1;
  }
  MESSAGE(tries << " decisions tried; with a memory limit " << optimal_with_limit << " of "
                << limited << " were optimal, " << over << " more than a tenth slower, the worst "
                << worst << " times the optimum");
}
