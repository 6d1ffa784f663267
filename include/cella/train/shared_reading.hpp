// The batches of an epoch, of which each rank of a mesh reads its share.
#pragma once

#include <cella/data/batch_share.hpp>
#include <cella/train/mesh_trainer.hpp>
#include <cstdint>

namespace cella::detail {

/// Batches of a loader for one of many ranks, or for a model alone. Of a loader that is none of the
/// library's every rank reads all.
template <class Loader>
class shared_reading {
 public:
  static constexpr bool is_shared = requires(const Loader& l, data::batch_shares s) {
    l.samples();
    l.epoch(0, 0, s);
  };

  /// `share_of(rows)`: what this rank reads of a batch of so many samples.
  template <class Share>
  shared_reading(const Loader& from, bool on_mesh, Share share_of) : from_(from) {
    if constexpr (is_shared) {
      last_ = from.samples() - (from.batches() - 1) * from.batch_size();
      if (on_mesh) shares_ = {share_of(from.batch_size()), share_of(last_)};
    }
  }

  auto epoch(std::int64_t e, std::int64_t first_batch) const {
    if constexpr (is_shared)
      return from_.epoch(e, first_batch, shares_);
    else if constexpr (requires { from_.epoch(e, first_batch); })
      return from_.epoch(e, first_batch);
    else if (first_batch > 0)
      throw error(
          "fit: this loader cannot begin in the middle of an epoch; give its function epoch the "
          "number of the first batch as a second parameter, or call leave_epoch first");
    else
      return from_.epoch(e);
  }
  /// The samples of the whole batch.
  template <class Batch>
  std::int64_t rows(const Batch& b) const {
    if constexpr (!is_shared)
      return b.size();
    else
      return b.index() + 1 < from_.batches() ? from_.batch_size() : last_;
  }
  /// Those that were read.
  template <class Batch>
  data::batch_share share(const Batch& b) const {
    if constexpr (!is_shared)
      return {0, b.size()};
    else
      return {(b.index() + 1 < from_.batches() ? shares_.each : shares_.last).first, b.size()};
  }

 private:
  const Loader& from_;
  std::int64_t last_{};
  data::batch_shares shares_;
};

}  // namespace cella::detail
