// Which samples of each batch one of several readers reads.
#pragma once

#include <cstdint>

namespace cella::data {

/// The samples [first, first + count) of a batch; count -1: all.
struct batch_share {
  std::int64_t first = 0;
  std::int64_t count = -1;
};
/// Of each batch of an epoch; the last may be smaller than the others.
struct batch_shares {
  batch_share each, last;
};

}  // namespace cella::data
