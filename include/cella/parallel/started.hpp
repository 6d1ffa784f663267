// Sums over all ranks in two operations: one starts them, another one has the result, and what
// stands in between runs while they are under way.
#pragma once

#include <cella/parallel/collective.hpp>

namespace cella {

/// Starts the sum of all ranks' x, of which finish_all_reduce has the result.
struct start_all_reduce_op : detail::starts<start_all_reduce_op, collective_options> {
  static constexpr std::string_view name = "start_all_reduce";
  static constexpr std::string_view formula = "the sum of all ranks' x is under way";
  static void start(const communicator& c, const options& a, const tensor_ref& x) {
    c.start_all_reduce(c.self, a.mesh_axis, x);
  }
};

/// (ticket of start_all_reduce, its x) -> the sum of all ranks' x. It has x as an operand because x
/// has to stay as it is until then.
struct finish_all_reduce_op : opaque<finish_all_reduce_op>,
                              not_differentiable,
                              in_place_of_last_operand {
  static constexpr std::string_view name = "finish_all_reduce";
  static constexpr std::string_view formula = "y = the sum of all ranks' x, which was started";
  using options = collective_options;
  static constexpr int operands = 2;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[1];
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = communicator_for(name, a.mesh_axis, a.count);
    c.finish_all_reduce(c.self, a.mesh_axis, in[1], out[0]);
  }
};

}  // namespace cella
