// The parts of a builder, each by itself on a bare graph.
#include <doctest/doctest.h>

#include <cella/graph/body_states.hpp>
#include <cella/graph/cell_table.hpp>
#include <cella/graph/early_nodes.hpp>
#include <cella/graph/function_table.hpp>
#include <cella/graph/open_regions.hpp>
#include <vector>

using namespace cella;

namespace {

constexpr tensor_type pair_type{dtype::f32, {2}};
constexpr tensor_type key_type{dtype::i64, {2}};

std::vector<int> numbers(span<const int> s) { return {s.begin(), s.end()}; }

/// A graph of this many regions, with two states in the main one.
graph with_states(int regions) {
  graph g;
  g.regions.resize(std::size_t(regions));
  for (const char* name : {"mean", "count"}) g.append_input(pair_type, input_role::state, name);
  return g;
}

}  // namespace

TEST_CASE("a straight line begins at the region of a function and takes its continuations") {
  open_regions open;
  CHECK(open.depth() == 1);
  CHECK(numbers(open.line()) == std::vector{0});
  open.open_continuation(3);
  CHECK(numbers(open.line()) == std::vector{0, 3});
  open.open(5);
  open.open_continuation(6);
  open.open_continuation(7);
  CHECK(numbers(open.line()) == std::vector{5, 6, 7});
  CHECK(open.innermost() == 7);
  CHECK(open[2] == 5);
  open.close();
  CHECK(numbers(open.line()) == std::vector{5, 6});
}

TEST_CASE("continuations that were set aside continue the region again") {
  open_regions open;
  open.open(2);
  open.open_continuation(4);
  open.open_continuation(5);
  const list<int> aside = open.set_aside(2);
  CHECK(numbers(aside) == std::vector{4, 5});
  CHECK(numbers(open.line()) == std::vector{2});
  open.open_again(aside);
  CHECK(numbers(open.line()) == std::vector{2, 4, 5});
}

TEST_CASE("declared inputs of a region stand in front of captured ones") {
  graph g = with_states(2);
  const node_id captured = g.append_input(pair_type, 1);
  const node_id key = g.append_declared_input(key_type, 1);
  const node_id state = g.append_declared_input(pair_type, 1);
  CHECK(g.regions[1].inputs == ids{key, state, captured});
  CHECK(g.regions[1].declared == 2);
}

TEST_CASE("a state has the value that was assigned last, in the body or round it") {
  graph g = with_states(2);
  const node_id mean = g.input(0);
  const node_id assigned = g.append_input(pair_type, 0);
  body_states bodies(g);
  CHECK(bodies.state_value(mean) == mean);
  bodies.updates.push_back({0, assigned});
  CHECK(bodies.state_value(mean) == assigned);

  // A body that runs many times sees what it assigned itself, before that an input of its own.
  bodies.enter({.region = 1, .repeats = true});
  const node_id inside = bodies.state_value(mean);
  CHECK(g.regions[1].inputs == ids{inside});
  CHECK(bodies.state_value(mean) == inside);
  const node_id next = g.append_input(pair_type, 1);
  bodies.updates.push_back({0, next});
  CHECK(bodies.state_value(mean) == next);
  const list<input_update> taken = bodies.take_updates(1);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].value == next);
  const body_scope left = bodies.leave();
  REQUIRE(left.states.size() == 1);
  CHECK(left.states[0].of == mean);
  CHECK(left.states[0].input == inside);
  CHECK(bodies.state_value(mean) == assigned);
}

TEST_CASE("updates are taken once for each input, with the last value") {
  graph g = with_states(1);
  body_states bodies(g);
  bodies.updates.push_back({1, 7});
  bodies.updates.push_back({1, 10});
  bodies.updates.push_back({0, 11});
  bodies.updates.push_back({1, 12});
  const list<input_update> taken = bodies.take_updates(1);
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].input == 1);
  CHECK(taken[0].value == 12);
  CHECK(taken[1].input == 0);
  CHECK(taken[1].value == 11);
  REQUIRE(bodies.updates.size() == 1);
  CHECK(bodies.updates[0].value == 7);
}

TEST_CASE("a body counts its random draws from 0, and those round it go on behind it") {
  graph g = with_states(1);
  body_states bodies(g);
  CHECK(bodies.next_random_stream() == 0);
  CHECK(bodies.next_random_stream() == 1);
  bodies.enter({});
  CHECK(bodies.next_random_stream() == 0);
  bodies.leave();
  CHECK(bodies.next_random_stream() == 2);
}

TEST_CASE("any body round an assignment can refuse it, and any can repeat it") {
  graph g = with_states(1);
  body_states bodies(g);
  CHECK(bodies.refuses_states() == nullptr);
  CHECK(!bodies.repeats());
  bodies.enter({.repeats = true, .refuses = "a condition"});
  bodies.enter({.refuses = "a rule"});
  bodies.enter({});
  CHECK(bodies.repeats());
  CHECK(std::string_view(bodies.refuses_states()) == "a rule");
}

TEST_CASE("parameters and cells are found by address, in whichever order they are asked for") {
  cell_table cells;
  const int a = 0, b = 0, c = 0;
  const char number{}, word{};  // tags of types
  CHECK(!cells.binds());
  cells.bind(&a, 4);
  cells.bind(&b, 5);
  CHECK(cells.binds());
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(cells.find(&b) == 5);
    CHECK(cells.find(&a) == 4);
    CHECK(cells.find(&c) == no_node);
  }
  cells.declare(&a, &number, {8, 3});
  CHECK(cells.path_of(&a, &number, {}).first == 8);
  CHECK(cells.path_of(&a, &word, {2, 1}).first == 2);
}

TEST_CASE("functions are found by name and types, what is derived from them by its inputs") {
  using derivation = function_table::derivation;
  function_table functions;
  const char square{}, root{};
  const list<tensor_type> one{pair_type}, two{pair_type, pair_type};
  const std::size_t f = functions.find(&square, one);
  CHECK(functions.find(&square, two) != f);
  CHECK(functions.find(&root, one) != f);
  CHECK(functions.find(&square, one) == f);
  functions[f].region = 3;
  functions.remember_derived(derivation::halves, 3, {1, 0}, 6);
  CHECK(functions.find_derived(derivation::halves, 3, {1, 0}) == 6);
  CHECK(functions.find_derived(derivation::halves, 3, {1, 1}) == -1);
  CHECK(functions.find_derived(derivation::forward_mode, 3, {1, 0}) == -1);
  functions.forget_since(5);
  CHECK(functions.find_derived(derivation::halves, 3, {1, 0}) == -1);
  CHECK(functions[f].region == 3);
  functions.forget_since(3);
  CHECK(functions[f].region == -1);
}

TEST_CASE("early nodes end up in front of their own region") {
  graph g = with_states(2);
  const node_id inner = g.append_input(pair_type, 1);
  const node_id first = g.append(node{.op = &input_info_of}, 1);
  const node_id elsewhere = g.append(node{.op = &input_info_of}, 0);
  const node_id second = g.append(node{.op = &input_info_of}, 1);
  early_nodes early;
  for (node_id n : {first, elsewhere, second}) early.add(n);
  early.settle(g, 1);
  CHECK(g.regions[1].nodes == ids{first, second, inner});
  CHECK(g.nodes[std::size_t(inner)].position == 2);
  CHECK(g.regions[0].nodes == ids{g.input(0), g.input(1), elsewhere});
  early.settle(g, 0);
  CHECK(g.regions[0].nodes == ids{elsewhere, g.input(0), g.input(1)});
}
