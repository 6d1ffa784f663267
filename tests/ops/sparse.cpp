// Sparse matrices against SciPy (tests/golden/scipy_values.py), in all modes, and what their places
// may be.
#include <cella/ops/sparse.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/vmap.hpp>

#include "support/compare.hpp"
#include "support/compiled_cases.hpp"
#include "support/golden_runs.hpp"

using namespace cella;
using namespace cella::test;
using nlohmann::json;

namespace {

/// What a case asks for, of a matrix in either form. Values, rows and columns come first.
template <class Convert>
golden_function asked(Convert convert) {
  return [convert](const vars& x, const json& a) -> vars {
    const shape extents{a.at("extents")[0].get<int>(), a.at("extents")[1].get<int>()};
    const auto m = convert(coo(x[0], x[1], x[2], extents));
    const std::string what = a.at("what");
    if (what == "to_dense") return {to_dense(m)};
    if (what == "product" || what == "product_of_vector") return {matmul(m, x[3])};
    if (what == "sum_of_columns") return {sum_along(m, 0)};
    if (what == "sum_of_rows") return {sum_along(m, -1)};
    auto twice = transpose(m);
    twice.values = 2 * twice.values;
    return {to_dense(add(transpose(m), twice))};
  };
}

/// Row 1 is empty, columns stand in any order, two entries have one place, the last one has no row.
constexpr std::array<std::int64_t, 7> columns{2, 0, 1, 1, 3, 0, 2};
constexpr std::array<std::int64_t, 4> splits{0, 2, 2, 6};
constexpr var product(var values, var x) { return matmul(csr(values, columns, splits, {3, 4}), x); }

constexpr gradient_case cases[] = {
    {"csr product",
     [](var v, var x) { return square(product(v, x)); },
     {{.extents = {7}}, {.extents = {4, 5}}}},
    {"csr product of a vector",
     [](var v, var x) { return square(product(v, x)); },
     {{.extents = {7}}, {.extents = {4}}}},
    {"csr product, wide",
     [](var v, var x) { return product(v, x); },
     {{.extents = {7}}, {.extents = {4, 70}}}},
    {"csr products of samples",
     [](var v, var x) { return vmap([v](var t) { return product(v, t); })(x); },
     {{.extents = {7}}, {.extents = {2, 4, 3}}}},
};

}  // namespace

TEST_CASE("products of entries row by row: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("entries row by row have a product in every element type, with all indices") {
  for (const dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16, dtype::i32, dtype::i64})
    for (const dtype index : {dtype::i64, dtype::i32, dtype::u8}) {
      CAPTURE(name(t));
      CAPTURE(name(index));
      const auto y = eval(
          [=](var v) {
            const auto count = std::int32_t(columns.size());
            const var places = cast(constant(v, columns, {count}), index);
            const var starts = constant(v, splits, {std::int32_t(splits.size())});
            const var x = cast(constant(v, {1., 2., 3., 4., 5., 6., 7., 8.}), t);
            const csr_matrix m = csr(cast(v, t), places, starts, {3, 4});
            return cast(matmul(m, reshape(x, {4, 2})), dtype::f64);
          },
          f64({7}, {1, 2, 3, 4, 5, 6, 7}));
      CHECK(y.values == reals{7, 10, 0, 0, 62, 80});
    }
}

TEST_CASE("sparse matrices have SciPy's products and sums, with their gradients, in both forms") {
  const golden file = golden::open_own("sparse");
  REQUIRE(file.size() == 18);
  for (std::size_t i = 0; i < file.size(); ++i) {
    const golden_case c = load_case(file, i);
    check_golden_case(c, asked([](const coo_matrix& m) { return m; }));
    check_golden_case(c, asked([](const coo_matrix& m) { return to_csr(m); }));
  }
}

TEST_CASE("a dense matrix becomes entries row by row, and has its gradient where they are") {
  const auto x = f64({3, 4}, {0, 2, 0, 3, 0, 0, 0, 0, 5, 0, 7, 0});
  const auto of = [&](auto f) { return eval(f, x).values; };
  CHECK(of([](var v) { return to_dense(coo_from_dense(v, 4)); }) == x.values);
  CHECK(of([](var v) { return to_dense(csr_from_dense(v, 9)); }) == x.values);
  CHECK(of([](var v) { return csr_from_dense(v, 6).row_splits; }) == reals{0, 2, 2, 4});
  CHECK(of([](var v) { return csr_from_dense(v, 4).columns; }) == reals{1, 3, 0, 2});
  CHECK(of([](var v) { return coo_from_dense(v, 5).rows; }) == reals{0, 0, 2, 2, -1});
  CHECK(of([](var v) { return sum(coo_from_dense(v, 5)); }) == reals{17});
  // Beyond the bound elements are left out.
  CHECK(of([](var v) { return coo_from_dense(v, 2).values; }) == reals{2, 3});
  CHECK(of([](var v) {
          return grad([](var t) { return sum(square(coo_from_dense(t, 6).values)); })(v);
        }) == reals{0, 4, 0, 6, 0, 0, 0, 0, 10, 0, 14, 0});
}

TEST_CASE("rows of entries and their splits are two forms of one") {
  // Rows 0, 2 and 4 are empty, and the last entry is none.
  const auto values = f64({4}, {1, 2, 3, 4});
  const auto rows = eval(
      [](var v) {
        const std::array<std::int64_t, 4> columns{0, 1, 0, 0};
        const std::array<std::int64_t, 6> splits{0, 0, 2, 2, 3, 3};
        return to_coo(csr(v, columns, splits, {5, 2})).rows;
      },
      values);
  CHECK(rows.values == reals{1, 1, 3, 5});
}

TEST_CASE("a function of a sparse matrix has a gradient by it, as a matrix of the same form") {
  const auto d = eval(
      [](var v) {
        const std::array<std::int64_t, 3> i{0, 1, 1}, j{1, 0, 1};
        const auto loss = [i, j](var t) { return sum(square(to_dense(coo(t, i, j, {2, 2})))); };
        return grad(loss)(v);
      },
      f64({3}, {1, 2, 3}));
  CHECK(d.values == reals{2, 4, 6});
}

TEST_CASE("places that are known are looked at, and a fault names the entry") {
  using places = std::vector<std::int64_t>;
  const auto of = [](const places& rows, const places& columns) {
    return fault(
        [&](const vars& x) {
          (void)coo(x[0], rows, columns, {3, 4});
        },
        {{dtype::f64, {2}}});
  };
  CHECK(of({0, 3}, {0, 0}) == "coo: entry 1 names row 3 of 3");
  CHECK(of({0, 2}, {-1, 0}) == "coo: entry 0 names column -1 of 4");
  CHECK(of({0, 2, 1}, {0, 0, 0}).find("are not vectors of one length") != std::string::npos);
  const auto splits = [](const places& columns, const places& row_splits) {
    return fault(
        [&](const vars& x) {
          (void)csr(x[0], columns, row_splits, {2, 4});
        },
        {{dtype::f64, {2}}});
  };
  CHECK(splits({0, 4}, {0, 1, 2}) == "csr: entry 1 names column 4 of 4");
  CHECK(splits({0, 1}, {0, 2, 1}) ==
        "csr: row splits ascend from 0 to at most 2, the number of entries, but split 2 is 1");
  CHECK(splits({0, 1}, {0, 1, 3}).find("split 2 is 3") != std::string::npos);
  CHECK(splits({0, 1}, {0, 2}).find("are not one more than the 2 rows") != std::string::npos);
  CHECK(fault(
            [](const vars& x) {
              const places at{0, 1};
              (void)matmul(coo(x[0], at, at, {3, 4}), x[1]);
            },
            {{dtype::f64, {2}}, {dtype::f64, {5, 2}}})
            .find("has no product with") != std::string::npos);
}
