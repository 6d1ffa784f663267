// Layouts of tensors, and the moves between them.
#include <doctest/doctest.h>

#include <map>

#include "on_ranks.hpp"

using namespace cella;
using namespace cella::parallel;
using namespace cella::test;

namespace {

/// All layouts of a tensor; with partial ones if wanted.
std::vector<layout> all_layouts(const shape& s, const device_mesh& m, bool sums) {
  std::vector<layout> all(1);
  for (int a = 0; a < m.axis_count; ++a) {
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count; ++i)
      for (int d = sums ? partial : 0; d < s.rank; ++d) {
        layout l = all[i];
        if (d == replicated) continue;
        l[a] = std::int8_t(d);
        all.push_back(l);
      }
  }
  std::erase_if(all, [&](const layout& l) { return !can_lie(s, l, m); });
  return all;
}

/// A graph of one collective operation.
graph collective_graph(const op_info& op, const collective_options& o, const tensor_type& t) {
  builder b;
  const node_id x = b.input(t, input_role::argument, "x");
  const node_id y = b.emit(op, {x}, o);
  b.g.outputs.push_back({});
  b.end({&y, 1});
  return std::move(b.g);
}
/// The graph of its transpose.
graph transposed_graph(const op_info& op, const collective_options& o, const tensor_type& t) {
  builder b;
  const node_id x = b.input(t, input_role::argument, "x");
  const node_id y = b.emit(op, {x}, o);
  const var dy{&b, b.input(b.g.type(y), input_role::argument, "dy")};
  const node_id dx = op.transpose({&b, y}, 0, dy).id;
  b.g.outputs.push_back({});
  b.end({&dx, 1});
  return std::move(b.g);
}

}  // namespace

TEST_CASE("parts of a tensor lie where the layout says") {
  const device_mesh m = parse_mesh("data=2,model=3");
  layout l;
  l[0] = 1;
  l[1] = 0;
  CHECK(layout_text({6, 4}, l, m).view() == "[6/model,4/data]");
  CHECK(part_of(shape{6, 4}, l, m) == shape{2, 2});
  l[1] = 1;
  CHECK(layout_text({6, 12}, l, m).view() == "[6,12/data/model]");
  CHECK(first_of_part({6, 12}, l, m, 5, 1) == 10);  // the last of six parts
  // Eleven are divided into 6 and 5, and these into 2, 2, 2 and 2, 2, 1.
  CHECK(part_of(shape{6, 11}, l, m, 5) == shape{6, 1});
  CHECK(first_of_part({6, 11}, l, m, 3, 1) == 6);
  CHECK(first_of_part({6, 11}, l, m, 5, 1) == 10);
  CHECK_FALSE(can_lie({6, 5}, l, m));
  l[0] = partial;
  CHECK(layout_text({6, 12}, l, m).view() == "[6,12/model] sum/data");
}

TEST_CASE("a mesh is read from a line, and wrong lines are told why") {
  const device_mesh m = parse_mesh("data=4,model=2");
  CHECK(m.ranks() == 8);
  CHECK(m.coordinate(5, 0) == 2);
  CHECK(m.coordinate(5, 1) == 1);
  CHECK(mesh_text(mesh<axis<"data", 4>, axis<"model", 2>>{}).view() == "data=4,model=2");
  const auto fault = [](const char* line) {
    try {
      parse_mesh(line);
    } catch (const error& e) {
      const std::string s = e.what();
      return s.substr(0, s.find(';'));
    }
    return std::string("none");
  };
  CHECK(fault("") == "mesh \"\": an axis is NAME=SIZE");
  CHECK(fault("data=x") == "mesh \"data=x\": a size is a number from 1 to 4096");
  CHECK(fault("data=2,data=2") == "mesh \"data=2,data=2\": two axes have one name");
  CHECK(fault("a=1,b=1,c=1,d=1") == "mesh \"a=1,b=1,c=1,d=1\": too many axes");
}

TEST_CASE("chains of moves bring every layout to every other, and none is cheaper") {
  const tensor_type t{dtype::f64, {11, 6}};
  std::mt19937 random(5);
  for (const char* line : {"a=2", "a=2,b=3", "a=2,b=2"}) {
    device_mesh m = parse_mesh(line);
    m.axes[0].latency = 1e-3;  // so that the axes differ
    const auto all = all_layouts(t.shape, m, true);
    // The cheapest costs between any two, by Floyd and Warshall from single moves.
    const auto n = all.size();
    std::vector<double> least(n * n, 1e9);
    for (std::size_t i = 0; i < n; ++i) {
      least[i * n + i] = 0;
      for (std::size_t j = 0; j < n; ++j) {
        int differ = 0, axis = 0;
        for (int a = 0; a < m.axis_count; ++a)
          if (all[i][a] != all[j][a]) ++differ, axis = a;
        if (differ != 1) continue;
        const int from = all[i][axis], to = all[j][axis];
        if (to == partial) continue;
        bool innermost = true;  // cuts of one dimension nest in the order of the axes
        for (int b = axis + 1; b < m.axis_count; ++b)
          innermost &= (all[i][b] < 0 || (all[i][b] != from && all[i][b] != to));
        if (!innermost) continue;
        const move_kind kind = from == partial
                                   ? to < 0 ? move_kind::all_reduce : move_kind::reduce_scatter
                               : from < 0 ? move_kind::own_part
                               : to < 0   ? move_kind::all_gather
                                          : move_kind::all_to_all;
        least[i * n + j] =
            cost_of(kind, double(part_of(t, all[i], m).bytes()), m[axis], m.each).seconds;
      }
    }
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          least[i * n + j] = std::min(least[i * n + j], least[i * n + k] + least[k * n + j]);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        if (least[i * n + j] > 1e8) continue;
        CAPTURE(layout_text(t.shape, all[i], m).view());
        CAPTURE(layout_text(t.shape, all[j], m).view());
        CHECK(redistribution_cost(t, all[i], all[j], m).seconds ==
              doctest::Approx(least[i * n + j]).epsilon(1e-9));
      }

    // Each chain moves the numbers: a graph whose input lies one way and is replaced by itself
    // another way cannot be told, so an identity is cut one way and kept another.
    for (const layout& from : all_layouts(t.shape, m, false)) {
      for (const layout& to : all_layouts(t.shape, m, false)) {
        builder b;
        const node_id x = b.input(t, input_role::argument, "x");
        const node_id y = b.emit(bound<neg_op>(), {x});
        b.g.outputs.push_back({});
        b.end({&y, 1});
        assignment all_choices = replicate(b.g);
        all_choices[std::size_t(x)].results[0] = from;
        all_choices[std::size_t(y)].results[0] = to;
        for (int a = 0; a < m.axis_count; ++a) all_choices[std::size_t(y)].cut[a] = from[a];
        const partitioned p = partition(b.g, m, all_choices);
        REQUIRE(p.fault.empty());
        const valued_tensor whole = random_tensor(t, random);
        for (const auto& outputs : run_on_ranks(b.g, m, all_choices, {whole}))
          for (std::size_t k = 0; k < whole.values.size(); ++k)
            CHECK(outputs[0].values[k] == -whole.values[k]);
      }
    }
  }
}

TEST_CASE("collective operations are each other's transposes") {
  const device_mesh m = parse_mesh("a=2,b=3");
  const tensor_type t{dtype::f64, {6, 12, 2}};
  std::mt19937 random(9);
  const op_info* const all[] = {&bound<all_reduce_op>(),     &bound<all_gather_op>(),
                                &bound<reduce_scatter_op>(), &bound<all_to_all_op>(),
                                &bound<own_part_op>(),       &bound<own_part_gradient_op>()};
  thread_ranks ranks(m);
  for (const op_info* op : all) {
    CHECK(is_collective(op));
    for (int axis = 0; axis < 2; ++axis) {
      for (const auto& [dimension, other] : {std::pair{0, 1}, std::pair{1, 0}}) {
        const collective_options o{axis, m[axis].size, dimension, other};
        const graph g = collective_graph(*op, o, t), h = transposed_graph(*op, o, t);
        std::vector<valued_tensor> x, dy;
        for (int r = 0; r < m.ranks(); ++r) {
          x.push_back(random_tensor(t, random));
          dy.push_back(random_tensor(g.type(g.regions[0].outputs[0]), random));
        }
        // <A x, dy> over all ranks is <x, A^T dy>.
        std::vector<double> left(x.size(), 0), right(x.size(), 0);
        ranks.run([&](int r, const communicator& c) {
          const communicator_scope scope(c);
          const auto k = std::size_t(r);
          const valued_tensor y = run_graph(g, {x[k]})[0], dx = run_graph(h, {x[k], dy[k]})[0];
          REQUIRE(dx.type == t);
          for (std::size_t i = 0; i < y.values.size(); ++i)
            left[k] += y.values[i] * dy[k].values[i];
          for (std::size_t i = 0; i < dx.values.size(); ++i)
            right[k] += dx.values[i] * x[k].values[i];
        });
        CAPTURE(op->name);
        double sum_left = 0, sum_right = 0;
        for (std::size_t k = 0; k < x.size(); ++k) sum_left += left[k], sum_right += right[k];
        CHECK(sum_left == doctest::Approx(sum_right).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("sums of all element types are made in the order of the ranks") {
  const device_mesh m = parse_mesh("a=3");
  for (dtype e : {dtype::f32, dtype::f64, dtype::bf16, dtype::i32, dtype::i64, dtype::c64}) {
    const graph g = collective_graph(bound<all_reduce_op>(), {0, 3, 0, 0}, {e, {5}});
    thread_ranks ranks(m);
    ranks.run([&](int r, const communicator& c) {
      const communicator_scope scope(c);
      valued_tensor x{{e, {5}}, {}};
      for (int i = 0; i < 5; ++i) x.values.push_back(i * 4 + r);
      const valued_tensor y = run_graph(g, {x})[0];
      for (std::size_t i = 0; i < 5; ++i) CHECK(y.values[i] == 12 * double(i) + 3);
    });
  }
}

TEST_CASE("a rank that fails ends the others") {
  thread_ranks ranks(parse_mesh("a=3"));
  const graph g = collective_graph(bound<all_reduce_op>(), {0, 3, 0, 0}, {dtype::f64, {5}});
  CHECK_THROWS_WITH_AS(ranks.run([&](int r, const communicator& c) {
    if (r == 1) throw error("disk full");
    const communicator_scope scope(c);
    run_graph(g, {{{dtype::f64, {5}}, std::vector<double>(5, 1.0)}});
  }),
                       "disk full", error);
}

TEST_CASE("a rank that does not come is named within the stated time") {
  const graph g = collective_graph(bound<all_reduce_op>(), {0, 2, 0, 0}, {dtype::f64, {5}});
  for (int late : {0, 1}) {
    thread_ranks ranks(parse_mesh("a=2"), 1.0);
    const auto begin = std::chrono::steady_clock::now();
    std::string said;
    try {
      ranks.run([&](int r, const communicator& c) {
        const communicator_scope scope(c);
        // Half a second longer, since others may keep the processor; and less than would end the
        // process.
        if (r == late) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        run_graph(g, {{{dtype::f64, {5}}, std::vector<double>(5, 1.0)}});
      });
    } catch (const error& e) { said = e.what(); }
    CHECK(said == "rank " + std::to_string(late) +
                      " has not come to a collective operation for 1 s; the others stop");
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
}

TEST_CASE("collective operations say so where there are no ranks, or others") {
  const graph g = collective_graph(bound<all_gather_op>(), {0, 2, 0, 0}, {dtype::f64, {4}});
  const valued_tensor x{{dtype::f64, {4}}, {1, 2, 3, 4}};
  CHECK_THROWS_WITH_AS(run_graph(g, {x}),
                       "all_gather: this program is one of 2 ranks, but runs alone; start it on "
                       "ranks: see docs/parallel.md",
                       error);
  thread_ranks ranks(parse_mesh("a=3"));
  CHECK_THROWS_WITH_AS(ranks.run([&](int, const communicator& c) {
    const communicator_scope scope(c);
    run_graph(g, {x});
  }),
                       "all_gather: this program was made for 2 ranks along axis 0 of the mesh, "
                       "but there are 3",
                       error);
}
