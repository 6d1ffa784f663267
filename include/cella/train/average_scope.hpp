// Evaluation on the averages of the weights that `optim::averaged` keeps.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/kept_tensors.hpp>
#include <cella/train/slots.hpp>

namespace cella::train {

/// While it lives, the parameters of `store` have the values of their slots `average`; then they
/// get back what they had. A parameter without an average, or whose average never began, keeps its
/// value. `open` is true in between.
class [[nodiscard]] average_scope {
 public:
  /// Throws `error`, and changes nothing, unless there are averages.
  average_scope(parameter_store& store, const slot_store& slots, bool* open = nullptr);
  average_scope(const average_scope&) = delete;
  average_scope& operator=(const average_scope&) = delete;
  ~average_scope();

 private:
  parameter_store& store_;
  bool* open_;
  cella::detail::kept_tensors kept_;
};

}  // namespace cella::train

#if CELLA_HAS_BODIES
#include <cella/train/average_scope_body.hpp>
#endif
