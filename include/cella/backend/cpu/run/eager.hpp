// Operations one by one on plain tensors, for eager mode and graphs that exist at run time only:
// those that have a kernel of their own run on it, the rest on their reference computation.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/backend.hpp>
#include <cella/backend/cpu/lower/convolutions.hpp>
#include <cella/backend/cpu/lower/elements.hpp>
#include <cella/backend/cpu/lower/integers.hpp>
#include <cella/backend/cpu/lower/lines.hpp>
#include <cella/backend/cpu/lower/matrices.hpp>
#include <cella/backend/cpu/lower/movement.hpp>
#include <cella/backend/cpu/lower/pooling.hpp>
#include <cella/backend/cpu/lower/products.hpp>
#include <cella/backend/cpu/lower/rows.hpp>
#include <cella/backend/cpu/lower/single_step.hpp>
#include <cella/backend/cpu/lower/special.hpp>
#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/ops/compute.hpp>
#include <cella/plan/uses.hpp>

namespace cella::cpu {

/// The records of kernels that compute one operation on plain tensors, and need no memory that a
/// plan would have to give them. Programs that compile them themselves do without those of rarer
/// operations; others have all operations (ops/list.hpp).
using common_single_records =
    join_records<record_list<product_record, convolution_record, convolution_input_gradient_record,
                             convolution_weight_gradient_record, softmax_record,
                             best_position_record, permute_record, gather_record, scatter_record>,
                 pooling_records>::type;
using single_records = std::conditional_t<
    has_compiled_kernels,
    join_records<common_single_records, record_list<fold_record>, element_records, line_records,
                 integer_records, special_records, matrix_records>::type,
    common_single_records>;

namespace detail {

/// The step that the node of a `graph_of_one` is; of kind `generic` if it has no kernel.
inline plan_step step_of_one(const graph& g, dtype element) {
  plan_step s{};
  s.anchor = node_id(g.nodes.size()) - 1;
  const node& x = g.nodes[std::size_t(s.anchor)];
  const auto convolves = [&](step_kind kind, const tensor_type& image, const tensor_type& filter) {
    s.kind = kind;
    s.shape = extents_of_convolution(image, filter, x.attributes.as<convolution_options>().window);
  };
  const auto operand = [&](int k) { return g.type(g.operand(s.anchor, k)); };
  s.kind = step_kind::generic;
  if (!has_elements(g, s.anchor)) return s;
  if (is<matmul_op>(x)) {
    if (x.type.element == element && form_of_product(g, s.anchor).fits) s.kind = step_kind::product;
  } else if (is<convolution_op>(x)) {
    convolves(step_kind::convolution, operand(0), operand(1));
  } else if (is<convolution_input_gradient_op>(x)) {
    convolves(step_kind::convolution_input_gradient, x.type, operand(1));
  } else if (is<convolution_weight_gradient_op>(x)) {
    convolves(step_kind::convolution_weight_gradient, operand(0), x.type);
  } else {
    s.kind = loaded_planning::kernel_alone(g, s.anchor, element);
  }
  // All results are read.
  s.output_count = std::max(1, x.result_count);
  for (int k = 0; k < s.output_count; ++k) s.outputs[std::size_t(k)].value = s.anchor;
  return s;
}

template <class Record, class T>
void run_record(const single_step<T>& step) {
  const aligned_buffer scratch(std::size_t(Record::scratch_bytes(step)));
  Record::template run<0>(step, memory{}, {0, Record::units(step, 0)}, scratch.data());
}
/// Whether it computes integers, for which there are kernels whatever T is.
inline bool computes_integers(const op_info& op, const attributes& options) {
  node alone{};
  alone.op = &op;
  alone.attributes = options;
  return integer_kernel(alone) != step_kind::generic;
}
/// False if the operation has no kernel for these types.
template <class T>
bool compute_by_kernel(const op_info& op, const attributes& options, span<const tensor_ref> in,
                       span<const tensor_ref> out) {
  if (op.pointwise || in.empty()) return false;
  if (in[0].type.element != dtype_of<T> && !computes_integers(op, options)) return false;
  const graph g = graph_of_one(op, options, in, out);
  const plan_step s = step_of_one(g, dtype_of<T>);
  const std::size_t found = single_records::find(s);
  const single_step<T> step{g, s, in, out};
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    ((found == K ? run_record<single_records::at<K>>(step) : void()), ...);
  }
  (std::make_index_sequence<single_records::size>{});
  return found < single_records::size;
}

}  // namespace detail

template <class... Ts>
void backend::compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
                      span<const tensor_ref> out) {
  const bool done = (... || detail::compute_by_kernel<Ts>(op, options, in, out));
  if (!done) cella::compute(op, options, in, out);
}

}  // namespace cella::cpu
