// The memory of an optimizer's state: one block, laid out as programs expect it, by name.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/graph/graph.hpp>
#include <cella/graph/once.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cella {

/// One tensor of an optimizer's state: `momentum.conv1.weight`.
struct named_slot {
  std::string name;
  tensor_type type;
  std::int64_t offset{};

  /// Whether all parameters share it, in the name of the first: it is none of that parameter's.
  bool is_shared() const;
};

/// Owns the optimizer's state, zero at first. Compiled programs and the interpreter work on the
/// same bytes, so that training can change from one to the other between two steps.
class slot_store {
 public:
  slot_store() = default;
  /// Room for the slot inputs of a training step's graph, in their order.
  explicit slot_store(const graph& g) { lay_out(g); }

  const std::vector<named_slot>& entries() const { return entries_; }
  std::byte* data() const { return memory_.data(); }
  std::size_t bytes() const { return memory_.size(); }
  tensor_ref value(const named_slot& s) const { return {memory_.data() + s.offset, s.type}; }
  /// The slot of this name, or null.
  const named_slot* find(std::string_view name) const;
  /// Back to the state before the first step.
  void clear();

 private:
  void lay_out(const graph& g);

  std::vector<named_slot> entries_;
  aligned_buffer memory_;
};

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/train/slots_body.hpp>
#endif
