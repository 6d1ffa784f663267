// The one place that includes xtensor (its headers moved into folders in 0.26), and the bridge
// between xtensor's arrays and the data pipeline's tensors.
#pragma once

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xstorage.hpp>
#if defined(__clang__) && __clang_major__ >= 19
// Since clang 19 two of xtensor 0.24's partial specializations match the shape of every xarray.
namespace xt {
template <>
struct rebind_container<std::ptrdiff_t, svector<std::size_t, 4> > {
  using type = svector<std::ptrdiff_t, 4>;
};
}  // namespace xt
#endif
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

#include <cella/data/tensor.hpp>
#include <cella/graph/error.hpp>
#include <cella/graph/parameter.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace cella::data {

/// An xtensor expression over the elements of `view`, which must outlive it.
template <class T>
auto as_xtensor(tensor_view<T> view) {
  std::vector<std::size_t> extents(view.extents().begin(), view.extents().end());
  return xt::adapt(view.data(), view.size(), xt::no_ownership(), extents);
}

/// The values of a cell's parameter as an xtensor expression, without a copy: writing to it changes
/// the parameter (tell the store by `touch()`). The model that owns the cell must outlive it, and T
/// is its element type. Throws `error` if no model owns the cell yet.
template <class T = float>
auto as_xtensor(const parameter_base& parameter) {
  if (!parameter.data || parameter.element != dtype_of<T>) {
    throw error(text() << "as_xtensor: the parameter " << parameter.extents
                       << (parameter.data
                               ? " has another element type; name it, as in as_xtensor<double>"
                               : " has no values yet: build a model round its cell first"));
  }
  const std::vector<std::size_t> extents(parameter.extents.begin(), parameter.extents.end());
  const std::span<T> values = parameter.values<T>();
  return xt::adapt(values.data(), values.size(), xt::no_ownership(), extents);
}

/// A copy of an xtensor expression as a column of samples; its first axis counts the samples.
/// Throws `error` for a scalar, for more than eight axes and for extents beyond 2^31 - 1.
template <class Expression>
auto as_column(const Expression& expression) {
  using T = std::remove_cv_t<typename Expression::value_type>;
  if (expression.dimension() > std::size_t{max_rank}) {
    throw error("as_column: the expression has " + std::to_string(expression.dimension()) +
                " axes, but a tensor has at most 8; reshape it.");
  }
  shape extents;
  for (auto e : expression.shape()) {
    if (static_cast<std::uint64_t>(e) > std::numeric_limits<std::int32_t>::max()) {
      throw error("as_column: an axis has " + std::to_string(e) +
                  " elements, but at most 2147483647 are allowed; cut the expression.");
    }
    extents.push_back(static_cast<int>(e));
  }
  using layout = std::integral_constant<xt::layout_type, xt::layout_type::row_major>;
  return column<T>(extents, std::vector<T>(expression.template begin<layout::value>(),
                                           expression.template end<layout::value>()));
}

}  // namespace cella::data
