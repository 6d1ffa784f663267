// The derivative of an operation is asked for that has none.
//
// An operation that is not_differentiable can be computed, and nothing else. custom_vjp gives a
// function a derivative of its own, here as an estimate that of the identity; stop_gradient says
// that none is to be taken through the operation.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/gradient.hpp>

namespace no_derivative {
using namespace cella;

/// The elements in ascending order.
struct sort_op : opaque<sort_op>, not_differentiable {
  static constexpr std::string_view name = "sort";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};
constexpr var sort(operand x) { return emit<sort_op>({}, x.at(), x.in(*x.owner())); }

struct Wrong {
  constexpr var operator()(var x) const {
    return grad([](var v) { return sum(square(sort(v))); })(x);
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    const auto sorted =
        custom_vjp([](var v) { return sort(v); }, [](var, var, var dy) { return dy; });
    return grad([sorted](var v) { return sum(square(sorted(v))); })(x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32>>;

inline void sort_op::compute(const attributes&, span<const tensor_ref> in,
                             span<const tensor_ref> out) {
  auto* y = reinterpret_cast<float*>(out[0].data);
  std::memcpy(y, in[0].data, std::size_t(in[0].type.bytes()));
  std::sort(y, y + in[0].type.size());
}

}  // namespace no_derivative
