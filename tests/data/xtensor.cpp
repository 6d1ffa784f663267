#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/dataset.hpp>
#include <cella/data/xtensor.hpp>
#include <cella/nn/layers.hpp>
#include <cella/runtime/parameters.hpp>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

using namespace cella;
using namespace cella::data;

TEST_CASE("an xtensor expression becomes a column in row-major order") {
  const xt::xtensor<float, 2> x{{1, 2, 3}, {4, 5, 6}};
  const auto plain = as_column(x);
  CHECK(plain.extents() == shape{2, 3});
  CHECK(std::ranges::equal(plain.view(), std::vector<float>{1, 2, 3, 4, 5, 6}));
  const xt::xtensor<float, 2, xt::layout_type::column_major> y = x;
  CHECK(std::ranges::equal(as_column(y).view(), plain.view()));
  CHECK(std::ranges::equal(as_column(x + 1.f).view(), std::vector<float>{2, 3, 4, 5, 6, 7}));
}

TEST_CASE("batches are seen as xtensor arrays without a copy") {
  const tensor_dataset d(as_column(xt::xtensor<float, 2>{{1, 2}, {3, 4}, {5, 6}}));
  for (auto& b : d.batch(2).epoch(0)) {
    auto x = as_xtensor(b.column<0>());
    CHECK(x.shape(0) == std::size_t(b.size()));
    CHECK(x(0, 1) == float(4 * b.index() + 2));
    x(0, 0) = 9;
    CHECK(b.column<0>()[0] == 9);
  }
}

TEST_CASE_TEMPLATE("columns of all numbers go there and back", T, std::int16_t, std::uint16_t,
                   std::uint32_t, std::uint64_t, std::complex<float>, std::complex<double>) {
  const T least(std::numeric_limits<T>::lowest()), largest(std::numeric_limits<T>::max());
  const xt::xtensor<T, 2> x{{T(1), least}, {largest, T(7)}};
  const tensor_dataset d(as_column(x));
  for (auto& b : d.batch(2).epoch(0)) CHECK(as_xtensor(b.template column<0>()) == x);
}

TEST_CASE("scalars and expressions of too many axes are refused") {
  CHECK_THROWS_AS(as_column(xt::xarray<float>(1.f)), error);
  CHECK_THROWS_AS(as_column(xt::xarray<float>(std::vector<std::size_t>(9, 1))), error);
}

TEST_CASE("a parameter is seen as an xtensor without a copy") {
  cella::nn::dense<3, 2> cell;
  CHECK_THROWS_AS(cella::data::as_xtensor(cell.weight), const cella::error&);
  cella::parameter_store store(cell, 1);
  auto w = cella::data::as_xtensor(cell.weight);
  REQUIRE(w.shape().size() == 2);
  CHECK(w.shape()[0] == 2);
  CHECK(w.shape()[1] == 3);
  w(1, 2) = 42;
  CHECK(cell.weight.values()[5] == 42.0f);
  CHECK_THROWS_AS(cella::data::as_xtensor<double>(cell.weight), const cella::error&);
}
