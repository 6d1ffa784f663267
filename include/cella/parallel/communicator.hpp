// How a program that is one of many ranks reaches the others: a small struct of functions, which a
// transport fills in.
#pragma once

#include <array>
#include <cella/graph/error.hpp>
#include <cella/graph/op_info.hpp>
#include <string_view>

namespace cella {

/// What collective operations exchange their numbers through. Every rank of a group calls the same
/// functions in the same order; a group is all ranks that differ in their place along one axis of
/// the mesh alone. Operands and results are plain, row-major, and do not overlap; but a sum may lie
/// where its operand does.
struct communicator {
  struct group {
    int size = 1;
    int coordinate = 0;
  };
  static constexpr int max_groups = 3;

  void* self{};
  std::array<group, max_groups> groups{};  ///< one for each axis of the mesh

  /// out = the sum of all ranks' in.
  void (*all_reduce)(void* self, int axis, const tensor_ref& in, const tensor_ref& out){};
  /// The same in two calls. Sums of one axis are finished in the order in which they were started;
  /// until then their operands stay as they are.
  void (*start_all_reduce)(void* self, int axis, const tensor_ref& in){};
  void (*finish_all_reduce)(void* self, int axis, const tensor_ref& in, const tensor_ref& out){};
  /// Sends a tensor to the rank at place `to` of the group, and does not wait until it is received:
  /// the message is a copy. Messages of one tag arrive in their order.
  void (*send)(void* self, int axis, int to, int tag, const tensor_ref& in){};
  /// Waits for the next message of this tag.
  void (*receive)(void* self, int axis, int from, int tag, const tensor_ref& out){};
  /// out = all ranks' in, one behind the other along `dimension`.
  void (*all_gather)(void* self, int axis, int dimension, const tensor_ref& in,
                     const tensor_ref& out){};
  /// out = this rank's part along `dimension` of the sum of all ranks' in.
  void (*reduce_scatter)(void* self, int axis, int dimension, const tensor_ref& in,
                         const tensor_ref& out){};
  /// out = this rank's part along `cut` of what all ranks' in are, one behind the other along
  /// `joined`.
  void (*all_to_all)(void* self, int axis, int joined, int cut, const tensor_ref& in,
                     const tensor_ref& out){};
};

namespace detail {
inline thread_local const communicator* current_communicator = nullptr;
}

/// While it lives, collective operations of this thread go through a communicator.
class communicator_scope {
 public:
  explicit communicator_scope(const communicator& c) : before_(detail::current_communicator) {
    detail::current_communicator = &c;
  }
  communicator_scope(const communicator_scope&) = delete;
  communicator_scope& operator=(const communicator_scope&) = delete;
  ~communicator_scope() { detail::current_communicator = before_; }

 private:
  const communicator* before_;
};

/// The communicator of this thread. Throws `error` unless it has `count` ranks along the axis.
inline const communicator& communicator_for(std::string_view op, int axis, int count) {
  const communicator* c = detail::current_communicator;
  if (!c)
    throw error(text() << op << ": this program is one of " << count
                       << " ranks, but runs alone; start it on ranks: see docs/parallel.md");
  const int size = c->groups[std::size_t(axis)].size;
  if (size != count)
    throw error(text() << op << ": this program was made for " << count << " ranks along axis "
                       << axis << " of the mesh, but there are " << size);
  return *c;
}

}  // namespace cella
