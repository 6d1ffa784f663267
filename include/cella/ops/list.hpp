// Every operation, one line for each: what tests, documents and files walk over.
#pragma once

#include <array>
#include <cella/ops/activation.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/batch_norm.hpp>
#include <cella/ops/bitwise.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/constant.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/decompositions.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/integer_products.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/print.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/put_rows.hpp>
#include <cella/ops/quantization.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/regions.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/ops/sparse_product.hpp>
#include <cella/ops/special.hpp>
#include <tuple>

namespace cella {

namespace detail {
template <class Nothing, class... Ops>
using operations_behind = operation_list<Ops...>;
}  // namespace detail
#define CELLA_BEHIND(Op) , Op
using all_operations = detail::operations_behind<void CELLA_OPERATIONS(CELLA_BEHIND)>;
#undef CELLA_BEHIND

}  // namespace cella
