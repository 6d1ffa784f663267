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
/// Of the elementwise steps: whether each writes where it reads.
list<bool> in_place(const growing_plan& p) {
  list<bool> all;
  for (const plan_step& s : p.steps) {
    if (s.kind != step_kind::elementwise) continue;
    bool found = false;
    for (int k = 0; k < s.read_count; ++k) found |= s.reads[std::size_t(k)].at == s.outputs[0].at;
    all.push_back(found);
  }
  return all;
}
constexpr std::int64_t tensor_bytes = 32 * 16 * 4;

}  // namespace

TEST_CASE("an elementwise step writes where its operand lay") {
  const growing_plan p = plan_of([](var x) { return sort(exp(sort(x, 1)) * 2, 0); });
  CHECK(in_place(p) == list<bool>{true});
  CHECK(p.arena_bytes == 2 * tensor_bytes);
  CHECK(p.arena_bytes == p.live_bytes);
  CHECK(p.arena_bytes_without_reuse == 3 * tensor_bytes);
}

TEST_CASE("a result is where it was written, whatever it replaces") {
  const growing_plan p = plan_of([](var x) { return exp(sort(x, 1)) * 2; });
  CHECK(in_place(p) == list<bool>{true});
  CHECK(p.arena_bytes == tensor_bytes);
  REQUIRE(p.results.size() == 1);
  CHECK(p.results[0].at == p.steps[p.steps.size() - 1].outputs[0].at);
}

TEST_CASE("an operand stays that is a result, or is read again") {
  CHECK(in_place(plan_of([](var x) {
          const var s = sort(x, 1);
          return std::array{s, exp(s)};
        })) == list<bool>{false});
  CHECK(in_place(plan_of([](var x) {
          const var s = sort(x, 1);
          const var first = sort(exp(s), 0);
          return first + sort(s, 0);
        })) == list<bool>{false, true});
}

TEST_CASE("an operand stays that is read elsewhere than it is written") {
  CHECK(in_place(plan_of([](var x) {
          const var s = sort(x, 1);
          return s - slice(s, 0, 0, 1);
        })) == list<bool>{false});
}

TEST_CASE("parts of what was written in place are found") {
  const growing_plan p = plan_of([](var x) {
    const var y = exp(sort(x, 1));
    return std::array{sort(slice(y, 0, 8, 32), 1), sort(slice(y, 0, 0, 8), 1)};
  });
  CHECK(in_place(p) == list<bool>{true});
  const buffer_ref whole = p.steps[1].outputs[0].at;
  CHECK(p.steps[2].in[0] == buffer_ref{whole.space, whole.offset + 8 * 16 * 4});
  CHECK(p.steps[3].in[0] == whole);
}

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
