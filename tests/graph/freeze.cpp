#include <cella/graph/freeze.hpp>
#include <span>

#include "../passes/expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr auto polynomial = [](var x, var y) {
  (void)exp(x);  // dead
  return (x + y) * x - 2;
};
struct make_polynomial {
  constexpr graph operator()() const { return graph_of(polynomial); }
};
static_assert(frozen<make_polynomial>.sizes == graph_sizes{6, 7, 0, 1, 2, 2, 1});
static_assert(freeze_fault<make_polynomial>.empty());
static_assert(frozen<make_polynomial>.input(1) == 1);
static_assert(frozen<make_polynomial>.region_outputs(0)[0] == 5);
static_assert(frozen<make_polynomial>.view(frozen<make_polynomial>.inputs[1].name) == "y");
static_assert(frozen<make_polynomial>.nodes[5].op->name == "sub");
static_assert(frozen<make_polynomial>.type(5) == tensor_type{dtype::f32, {2, 3}});

struct make_gradient {
  constexpr graph operator()() const {
    return graph_of(
        [](var x) {
          const std::array wrt{x};
          return gradients(sum(max_pool(relu(x), 2)), wrt)[0];
        },
        {dtype::f32, {1, 1, 4, 4}});
  }
};

constexpr op_info owner{.name = "owner", .kind = op_kind::control};

struct make_nested {
  constexpr graph operator()() const {
    builder b;
    const tensor_type t{dtype::f32, {2}};
    const var x{&b, b.input(t, input_role::argument, "x")};
    const var k{&b, b.input(t, input_role::parameter, "k")};
    const int r = b.begin(std::span(&t, 1));
    const var inner{&b, b.g.regions.back().inputs[0]};
    const std::array inner_out{(inner * k).id};  // captures k
    b.end(inner_out);
    const var o = x + k;
    b.g.nodes[std::size_t(o.id)].op = &owner;
    b.g.nodes[std::size_t(o.id)].regions = {r, -1};
    const std::array out{o.id};
    b.end(out);
    b.g.outputs.push_back({1, {}});
    return std::move(b.g);
  }
};

struct make_refused {
  constexpr traced_graph operator()() const {
    builder b;
    const var x{&b, b.input({dtype::f32, {2, 3}}, input_role::argument, "x")};
    (void)reshape(x, {7});
    const text fault = b.fault();
    return {std::move(b.g), fault};
  }
};
static_assert(frozen<make_refused>.nodes.empty());
static_assert(freeze_fault<make_refused>.view().find("reshape: x is [2,3] (6 elements)") !=
              text::capacity);

/// More outputs than the first evaluation has room for.
struct make_large {
  constexpr graph operator()() const {
    graph g = graph_of([](var x) { return -x; });
    g.regions[0].outputs.assign(3000, g.regions[0].outputs[0]);
    g.outputs.assign(3000, {});
    return g;
  }
};

template <class Make>
void thaws_to_what_was_made() {
  const graph made = live_part(Make{}());
  const graph thawed = thaw(frozen<Make>);
  REQUIRE(thawed.nodes.size() == made.nodes.size());
  CHECK(thawed.operand_pool == made.operand_pool);
  CHECK(thawed.results == made.results);
  CHECK(thawed.characters == made.characters);
  for (std::size_t n = 0; n < made.nodes.size(); ++n) {
    CHECK(thawed.nodes[n].op == made.nodes[n].op);
    CHECK(thawed.nodes[n].type == made.nodes[n].type);
    CHECK(thawed.nodes[n].attributes == made.nodes[n].attributes);
    CHECK(thawed.nodes[n].region == made.nodes[n].region);
    CHECK(thawed.nodes[n].position == made.nodes[n].position);
    CHECK(thawed.nodes[n].line == made.nodes[n].line);
    CHECK(std::string_view(thawed.nodes[n].file) == made.nodes[n].file);
  }
  REQUIRE(thawed.regions.size() == made.regions.size());
  for (std::size_t r = 0; r < made.regions.size(); ++r) {
    CHECK(thawed.regions[r].nodes == made.regions[r].nodes);
    CHECK(thawed.regions[r].inputs == made.regions[r].inputs);
    CHECK(thawed.regions[r].outputs == made.regions[r].outputs);
    CHECK(thawed.regions[r].captured == made.regions[r].captured);
    CHECK(thawed.regions[r].declared == made.regions[r].declared);
  }
  CHECK(std::string(check(thawed).view()) == "");
}

}  // namespace

TEST_CASE("a graph frozen by the compiler thaws to what is made at run time") {
  thaws_to_what_was_made<make_polynomial>();
  thaws_to_what_was_made<make_gradient>();
  thaws_to_what_was_made<make_nested>();
}

TEST_CASE("a thawed graph computes") {
  CHECK(same_values(run(thaw(frozen<make_polynomial>), 4), run(graph_of(polynomial), 4)));
  CHECK(same_values(run(thaw(frozen<make_gradient>), 4), run(make_gradient{}(), 4)));
}

TEST_CASE("a captured value stays an operand of the region's owner and an input of the region") {
  constexpr const auto& f = frozen<make_nested>;
  CHECK(f.regions[1].declared == 1);
  CHECK(f.regions[1].input_count == 2);
  REQUIRE(f.region_captured(1).size() == 1);
  CHECK(f.region_captured(1)[0] == f.input(1));
  CHECK(f.outputs[0].updates == 1);
}

TEST_CASE("a refused model freezes to nothing and keeps its sentence") {
  CHECK(frozen<make_refused>.regions.empty());
  CHECK(std::string(freeze_fault<make_refused>.view())
            .find("reshape: x is [2,3] (6 elements), which does not fit [7] (7)") !=
        std::string::npos);
}

TEST_CASE("a graph beyond the room of the first evaluation is evaluated once more") {
  CHECK(frozen<make_large>.sizes == graph_sizes{2, 3001, 0, 1, 1, 1, 3000});
  CHECK(frozen<make_large>.region_outputs(0)[2999] == 1);
  thaws_to_what_was_made<make_large>();
}
