// What slots.hpp declares.
#pragma once

#include <cella/plan/memory.hpp>
#include <cella/train/slots.hpp>
#include <cstring>

namespace cella {

CELLA_BODY bool named_slot::is_shared() const {
  for (const std::string_view of_all :
       {"loss_scale.", "steps_with_overflow.", "steps_without_overflow.", "lbfgs_scale."}) {
    if (name.starts_with(of_all)) return true;
  }
  return false;
}

CELLA_BODY void slot_store::lay_out(const graph& g) {
  std::int64_t size = 0;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.inputs[i].role != input_role::slot) continue;
    entries_.push_back({std::string(g.view(g.inputs[i].name)), g.type(g.input(int(i))), size});
    size += align_up(entries_.back().type.bytes());
  }
  memory_ = aligned_buffer(std::size_t(size));
}

CELLA_BODY const named_slot* slot_store::find(std::string_view name) const {
  for (const auto& e : entries_) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

CELLA_BODY void slot_store::clear() {
  if (bytes()) std::memset(data(), 0, bytes());
}

}  // namespace cella
