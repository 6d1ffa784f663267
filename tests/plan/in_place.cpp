// Which results lie where an operand lay.
#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/parallel/started.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/trace.hpp>

using namespace cella;

namespace {

template <class Cell>
growing_plan plan_of(Cell cell) {
  const graph g = optimize(trace(cell, std::array{tensor_type{dtype::f32, {32, 16}}}, {}));
  const planner<cpu::planning> p(g, {dtype::f32});
  REQUIRE(p.fault().empty());
  return p.result();
}

}  // namespace

TEST_CASE("a sum over ranks lies where its operand did, which is read no more") {
  const auto sum_of_two = [](bool reads_operand) {
    return [=](var x) {
      constexpr collective_options how{0, 2};
      const var y = sort(x, 1);
      const node_id ticket = y.b->emit(bound<start_all_reduce_op>(), {y.id}, how);
      const var sum{y.b, y.b->emit(bound<finish_all_reduce_op>(), {ticket, y.id}, how)};
      return reads_operand ? sort(sum, 0) + sort(y, 0) : sort(sum, 0);
    };
  };
  for (const bool reads_operand : {false, true}) {
    const growing_plan p = plan_of(sum_of_two(reads_operand));
    const buffer_ref written = p.steps[0].outputs[0].at;
    CHECK((p.steps[2].outputs[0].at == written) == !reads_operand);
  }
}
