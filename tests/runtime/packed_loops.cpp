// Loops whose constant matrices are packed before them, and joins of many parts.
#include <cella/ops/matmul.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/plan/make_plan.hpp>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int rows = 24, width = 72;

/// h' = tanh(h U + x_t), where U is made of x: large enough, and used often enough, to be packed.
struct recurrent_product {
  constexpr var operator()(var x) const {
    const var u = slice(x, 0, 0, width) * 0.1;
    const var inputs = reshape(slice(x, 0, width, width + 3 * rows), {3, rows, width});
    const auto step = [&](var h, var input) {
      h = tanh(matmul(h, u) + matmul(h, u, false, true) * 0.5 + input);
      return std::tuple{h, h};
    };
    const var start = constant(*x.b, 0.5, {x.element(), {rows, width}});
    return sum(square(std::get<1>(scan(step, start, inputs))));
  }
};
struct its_gradient {
  constexpr var operator()(var x) const { return grad(recurrent_product{})(x); }
};

/// Steps of all regions' plans that pack.
template <class Cell>
constexpr int packed_products() {
  using program =
      cella::program<Cell, false, dtype::f64, tensor<dtype::f64, width + 3 * rows, width>>;
  int packed = 0;
  const auto& g = program::graph;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (
        [&] {
          constexpr const plan_step& s = program::plan.steps[I];
          if constexpr (s.kind == step_kind::control && s.anchor >= 0) {
            constexpr const node& n = program::graph.nodes[std::size_t(s.anchor)];
            if constexpr (is<scan_op>(n)) {
              constexpr auto o = n.attributes.template as<scan_options>();
              using body = cpu::region_program<program, n.regions[0], o.carries, o.carries + o.xs>;
              for (const plan_step& t : body::plan.steps)
                packed += t.kind == step_kind::product && t.in[3].valid();
            }
          }
        }(),
        ...);
  }
  (std::make_index_sequence<std::size_t(program::plan.step_count)>{});
  (void)g;
  return packed;
}

std::vector<double> numbers() {
  std::vector<double> x(std::size_t((width + 3 * rows) * width));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i * 7 % 23) / 23 - 0.5;
  return x;
}

struct joined {
  constexpr var operator()(var x) const {
    std::vector<var> parts;
    for (int i = 0; i < 9; ++i) parts.push_back(transpose(slice(x, 0, i, i + 1), {1, 0}));
    return concat(parts, 0);
  }
};

}  // namespace

TEST_CASE("a loop's constant matrices are packed once, and its results stay the same") {
  static_assert(packed_products<recurrent_product>() == 2);
  run_compiled<recurrent_product, width + 3 * rows, width>(numbers());
  run_compiled<its_gradient, width + 3 * rows, width>(numbers());
}

TEST_CASE("more values than a step has places for are joined in graph mode") {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  check_close(run_compiled<joined, 9, 2>(x), x);
}
