// Where training stands: what a model remembers of fit, in memory and in checkpoints.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/state.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cella::train {

/// The largest count of steps, epochs or samples: a double holds it exactly.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 53;

enum class event : std::int64_t { none, epoch_begin, batch_end, epoch_end };

/// How far an epoch has come, beyond the counters of the model.
struct epoch_progress {
  event last = event::none;      ///< what callbacks were told last; `none` between two epochs
  std::vector<std::string> due;  ///< names of the callbacks that were not told yet
  fit_state now;                 ///< after the last batch
  metrics::loss mean;            ///< of the batches behind

  void state(state_visitor& v);
  /// Whether a file may say this of a model that stands after `batch` batches of an epoch.
  bool consistent(std::int64_t batch) const;
};

/// What a model remembers of fit.
struct fit_memory {
  epoch_progress epoch;
  state_map states;               ///< of callbacks and metrics
  bool goes_on = false;           ///< the next call of fit hands `states` to them
  std::function<void()> refresh;  ///< while fit runs: brings `epoch` and `states` up to date

  state_map write();
};

}  // namespace cella::train

#if CELLA_HAS_BODIES
#include <cella/train/position_body.hpp>
#endif
