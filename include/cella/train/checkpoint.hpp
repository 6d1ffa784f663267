// Checkpoints: a model's tensors by name in a safetensors file. A file is checked as a whole before
// anything is copied, so that a bad one changes nothing.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/position.hpp>
#include <cella/train/slots.hpp>
#include <cella/train/state.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::train {

/// What the names of callbacks' and metrics' tensors begin with; see state.hpp.
inline constexpr std::string_view state_prefix = "cella.fit.";

/// A tensor of a model, by the name that it has in files.
struct checkpoint_tensor {
  std::string name;
  tensor_ref value;
};

/// All parameters and states of a model.
std::vector<checkpoint_tensor> tensors_of(const parameter_store& parameters);
/// What its training needs besides: the optimizer's state, `progress` (steps, epochs, batches in
/// the epoch), and what random operations draw from.
std::vector<checkpoint_tensor> tensors_of_training(const parameter_store& parameters,
                                                   const slot_store& slots, std::int64_t* progress);
/// Parameters and states that match one of the patterns. Throws `error` if one matches nothing.
std::vector<checkpoint_tensor> matching(std::string_view who, const parameter_store& parameters,
                                        const std::vector<std::string>& patterns);
/// Gives tensors that match the first pattern of a pair the name that the second makes of it: each
/// of its `*` takes what its counterpart stands for. Throws `error` if a pair matches nothing or
/// has other numbers of `*`.
void rename(std::vector<checkpoint_tensor>& tensors,
            const std::vector<std::pair<std::string, std::string>>& names);
/// A tensor that keeps its value, or, if it is the average of a weight that does, begins with it.
struct frozen_tensor {
  tensor_ref value;
  tensor_ref weight{};  ///< of an average
};
/// What the patterns of `freeze` describe: parameters with the optimizer's state for them.
std::vector<frozen_tensor> frozen_tensors(const parameter_store& parameters,
                                          const slot_store& slots,
                                          const std::vector<std::string>& patterns);

/// A copy of all parameters and states, one behind the other.
std::vector<std::byte> snapshot(const parameter_store& parameters);
/// Puts them back. Throws `error`, and changes nothing, if the copy is not as long.
void restore(const std::vector<std::byte>& copy, parameter_store& parameters);

/// What is not finite among the tensors: `tensor "fc1.weight" holds nan, at [0,3] of f32[120,400]`,
/// or nothing.
std::string find_not_finite(const std::vector<checkpoint_tensor>& tensors);
/// The same of a batch's columns, in brackets.
std::string spoiled_data(const std::vector<std::pair<text, tensor_ref>>& columns);

/// Throws `file_error` if a tensor that is to be saved is not finite.
void check_to_save(const std::string& path, const std::vector<checkpoint_tensor>& tensors);
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
