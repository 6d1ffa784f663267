// Operations one by one on plain tensors, for eager mode and graphs that exist at run time only:
// the heavy ones run on this back end's kernels, the rest on their reference computation.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/backend.hpp>
#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/convolution/input_gradient.hpp>
#include <cella/backend/cpu/convolution/weight_gradient.hpp>
#include <cella/backend/cpu/gemm/product_of.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/convolution.hpp>

namespace cella::cpu {

namespace detail {

template <class T>
const T* data(const tensor_ref& t) {
  return reinterpret_cast<const T*>(t.data);
}
template <class T>
store_to<T> result(const tensor_ref& t) {
  return {reinterpret_cast<T*>(t.data)};
}

/// False if the contraction is not a matrix product.
template <class T>
bool compute_product(const attributes& options, span<const tensor_ref> in, const tensor_ref& out) {
  const product_form f =
      form_of_product(options.as<matmul_op::options>(), {in[0].type, in[1].type, out.type});
  if (!f.fits) return false;
  const product<T> p = product_of<T>(f, data<T>(in[0]), data<T>(in[1]));
  const aligned_buffer scratch(std::size_t(gemm_scratch(p)));
  gemm(p, result<T>(out), scratch.data());
  return true;
}

template <class T>
void compute_convolution(const op_info& op, const attributes& options, span<const tensor_ref> in,
                         const tensor_ref& out) {
  const window w = options.as<convolution_options>().window;
  const bool forward = &op == &info_of<convolution_op>;
  const bool backward = &op == &info_of<convolution_input_gradient_op>;
  const tensor_type image = backward ? out.type : in[0].type;
  const tensor_type filter = forward || backward ? in[1].type : out.type;
  const convolution_extents e{
      image[0],
      image[1],
      filter[0],
      w.groups,
      {image[2], filter[2], w.stride[0], w.before[0], w.after[0], w.dilation[0]},
      {image[3], filter[3], w.stride[1], w.before[1], w.after[1], w.dilation[1]}};
  auto run = [&](std::int64_t bytes, int units, auto kernel) {
    const aligned_buffer scratch{std::size_t(bytes)};
    kernel(scratch.data(), work_range{0, units});
  };
  if (forward) {
    run(convolution_scratch<T>(e), convolution_units<T>(e), [&](std::byte* s, work_range u) {
      convolution(e, data<T>(in[0]), data<T>(in[1]), result<T>(out), s, u);
    });
  } else if (backward) {
    run(convolution_input_gradient_scratch<T>(e), convolution_input_gradient_units<T>(e),
        [&](std::byte* s, work_range u) {
          convolution_input_gradient(e, data<T>(in[1]), data<T>(in[0]), result<T>(out), s, u);
        });
  } else {
    run(convolution_weight_gradient_scratch<T>(e), convolution_weight_gradient_units<T>(e),
        [&](std::byte* s, work_range u) {
          convolution_weight_gradient(e, data<T>(in[0]), data<T>(in[1]), result<T>(out), s, u);
        });
  }
}

template <class T>
bool compute_fast(const op_info& op, const attributes& options, span<const tensor_ref> in,
                  const tensor_ref& out) {
  if (&op == &info_of<matmul_op>) return compute_product<T>(options, in, out);
  const bool convolves = &op == &info_of<convolution_op> ||
                         &op == &info_of<convolution_input_gradient_op> ||
                         &op == &info_of<convolution_weight_gradient_op>;
  if (convolves) compute_convolution<T>(op, options, in, out);
  return convolves;
}

}  // namespace detail

template <class... Ts>
void backend::compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
                      span<const tensor_ref> out) {
  const dtype element = out[0].type.element;
  const bool done =
      (... || (element == dtype_of<Ts> && detail::compute_fast<Ts>(op, options, in, out[0])));
  if (!done) cella::compute(op, options, in, out);
}

}  // namespace cella::cpu
