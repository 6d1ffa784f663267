// What kept_tensors.hpp declares.
#pragma once

#include <cella/train/kept_tensors.hpp>
#include <cstring>

namespace cella::detail {

CELLA_BODY void kept_tensors::keep(const tensor_ref& t) {
  all_.push_back({t, {t.data, t.data + t.type.bytes()}});
}

CELLA_BODY void kept_tensors::put_back() const {
  for (const auto& [tensor, value] : all_) {
    if (!value.empty()) std::memcpy(tensor.data, value.data(), value.size());
  }
}

}  // namespace cella::detail
