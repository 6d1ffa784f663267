// Sums over the samples of images in blocks of channels, cut so that threads can share them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cella {

/// Where the sums are few, there are few units of work: then they are taken over slices of the
/// samples, each with sums of its own, which are added afterwards. A thread thus also finds the
/// samples that it has computed itself still near. This many slices, whatever the number of
/// threads.
constexpr int sample_slices(int samples, std::int64_t bytes_of_sums) {
  constexpr std::int64_t few = 96 << 10;
  return bytes_of_sums <= few ? std::clamp(samples, 1, 4) : 1;
}

/// The same for the two sums that a batch norm takes of each of its `blocks` of channels.
constexpr int norm_slices(int samples, int blocks) {
  return blocks < 8 ? std::clamp(samples, 1, 4) : 1;
}

}  // namespace cella
