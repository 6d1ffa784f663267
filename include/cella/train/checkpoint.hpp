// Checkpoints: a model's tensors by name in a safetensors file. A file is checked as a whole before
// anything is copied, so that a bad one changes nothing.
#pragma once

#include <cella/backend/host/finite.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/interop/safetensors.hpp>
#include <cella/train/state.hpp>
#include <cstring>
#include <filesystem>
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
inline std::string find_not_finite(const std::vector<checkpoint_tensor>& tensors) {
  for (const auto& t : tensors) {
    if (all_finite(t.value)) continue;
    return "tensor " + interop::in_quotes(t.name) + " holds " +
           std::string(describe(cella::find_not_finite(t.value), t.value.type).view());
  }
  return {};
}

/// Writes the tensors, replacing the file at once or not at all. Throws `file_error`.
inline void write_checkpoint(const std::filesystem::path& path,
                             const std::vector<checkpoint_tensor>& tensors) {
  std::vector<interop::named_tensor> all;
  for (const auto& t : tensors) {
    all.push_back({t.name, t.value.type, {t.value.data, std::size_t(t.value.type.bytes())}});
  }
  interop::write_safetensors(path, all);
}

namespace detail {

inline std::string quoted(const std::filesystem::path& path) {
  return interop::in_quotes(path.native(), 4096);
}
inline std::string described(const tensor_type& t) { return std::string((text() << t).view()); }

/// The file's tensor for `t`. Throws `file_error` if it is missing or of another type.
inline interop::named_tensor fitting(const std::filesystem::path& path,
                                     const interop::safetensors_file& file,
                                     const checkpoint_tensor& t) {
  const auto found = file.find(t.name);
  if (!found) {
    throw file_error(quoted(path) + " has no tensor " + interop::in_quotes(t.name) +
                     ", which the model has as " + described(t.value.type) +
                     "; load a file of this model, or what they share with load_partial");
  }
  if (found->type != t.value.type) {
    throw file_error(quoted(path) + ": tensor " + interop::in_quotes(t.name) + " is " +
                     described(found->type) + ", but the model has " + described(t.value.type) +
                     "; load a file of this model, or leave this tensor out with load_partial");
  }
  return *found;
}

/// Throws `file_error` if a tensor of the file is not finite.
inline void check_finite(const std::filesystem::path& path, const interop::named_tensor& t) {
  if (!is_floating(t.type.element)) return;
  // Bytes in a file lie anywhere: numbers are looked at in a copy, where they are aligned.
  std::vector<std::byte> copy(t.bytes.begin(), t.bytes.end());
  const std::string found = find_not_finite({{std::string(t.name), {copy.data(), t.type}}});
  if (!found.empty()) {
    throw file_error(quoted(path) + ": " + found +
                     ", and so may others; load a file from before training diverged, or these "
                     "numbers with the option .non_finite = true");
  }
}

inline void copy_values(const checkpoint_tensor& to, const interop::named_tensor& from) {
  if (!from.bytes.empty()) std::memcpy(to.value.data, from.bytes.data(), from.bytes.size());
}

/// Whether `name` is `anything.parameter` or `cella.anything`: what an optimizer saved.
inline bool belongs_to_training(std::string_view name,
                                const std::vector<checkpoint_tensor>& parameters) {
  if (name.starts_with("cella.")) return true;
  for (const auto& p : parameters) {
    const std::size_t rest = name.size() - p.name.size();
    if (name.size() > p.name.size() && name.ends_with(p.name) && name[rest - 1] == '.' &&
        name.find('.') == rest - 1)
      return true;
  }
  return false;
}

}  // namespace detail

/// Reads all of `parameters` and all of `training` (optimizer state, counters) from a file, after
/// `check(file)`. The file may hold optimizer state that nobody asks for, but no other tensor, and
/// only finite numbers unless `non_finite`. With `training` it returns what callbacks and metrics
/// remember. Throws `file_error`, which names the tensor; then nothing is copied.
template <class Check>
state_map read_checkpoint(const std::filesystem::path& path,
                          const std::vector<checkpoint_tensor>& parameters,
                          const std::vector<checkpoint_tensor>& training, bool non_finite,
                          Check check) {
  const auto file = interop::safetensors_file::open(path);
  std::vector<interop::named_tensor> from;
  for (const auto* list : {&parameters, &training}) {
    for (const auto& t : *list) {
      from.push_back(detail::fitting(path, file, t));
      if (!non_finite) detail::check_finite(path, from.back());
    }
  }
  state_map states;
  for (const auto& t : file.tensors()) {
    bool known = training.empty() && detail::belongs_to_training(t.name, parameters);
    for (const auto& f : from) known = known || f.name == t.name;
    if (!training.empty() && t.name.starts_with(state_prefix)) {
      known = true;
      states[std::string(t.name.substr(state_prefix.size()))] = {t.type,
                                                                 {t.bytes.begin(), t.bytes.end()}};
    }
    if (!known) {
      throw file_error(detail::quoted(path) + " has the tensor " + interop::in_quotes(t.name) +
                       ", which the model lacks; load a file of this model, or what they share "
                       "with load_partial");
    }
  }
  check(file, states);
  std::size_t i = 0;
  for (const auto* list : {&parameters, &training}) {
    for (const auto& t : *list) detail::copy_values(t, from[i++]);
  }
  return states;
}

/// Reads these tensors from a file and leaves the file's others alone. Throws `file_error` if one
/// is missing, of another type, or (unless `non_finite`) not finite; then nothing is copied.
inline void read_part(const std::filesystem::path& path,
                      const std::vector<checkpoint_tensor>& tensors, bool non_finite) {
  const auto file = interop::safetensors_file::open(path);
  std::vector<interop::named_tensor> from;
  for (const auto& t : tensors) {
    from.push_back(detail::fitting(path, file, t));
    if (!non_finite) detail::check_finite(path, from.back());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) detail::copy_values(tensors[i], from[i]);
}

}  // namespace cella::train
