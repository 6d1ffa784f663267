// Tensors that are given their values back.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cstddef>
#include <vector>

namespace cella::detail {

/// Whether all bytes are zero, as those of a slot are before the first step.
bool never_written(const tensor_ref& t);

/// Copies of tensors, to be written back where they came from.
class kept_tensors {
 public:
  /// Keeps a tensor as it is now. If it is zero and averages a `weight` that is kept as well, it
  /// gets that value where it has begun by the time that it is put back.
  void keep(const tensor_ref& t, const tensor_ref& weight = {});
  void put_back();
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }

 private:
  struct kept_tensor {
    tensor_ref tensor;
    std::vector<std::byte> value;
    tensor_ref weight;  ///< of an average that has not begun
  };
  std::vector<kept_tensor> all_;
};

}  // namespace cella::detail

#if CELLA_HAS_BODIES
#include <cella/train/kept_tensors_body.hpp>
#endif
