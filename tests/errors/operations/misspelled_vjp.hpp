// A rule of an operation is misspelled.
//
// The compiler cannot know that vpj was meant to be vjp, but an opaque operation without vjp is an
// error.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>

namespace misspelled_vjp {
using namespace cella;

/// x / |x|
struct wrong_direction_op : opaque<wrong_direction_op> {
  static constexpr std::string_view name = "direction";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr void vpj(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var y = n.output();
    dx[0] = (dy[0] - y * sum(y * dy[0])) * rsqrt(sum(square(n.operand(0))));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

// Mended:

struct direction_op : opaque<direction_op> {
  static constexpr std::string_view name = "direction";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var y = n.output();
    dx[0] = (dy[0] - y * sum(y * dy[0])) * rsqrt(sum(square(n.operand(0))));
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// The program of a cell that applies an operation.
template <class Op>
struct applied {
  constexpr var operator()(var x) const { return emit<Op>({}, std::source_location::current(), x); }
};
template <class Op>
using program_of = program<applied<Op>, false, dtype::f32, tensor<dtype::f32, 32>>;

inline void direction_op::compute(const attributes&, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  double squares = 0;
  for (std::int64_t i = 0; i < in[0].type.size(); ++i)
    squares += read_element(in[0], i) * read_element(in[0], i);
  for (std::int64_t i = 0; i < in[0].type.size(); ++i)
    write_element(out[0], i, read_element(in[0], i) / std::sqrt(squares));
}

}  // namespace misspelled_vjp
