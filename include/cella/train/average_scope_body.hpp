// What average_scope.hpp declares.
#pragma once

#include <cella/train/average_scope.hpp>
#include <cstring>
#include <string>

namespace cella::train {

CELLA_BODY average_scope::average_scope(parameter_store& store, const slot_store& slots, bool* open)
    : store_(store), open_(open) {
  if (open_ && *open_) throw error("use_averages: the averages are in use already");
  bool known = false;
  for (const named_parameter& p : store.entries()) {
    const named_slot* const s = slots.find("average." + p.name);
    if (!s || s->type != p.type) continue;
    known = true;
    const tensor_ref from = slots.value(*s), to = store.value(p);
    if (cella::detail::never_written(from)) continue;
    kept_.keep(to);
    std::memcpy(to.data, from.data, std::size_t(p.type.bytes()));
  }
  if (kept_.empty()) {
    throw error(known ? "use_averages: no average has begun; make a training step before"
                      : "use_averages: the optimizer keeps no averages; wrap its rule, "
                        "optim::averaged(0.999, rule)");
  }
  if (open_) *open_ = true;
  store_.touch();
}

CELLA_BODY average_scope::~average_scope() {
  kept_.put_back();
  if (open_) *open_ = false;
  store_.touch();
}

}  // namespace cella::train
