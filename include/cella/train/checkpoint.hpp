// Checkpoints: a model's tensors by name in a safetensors file. A file is checked as a whole before
// anything is copied, so that a bad one changes nothing.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/train/position.hpp>
#include <cella/train/state.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cella::train {

/// What the names of callbacks' and metrics' tensors begin with; see state.hpp.
inline constexpr std::string_view state_prefix = "cella.fit.";

/// A tensor of a model, by the name that it has in files.
struct checkpoint_tensor {
  std::string name;
  tensor_ref value;
};

/// What is not finite among the tensors: `tensor "fc1.weight" holds nan, at [0,3] of f32[120,400]`,
/// or nothing.
std::string find_not_finite(const std::vector<checkpoint_tensor>& tensors);

/// Writes the tensors, replacing the file at once or not at all. Throws `file_error`.
void write_checkpoint(const std::string& path, const std::vector<checkpoint_tensor>& tensors);

/// What a file tells of a training.
struct training_position {
  epoch_progress epoch;
  state_map states;  ///< of callbacks and metrics
};

/// Reads all of `parameters` and all of `training` (optimizer state, counters) from a file. The
/// file may hold optimizer state that nobody asks for, but no other tensor, and only finite numbers
/// unless `non_finite`. With `training` it returns where that stands. Throws `file_error`, which
/// names the tensor; then nothing is copied.
training_position read_checkpoint(const std::string& path,
                                  const std::vector<checkpoint_tensor>& parameters,
                                  const std::vector<checkpoint_tensor>& training, bool non_finite);

/// Reads these tensors from a file and leaves the file's others alone. Throws `file_error` if one
/// is missing, of another type, or (unless `non_finite`) not finite; then nothing is copied.
void read_part(const std::string& path, const std::vector<checkpoint_tensor>& tensors,
               bool non_finite);

}  // namespace cella::train

#if CELLA_HAS_BODIES
#include <cella/train/checkpoint_body.hpp>
#endif
