// Evaluation on the averages of the weights that `optim::averaged` keeps.
#pragma once

#include <algorithm>
#include <cella/runtime/parameters.hpp>
#include <cella/train/kept_tensors.hpp>
#include <cella/train/slots.hpp>
#include <cstring>
#include <string>

namespace cella::train {

/// While it lives, the parameters of `store` have the values of their slots `average`; then they
/// get back what they had. A parameter without an average, or whose average never began, keeps its
/// value. `open` is true in between.
class [[nodiscard]] average_scope {
 public:
  /// Throws `error`, and changes nothing, unless there are averages.
  average_scope(parameter_store& store, const slot_store& slots, bool* open = nullptr)
      : store_(store), open_(open) {
    if (open_ && *open_) throw error("use_averages: the averages are in use already");
    bool known = false;
    for (const named_parameter& p : store.entries()) {
      const named_slot* const s = slots.find("average." + p.name);
      if (!s || s->type != p.type) continue;
      known = true;
      const tensor_ref from = slots.value(*s), to = store.value(p);
      const std::byte *const first = from.data, *const last = first + p.type.bytes();
      if (std::all_of(first, last, [](std::byte b) { return b == std::byte{}; })) continue;
      kept_.keep(to);
      std::memcpy(to.data, first, std::size_t(p.type.bytes()));
    }
    if (kept_.empty()) {
      throw error(known ? "use_averages: no average has begun; make a training step before"
                        : "use_averages: the optimizer keeps no averages; wrap its rule, "
                          "optim::averaged(0.999, rule)");
    }
    if (open_) *open_ = true;
    store_.touch();
  }
  average_scope(const average_scope&) = delete;
  average_scope& operator=(const average_scope&) = delete;
  ~average_scope() {
    kept_.put_back();
    if (open_) *open_ = false;
    store_.touch();
  }

 private:
  parameter_store& store_;
  bool* open_;
  cella::detail::kept_tensors kept_;
};

}  // namespace cella::train
