// What kept_tensors.hpp declares.
#pragma once

#include <algorithm>
#include <cella/train/kept_tensors.hpp>
#include <cstring>

namespace cella::detail {

CELLA_BODY bool never_written(const tensor_ref& t) {
  return std::all_of(t.data, t.data + t.type.bytes(), [](std::byte b) { return b == std::byte{}; });
}

CELLA_BODY void kept_tensors::keep(const tensor_ref& t, const tensor_ref& weight) {
  all_.push_back({t, {t.data, t.data + t.type.bytes()}, never_written(t) ? weight : tensor_ref{}});
}

CELLA_BODY void kept_tensors::put_back() {
  for (auto& [tensor, value, weight] : all_) {
    // What stays as it is is its own average. Weights stand before what averages them.
    if (weight.data && !never_written(tensor)) {
      value.assign(weight.data, weight.data + weight.type.bytes());
      weight = {};
    }
    if (!value.empty()) std::memcpy(tensor.data, value.data(), value.size());
  }
}

}  // namespace cella::detail
