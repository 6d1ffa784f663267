// CELLA_DEBUG=nan for plans that were made at run time: where the first NaN is made.
#pragma once

#include <cella/backend/cpu/run/loaded_runner.hpp>
#include <cella/backend/cpu/run/watch.hpp>

namespace cella::cpu {

/// Looks at what each step has written. Its table, which programs have as a constant, is made with
/// it. See `run_watched`.
template <class T>
class loaded_watch {
 public:
  explicit loaded_watch(const loaded_runner<T>& of)
      : table_(detail::watch_maker(of.source(), of.plan().steps, of.plan().links).table),
        infinite_(of.source().nodes.size()) {
    // Each input has a memory space of its own, whatever its role.
    table_.inputs.clear();
    for (std::size_t i = 0; i < of.source().inputs.size(); ++i) {
      const node_id n = of.source().input(int(i));
      const tensor_type t = of.source().type(n);
      if (may_be_infinite(t.element))
        table_.inputs.push_back({n, t, {first_argument + std::int32_t(i), 0}});
    }
  }
  [[gnu::cold]] void run(loaded_runner<T>& on) {
    look_at_inputs<lanes<T>>(view_of(table_), on.addresses(), infinite_);
    on.prepare();
    for (std::size_t k = 0; k < on.call_count(); ++k) {
      on.run_call(k);
      if (k + 1 == on.call_count() || on.step_of(k + 1) != on.step_of(k))
        look_at_step<lanes<T>>(view_of(table_), on.addresses(), infinite_, on.step_of(k));
    }
  }

 private:
  growing_watch table_;
  flags infinite_;
};

}  // namespace cella::cpu
