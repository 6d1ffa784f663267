#include <cella/ops/compute.hpp>
#include <cella/ops/functions.hpp>
#include <span>

#include "support/compare.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

valued_tensor compute_on(const op_info& op, const attributes& options,
                         const std::vector<valued_tensor>& in, const tensor_type& result) {
  bindings memory;
  std::vector<tensor_ref> x;
  for (const valued_tensor& t : in) x.push_back(memory.store(t));
  const tensor_ref y = memory.store({result, reals(std::size_t(result.size()), 0.0)});
  compute(op, options, x, std::span(&y, 1));
  return read(y);
}

}  // namespace

TEST_CASE("an elementwise operation computes every element, also beyond one block") {
  reals x;
  for (int i = 0; i < 1000; ++i) x.push_back(i);
  const auto y = compute_on(info_of<square_op>, {}, {f64({1000}, x)}, {dtype::f64, {1000}});
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(y.values[i] == double(i) * double(i));
}

TEST_CASE("half types are computed in double and rounded once") {
  for (dtype t : {dtype::f16, dtype::bf16}) {
    const valued_tensor x{{t, {1}}, {1}}, y{{t, {1}}, {0.001}};
    const double expected = t == dtype::f16 ? 1.0009765625 : 1.0;
    CHECK(compute_on(info_of<add_op>, {}, {x, y}, {t, {1}}).values == reals{expected});
  }
}

TEST_CASE("operations with options get them") {
  const attributes limits = clamp_op::options{-1, 2};
  CHECK(compute_on(info_of<clamp_op>, limits, {f64({3}, {-5, 0, 5})}, {dtype::f64, {3}}).values ==
        reals{-1, 0, 2});
}

TEST_CASE("no elements are no work") {
  CHECK(compute_on(info_of<add_op>, {}, {f64({0}, {}), f64({0}, {})}, {dtype::f64, {0}})
            .values.empty());
}

TEST_CASE("an operation that nobody can compute is named") {
  static constexpr op_info unknown{.name = "riddle", .kind = op_kind::opaque};
  CHECK_THROWS_WITH_AS(compute_on(unknown, {}, {scalar(1)}, {dtype::f64, {}}),
                       "riddle: this operation has no computation", error);
}

TEST_CASE("strided copies and scatters are inverse on the places they name") {
  bindings memory;
  const tensor_ref from = memory.store(f64({2, 3}, {0, 1, 2, 3, 4, 5}));
  const tensor_ref to = memory.store(f64({3, 2}, reals(6, 0.0)));
  copy_strided(from, 0, {1, 3}, to);  // the transpose
  CHECK(read(to).values == reals{0, 3, 1, 4, 2, 5});
  const tensor_ref back = memory.store(f64({2, 3}, reals(6, 9.0)));
  scatter_strided(to, back, 0, {1, 3});
  CHECK(read(back).values == read(from).values);
  const tensor_ref one = memory.store(scalar(0));
  copy_strided(from, 4, {}, one);
  CHECK(read(one).values == reals{4});
}
