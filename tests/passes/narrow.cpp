// Values of which only a part is read, or differs from zero: how large they become, and that
// results stay the same.
#include <cella/graph/check.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/padding.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "graph_values.hpp"

using namespace cella;
using namespace cella::test;

namespace {

graph before(const vars_function& f, const std::vector<tensor_type>& types) {
  return fold(prune(graph_of(f, types)));
}
/// The graph after the pass, which must be whole and compute the same.
graph after(const vars_function& f, const std::vector<tensor_type>& types) {
  const graph old = before(f, types);
  graph made = narrow(old);
  CHECK(check(made).view() == "");
  check_same_values(old, made);
  return live_part(std::move(made));
}
/// The largest value that an operation computes.
template <class Op>
std::int64_t largest(const graph& g) {
  std::int64_t size = 0;
  for (const node& n : g.nodes) {
    if (is<Op>(n)) size = std::max(size, n.type.size());
  }
  return size;
}

constexpr int length = 200;
constexpr tensor_type vector_type{dtype::f64, {length}};

/// y_{i-1} at place i.
var before_each(var y) {
  const int n = y.extent(0);
  return concat({constant(*y.b, 1, {y.element(), {1}}), slice(y, 0, 0, n - 1)}, 0);
}
template <int Steps>
var marched(var x) {
  const auto step = [&](var, var y) { return y + x * before_each(tanh(y)); };
  return for_i(Steps, step, x);
}
template <int Steps>
var last_marched(var x) {
  return sum(slice(marched<Steps>(x), 0, length - 1, length));
}

}  // namespace

TEST_CASE("one row of a product is a product of one row") {
  const auto last_row = [](const vars& x) {
    return vars{slice(tanh(matmul(x[0], x[1])), 0, 9, 10)};
  };
  const graph g = after(last_row, {{dtype::f64, {10, 4}}, {dtype::f64, {4, 6}}});
  CHECK(largest<matmul_op>(g) == 6);
  CHECK(largest<tanh_op>(g) == 6);
}

TEST_CASE("a reshape between extents that do not divide each other has all of its elements") {
  const auto function = [](const vars& x) {
    return vars{tanh(reshape(x[0], {5, 6})), slice(reshape(x[0], {30}), 0, 0, 4)};
  };
  CHECK(largest<tanh_op>(after(function, {{dtype::f64, {3, 5, 2}}})) == 30);
}

TEST_CASE("a sum over zeros and others sums the others") {
  const auto padded_sum = [](const vars& x) {
    return vars{sum(square(pad(x[0], {0, 30}, {2, 0})), {1})};
  };
  const graph g = after(padded_sum, {{dtype::f64, {5, 4}}});
  CHECK(largest<square_op>(g) == 20);
}

TEST_CASE("a loop whose last element is read computes what leads to it") {
  const graph g = after([](const vars& x) { return vars{last_marched<7>(x[0])}; }, {vector_type});
  CHECK(largest<tanh_op>(g) == 7);
}

TEST_CASE("the derivative of one element by all is computed where it is not zero") {
  const graph g =
      after([](const vars& x) { return gradients(last_marched<7>(x[0]), x); }, {vector_type});
  CHECK(largest<mul_op>(g) <= 16);
}

TEST_CASE("a loop that reaches everything stays as it is") {
  const auto everything = [](const vars& x) { return vars{last_marched<150>(x[0])}; };
  const graph old = live_part(before(everything, {vector_type}));
  CHECK(after(everything, {vector_type}).nodes.size() == old.nodes.size());
}

TEST_CASE("a part of each step of a loop is cut in the loop") {
  const auto one_column = [](const vars& x) {
    const auto step = [](var h, var u) { return std::tuple{tanh(h + u), exp(h * u)}; };
    const auto [last, all] = scan(step, zeros_like(reshape(slice(x[0], 0, 0, 1), {8})), x[0]);
    return vars{slice(all, 1, 3, 4), last};
  };
  const graph g = after(one_column, {{dtype::f64, {5, 8}}});
  CHECK(largest<tanh_op>(g) == 8);
  CHECK(largest<exp_op>(g) == 1);
}

TEST_CASE("branches, and functions that are called, keep their types") {
  const auto branched = [](const vars& x) {
    const var y = cond(
        sum(x[0]) > 0, [&] { return exp(x[0]); }, [&] { return tanh(x[0]); });
    return vars{slice(y, 0, 0, 1)};
  };
  const graph g = after(branched, {vector_type});
  CHECK(largest<exp_op>(g) == length);
}

TEST_CASE("a branch of which less is read does not compute less") {
  const auto branched = [](const vars& x) {
    const var y = cond(
        sum(x[0]) > 0, [&] { return exp(x[0]); }, [&] { return tanh(x[0]); });
    return vars{slice(y, 0, 0, 1), slice(concat({x[0], x[0]}, 0), 0, 1, 2)};
  };
  const graph old = before(branched, {vector_type});
  CHECK(narrow(old).nodes.size() == old.nodes.size());
}

TEST_CASE("functions of random parts compute the same") {
  generator random(11);
  const auto below = [&](int n) { return int(double(random.uniform()) * n); };
  for (int seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const auto function = [&](const vars& x) {
      std::vector<var> known(x.begin(), x.end());
      const auto any = [&] { return known[std::size_t(below(int(known.size())))]; };
      const auto piece = [&](var v) {
        const int axis = below(2), n = v.extent(axis), first = below(n);
        return slice(v, axis, first, first + 1 + below(n - first));
      };
      // Everything is brought back to 6 x 6.
      const auto whole_again = [&](var v) {
        const int rows = 6 - v.extent(0), columns = 6 - v.extent(1);
        const int above = below(rows + 1), left = below(columns + 1);
        return pad(v, {above, left}, {rows - above, columns - left});
      };
      for (int i = 0; i < 8; ++i) {
        switch (below(8)) {
          case 0:
            known.push_back(whole_again(piece(any())));
            break;
          case 1:
            known.push_back(any() * any());
            break;
          case 2:
            known.push_back(any() + any());
            break;
          case 3:
            known.push_back(cos(any()));
            break;
          case 4:
            known.push_back(matmul(any(), transpose(any())));
            break;
          case 5:
            known.push_back(concat({slice(any(), 0, 2, 6), slice(any(), 0, 0, 2)}, 0));
            break;
          case 6:
            known.push_back(broadcast_to(sum(any(), {0}), {6, 6}));
            break;
          default: {
            const var a = any(), b = any();
            const auto step = [&](var, var y) { return tanh(y) * a + whole_again(piece(y)); };
            known.push_back(for_i(1 + below(4), step, b));
          }
        }
      }
      const var y = piece(known.back());
      vars out{y};
      if (below(2)) {
        for (var d : gradients(sum(square(y)), x)) out.push_back(d);
      }
      return out;
    };
    after(function, {{dtype::f64, {6, 6}}, {dtype::f64, {6, 6}}});
  }
}
