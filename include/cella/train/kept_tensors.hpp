// Tensors that are given their values back.
#pragma once

#include <cella/graph/op_info.hpp>
#include <cstddef>
#include <cstring>
#include <vector>

namespace cella::detail {

/// Copies of tensors, to be written back where they came from.
class kept_tensors {
 public:
  /// Keeps a tensor as it is now.
  void keep(const tensor_ref& t) { all_.push_back({t, {t.data, t.data + t.type.bytes()}}); }
  void put_back() const {
    for (const auto& [tensor, value] : all_) {
      if (!value.empty()) std::memcpy(tensor.data, value.data(), value.size());
    }
  }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }

 private:
  struct kept_tensor {
    tensor_ref tensor;
    std::vector<std::byte> value;
  };
  std::vector<kept_tensor> all_;
};

}  // namespace cella::detail
