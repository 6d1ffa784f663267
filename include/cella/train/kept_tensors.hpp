// Tensors that are given their values back.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cstddef>
#include <vector>

namespace cella::detail {

/// Copies of tensors, to be written back where they came from.
class kept_tensors {
 public:
  /// Keeps a tensor as it is now.
  void keep(const tensor_ref& t);
  void put_back() const;
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

#if CELLA_HAS_BODIES
#include <cella/train/kept_tensors_body.hpp>
#endif
