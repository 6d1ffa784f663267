// Messages between the ranks that divide the places of attention among themselves.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <cella/parallel/exchange_operations.hpp>
#include <cella/parallel/layout.hpp>

namespace cella::parallel::detail {

/// The ranks of a ring, and the one whose graph is made.
struct attention_ring {
  int mesh_axis{};
  int count{};
  int own{};        ///< the place of this rank
  int first_tag{};  ///< of `tags_of_ring` that no other message has

  constexpr int behind(int steps) const { return (own + steps) % count; }
  constexpr int before(int steps) const { return (own + count - steps) % count; }
  constexpr int next() const { return behind(1); }
  constexpr int previous() const { return before(1); }
};

enum class ring_message : std::uint8_t {
  keys,
  values,
  key_gradients,
  value_gradients,
  queries,
  query_cotangents,
  query_gradients,
  results,
  log_sums,
  means,
  count
};
constexpr int tags_of_ring(int count) { return int(ring_message::count) * (count + 1); }

/// Appends messages between the ranks of a ring to a graph. All ranks append them in the same
/// order, and each is sent before the next one is awaited, so that none waits for ever.
class ring_exchanges {
 public:
  constexpr ring_exchanges(builder& b, const attention_ring& ring) : b_(b), ring_(ring) {}

  /// Sends x to rank `to`, while a message of the same kind and hop is expected from rank `from`;
  /// -1: nobody.
  constexpr void start(ring_message kind, int hop, var x, int to, int from) {
    if (to < 0 && from < 0) return;
    exchange_options e = options_of(kind, hop);
    e.to = to;
    e.from = from;
    tickets_.push_back(b_.emit(bound<start_exchange_op>(), {x.id}, e));
  }
  /// What rank `from` has sent: as x, but with so many places along an axis.
  constexpr var finish(ring_message kind, int hop, var x, int from, int axis, int places) {
    exchange_options e = options_of(kind, hop);
    e.from = from;
    e.dimension = axis;
    e.extent = places;
    return behind_all(x, e);
  }
  /// x, once all that was started is sent.
  constexpr var after_sending(var x) {
    return tickets_.empty() ? x : behind_all(x, options_of(ring_message::keys, 0));
  }

 private:
  constexpr exchange_options options_of(ring_message kind, int hop) const {
    return {ring_.mesh_axis, ring_.count, -1, -1,
            ring_.first_tag + int(kind) * (ring_.count + 1) + hop};
  }
  constexpr var behind_all(var x, const exchange_options& e) {
    ids in{x.id};
    for (node_id t : tickets_) in.push_back(t);
    tickets_.clear();
    return {&b_, b_.emit(bound<finish_exchange_op>(), in, e)};
  }

  builder& b_;
  const attention_ring ring_;
  ids tickets_;
};

}  // namespace cella::parallel::detail
