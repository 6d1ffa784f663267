// Messages between ranks in two operations: one sends, another one receives, and what stands in
// between runs while they are under way.
#pragma once

#include <cella/parallel/collective.hpp>

namespace cella {

/// A message to one rank of a group, and the one that is awaited in return from another.
struct exchange_options {
  std::int32_t mesh_axis{};  ///< ranks that differ along this axis of the mesh alone
  std::int32_t count = 1;    ///< how many they are
  std::int32_t to = -1;      ///< the place of the rank that it is sent to; -1: nobody
  std::int32_t from = -1;    ///< and of the one whose message is awaited; -1: nobody's
  std::int32_t tag{};        ///< the same of both
  std::int32_t dimension{};  ///< of what is received, the one whose extent may differ
  std::int32_t extent{};     ///< how large it is; 0: as that of the operand
};

/// Sends x, a copy of which is under way then; finish_exchange has what comes in return.
struct start_exchange_op : detail::starts<start_exchange_op, exchange_options> {
  static constexpr std::string_view name = "start_exchange";
  static constexpr std::string_view formula = "x is under way to another rank";
  static void start(const communicator& c, const options& a, const tensor_ref& x) {
    if (a.to >= 0) c.send(c.self, a.mesh_axis, a.to, a.tag, x);
  }
};

/// (x, tickets of start_exchange) -> what is received, which is of x's type; x, if nothing is. What
/// was started is sent before: it is needed here, so that nobody leaves it out.
struct finish_exchange_op : opaque<finish_exchange_op>, not_differentiable {
  static constexpr std::string_view name = "finish_exchange";
  static constexpr std::string_view formula = "y = what another rank has sent";
  using options = exchange_options;
  static constexpr int operands = -1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t = in[0];
    if (a.extent) t.shape[a.dimension] = a.extent;
    return t;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const communicator& c = communicator_for(name, a.mesh_axis, a.count);
    if (a.from >= 0)
      c.receive(c.self, a.mesh_axis, a.from, a.tag, out[0]);
    else
      std::memcpy(out[0].data, in[0].data, std::size_t(in[0].type.bytes()));
  }
};

}  // namespace cella
