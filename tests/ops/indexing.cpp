#include <cella/ops/put_rows.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input table{.extents = {4, 3}};
constexpr case_input rows(const shape& s) {
  return {.extents = s, .low = 0, .high = 4, .element = dtype::i64};
}
constexpr case_input columns(const shape& s) {
  return {.extents = s, .low = 0, .high = 3, .element = dtype::i32};
}
constexpr gradient_case cases[] = {
    {"one_hot", [](var i, var x) { return one_hot(i, 4, dtype::f64) * x; }, {rows({3}), {}}},
    {"gather", [](var x, var i) { return gather(x, i); }, {table, rows({2, 5})}},
    {"gather along the last axis",
     [](var x, var i) { return gather(x, i, -1); },
     {table, columns({5})}},
    {"gather in the middle",
     [](var x, var i) { return gather(x, i, 1); },
     {{.extents = {2, 3, 2}}, columns({2, 2})}},
    {"gather by a scalar", [](var x, var i) { return gather(x, i); }, {table, rows({})}},
    {"embedding", [](var i, var x) { return embedding(i, x); }, {rows({2, 2}), table}},
    {"gather_elements",
     [](var x, var i) { return gather_elements(x, i, 1); },
     {table, columns({2, 5})}},
    {"gather_elements of a scatter",
     [](var x, var i) { return square(gather_elements(x, i, 0)); },
     {table, rows({5, 2})}},
    {"scatter", [](var x, var i) { return scatter(x, i, 3); }, {{.extents = {5, 2}}, columns({5})}},
    {"scatter, two index axes",
     [](var x, var i) { return scatter(x, i, 4); },
     {{.extents = {2, 3, 2}}, rows({2, 3})}},
    {"scatter_add",
     [](var x, var i, var v) { return scatter_add(x, i, v); },
     {table, rows({2}), {.extents = {2, 3}}}},
    {"scatter_update",
     [](var x, var i, var v) { return scatter_update(x, i, v) * x; },
     {table, rows({2}), {.extents = {2, 3}}}},
    {"put_rows",
     [](var x, var v) {
       return square(put_rows(x, 2 - iota(*x.b, {dtype::i64, {2}}, 0), v));
     },
     {table, {.extents = {2, 3}}}},
    {"put_rows along the second axis, at one place",
     [](var x, var i, var v) { return square(put_rows(x, i, v, 1)); },
     {{.extents = {2, 3, 2}}, columns({}), {.extents = {2, 2}}}},
    {"put_rows that adds",
     [](var x, var i, var v) {
       return square(
           emit<put_rows_op>(put_rows_op::options{0, 1}, std::source_location::current(), x, i, v));
     },
     {table, rows({5}), {.extents = {5, 3}}}},
    {"gather_nd",
     [](var x, var i) { return gather_nd(x, i); },
     {{.extents = {3, 3, 2}}, columns({4, 2})}},
    {"scatter_nd",
     [](var i, var v) {
       return scatter_nd(i, v, {3, 3, 2});
     },
     {columns({4, 2}), {.extents = {4, 2}}}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }
constexpr tensor_type n(const shape& s) { return {dtype::i32, s}; }

}  // namespace

TEST_CASE("reading and writing by index: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("one_hot marks the index and nothing for one outside") {
  CHECK(eval([](var i) { return one_hot(i, 3, dtype::f64); }, i64({4}, {2, 0, 3, -1})).values ==
        reals{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("an index outside the table reads NaN, or 0 of an integer table, and writes nothing") {
  const auto i = i64({3}, {1, 2, -1});
  check_close(eval([](var x, var k) { return gather(x, k); }, f64({2}, {5, 6}), i).values,
              reals{6, not_a_number, not_a_number}, 0);
  CHECK(eval([](var x, var k) { return gather(x, k); }, i64({2}, {5, 6}), i).values ==
        reals{6, 0, 0});
  check_close(
      eval([](var x, var k) { return gather_elements(x, k, 0); }, f64({2}, {5, 6}), i).values,
      reals{6, not_a_number, not_a_number}, 0);
  CHECK(eval([](var v, var k) { return scatter(v, k, 2); }, f64({3}, {5, 6, 7}), i).values ==
        reals{0, 5});
}

TEST_CASE("equal indices add up, and updates replace what was there") {
  const auto x = f64({3}, {1, 2, 3}), v = f64({2}, {10, 20});
  CHECK(eval([](var t, var i, var u) { return scatter_add(t, i, u); }, x, i64({2}, {1, 1}), v)
            .values == reals{1, 32, 3});
  CHECK(eval([](var t, var i, var u) { return scatter_update(t, i, u); }, x, i64({2}, {2, 0}), v)
            .values == reals{20, 2, 10});
}

TEST_CASE("a row that is updated as often as its type can count is updated") {
  const valued_tensor x{{dtype::u8, {2, 2}}, {5, 6, 7, 8}}, v{{dtype::u8, {256, 2}}, reals(512, 1)};
  const auto updated = eval([](var t, var i, var u) { return scatter_update(t, i, u); }, x,
                            i64({256}, reals(256, 1)), v);
  CHECK(updated.values == reals{5, 6, 0, 0});  // modulo 256
}

TEST_CASE("the faults of indexing name the indices and the table") {
  CHECK(fault([](const vars& v) { return one_hot(v[0], 3, dtype::f32); }, {f({2})}) ==
        "one_hot: the indices x0 are f64[2]; they must be integers");
  CHECK(fault([](const vars& v) { return one_hot(v[0], 0, dtype::f32); }, {n({2})}) ==
        "one_hot: x0 [2] cannot get a new last axis of 0 positions");
  CHECK(fault([](const vars& v) { return one_hot(v[0], 2, dtype::f32); },
              {n({1, 1, 1, 1, 1, 1, 1, 1})}) ==
        "one_hot: x0 [1,1,1,1,1,1,1,1] cannot get a new last axis of 2 positions");
  CHECK(fault([](const vars& v) { return gather(v[0], v[1]); }, {f({2}), {dtype::boolean, {2}}}) ==
        "gather: the indices x1 are bool[2]; they must be integers");
  CHECK(fault([](const vars& v) { return gather(v[0], v[1], 1); }, {f({2}), n({2})}) ==
        "gather: x0 [2] has no axis 1");
  CHECK(fault([](const vars& v) { return gather(v[0], v[1]); },
              {f({2, 1, 1, 1, 1}), n({1, 1, 1, 1, 1})}) ==
        "gather: the result of [2,1,1,1,1] at indices [1,1,1,1,1] has more than 8 axes");
  CHECK(
      fault([](const vars& v) { return gather_elements(v[0], v[1], 1); }, {f({2, 3}), n({3, 3})}) ==
      "gather_elements: the indices [3,3] do not fit into x0 [2,3] beside axis 1");
  CHECK(fault([](const vars& v) { return scatter(v[0], v[1], 4); }, {f({2, 3}), n({3})}) ==
        "scatter: the indices [3] are not the leading axes of x0 [2,3], or there are no rows (4)");
  CHECK(fault([](const vars& v) { return scatter(v[0], v[1], 0); }, {f({2, 3}), n({2})}) ==
        "scatter: the indices [2] are not the leading axes of x0 [2,3], or there are no rows (0)");
  CHECK(fault([](const vars& v) { return gather_nd(v[0], v[1]); }, {f({2, 3}), n({4, 3})}) ==
        "gather_nd: the last axis of the indices [4,3] must name 1 to 2 axes of x0 [2,3]");
  CHECK(fault([](const vars& v) { return scatter_nd(v[0], v[1], {2}); }, {n({4, 2}), f({4})}) ==
        "scatter_nd: the last axis of the indices [4,2] must name 1 to 1 axes of the target [2]");
}

TEST_CASE("put_rows replaces rows; of equal indices the last counts, and one outside is dropped") {
  const auto x = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto put = [](var t, var i, var v) { return put_rows(t, i, v); };
  CHECK(eval(put, x, i64({4}, {2, 0, 2, 3}), f64({4, 2}, {7, 8, 9, 10, 11, 12, 13, 14})).values ==
        reals{9, 10, 3, 4, 11, 12});
  CHECK(fault([](const vars& v) { return put_rows(v[0], v[1], v[2]); },
              {f({3, 2}), n({4}), f({4, 3})}) ==
        "put_rows: values of f64[4,2] are needed for the indices [4] along axis 0 of x0 [3,2]: x2 "
        "is f64[4,3]");
}
