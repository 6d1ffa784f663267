// What checkpoint.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/host/finite.hpp>
#include <cella/graph/name_pattern.hpp>
#include <cella/interop/safetensors.hpp>
#include <cella/train/checkpoint.hpp>
#include <cstdint>
#include <cstring>

namespace cella::train {

CELLA_BODY std::vector<checkpoint_tensor> tensors_of(const parameter_store& parameters) {
  std::vector<checkpoint_tensor> all;
  for (const auto& e : parameters.entries()) all.push_back({e.name, parameters.value(e)});
  return all;
}

CELLA_BODY std::vector<checkpoint_tensor> tensors_of_training(const parameter_store& parameters,
                                                              const slot_store& slots,
                                                              std::int64_t* progress) {
  std::vector<checkpoint_tensor> all;
  for (const auto& s : slots.entries()) all.push_back({s.name, slots.value(s)});
  const auto numbers = [](std::int64_t* p, int n) {
    return tensor_ref{reinterpret_cast<std::byte*>(p), {dtype::i64, {n}}};
  };
  all.push_back({"cella.progress", numbers(progress, 3)});
  all.push_back({"cella.random", numbers(parameters.random_state(), 2)});
  return all;
}

CELLA_BODY std::vector<checkpoint_tensor> matching(std::string_view who,
                                                   const parameter_store& parameters,
                                                   const std::vector<std::string>& patterns) {
  std::vector<checkpoint_tensor> all = tensors_of(parameters), chosen;
  for (const auto& p : patterns) {
    if (std::ranges::any_of(all, [&](const auto& t) { return matches(p, t.name); })) continue;
    const bool has_parts = std::ranges::any_of(
        all, [&](const auto& t) { return std::string_view(t.name).starts_with(p + "."); });
    throw error(std::string(who) + ": no parameter matches " + interop::in_quotes(p) +
                (has_parts ? "; for all of this layer write " + interop::in_quotes(p + ".*")
                           : "; this model begins with " +
                                 interop::in_quotes(all.empty() ? "" : all[0].name)));
  }
  for (auto& t : all) {
    if (std::ranges::any_of(patterns, [&](const auto& p) { return matches(p, t.name); }))
      chosen.push_back(std::move(t));
  }
  return chosen;
}

namespace detail {
/// What the `*` of a pattern stand for in a name that matches it: each for as little as can be.
CELLA_BODY std::vector<std::string_view> wildcards_in(std::string_view name,
                                                      std::string_view pattern) {
  std::vector<std::string_view> found;
  name.remove_prefix(std::min(pattern.find('*'), pattern.size()));
  for (std::size_t star = pattern.find('*'); star != pattern.npos;) {
    const std::size_t next = pattern.find('*', star + 1);
    const std::string_view behind = pattern.substr(star + 1, next - star - 1);
    const std::size_t end = next == pattern.npos ? name.size() - behind.size() : name.find(behind);
    found.push_back(name.substr(0, end));
    name.remove_prefix(end + behind.size());
    star = next;
  }
  return found;
}
}  // namespace detail

CELLA_BODY void rename(std::vector<checkpoint_tensor>& tensors,
                       const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [own, in_file] : names) {
    const std::string pair = interop::in_quotes(own) + ", " + interop::in_quotes(in_file);
    if (std::ranges::count(own, '*') != std::ranges::count(in_file, '*'))
      throw error("names: {" + pair + "} has not as many * on both sides");
    if (std::ranges::none_of(tensors, [&](const auto& t) { return matches(own, t.name); }))
      throw error("names: none of the chosen parameters matches " + interop::in_quotes(own));
  }
  for (auto& t : tensors) {
    const auto pair =
        std::ranges::find_if(names, [&](const auto& n) { return matches(n.first, t.name); });
    if (pair == names.end()) continue;
    std::string renamed = pair->second;
    std::size_t at = 0;
    for (std::string_view part : detail::wildcards_in(t.name, pair->first)) {
      at = renamed.find('*', at);
      renamed.replace(at, 1, part);
      at += part.size();
    }
    t.name = std::move(renamed);
  }
}

CELLA_BODY std::vector<frozen_tensor> frozen_tensors(const parameter_store& parameters,
                                                     const slot_store& slots,
                                                     const std::vector<std::string>& patterns) {
  std::vector<frozen_tensor> all;
  for (const auto& t : matching("freeze", parameters, patterns)) {
    all.push_back({t.value});
    for (const auto& s : slots.entries()) {
      if (s.name.size() <= t.name.size() || s.name.substr(s.name.find('.') + 1) != t.name ||
          s.is_shared())
        continue;
      const bool averages = s.name.starts_with("average.") && s.type == t.value.type;
      all.push_back({slots.value(s), averages ? t.value : tensor_ref{}});
    }
  }
  return all;
}

CELLA_BODY std::vector<std::byte> snapshot(const parameter_store& parameters) {
  std::vector<std::byte> all;
  for (const auto& e : parameters.entries()) {
    const tensor_ref v = parameters.value(e);
    all.insert(all.end(), v.data, v.data + v.type.bytes());
  }
  return all;
}

CELLA_BODY void restore(const std::vector<std::byte>& copy, parameter_store& parameters) {
  std::size_t at = 0;
  for (const auto& e : parameters.entries()) at += std::size_t(e.type.bytes());
  if (at != copy.size()) {
    throw error("restore: the snapshot has " + std::to_string(copy.size()) +
                " bytes, but this model's have " + std::to_string(at) +
                "; hand over a snapshot of this model");
  }
  at = 0;
  for (const auto& e : parameters.entries()) {
    const auto bytes = std::size_t(e.type.bytes());
    if (bytes) std::memcpy(parameters.value(e).data, copy.data() + at, bytes);
    at += bytes;
  }
  parameters.touch();
}

CELLA_BODY std::string find_not_finite(const std::vector<checkpoint_tensor>& tensors) {
  for (const auto& t : tensors) {
    if (all_finite(t.value)) continue;
    return "tensor " + interop::in_quotes(t.name) + " holds " +
           std::string(describe(cella::find_not_finite(t.value), t.value.type).view());
  }
  return {};
}

CELLA_BODY std::string spoiled_data(const std::vector<std::pair<text, tensor_ref>>& columns) {
  std::vector<checkpoint_tensor> all;
  for (const auto& [name, values] : columns) all.push_back({std::string(name.view()), values});
  const std::string found = find_not_finite(all);
  return found.empty() ? found : " (of the batch's data " + found + ")";
}

CELLA_BODY void check_to_save(const std::string& path,
                              const std::vector<checkpoint_tensor>& tensors) {
  const std::string fault = find_not_finite(tensors);
  if (fault.empty()) return;
  throw file_error("save: " + fault + "; " + interop::in_quotes(path, 4096) +
                   " is left as it is: load weights from before training diverged, or save these "
                   "with the option .non_finite = true");
}

CELLA_BODY void write_checkpoint(const std::string& path,
                                 const std::vector<checkpoint_tensor>& tensors) {
  std::vector<interop::named_tensor> all;
  for (const auto& t : tensors) {
    all.push_back({t.name, t.value.type, {t.value.data, std::size_t(t.value.type.bytes())}});
  }
  interop::write_safetensors(path, all);
}

namespace detail {

inline std::string quoted(const std::string& path) { return interop::in_quotes(path, 4096); }
inline std::string described(const tensor_type& t) { return std::string((text() << t).view()); }

/// The file's tensor for `t`. Throws `file_error` if it is missing or of another type.
inline interop::named_tensor fitting(const std::string& path, const interop::safetensors_file& file,
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
inline void check_finite(const std::string& path, const interop::named_tensor& t) {
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

/// Takes the position in an epoch out of what a file tells. Throws `file_error` if its counters
/// cannot be.
inline epoch_progress read_epoch(const interop::safetensors_file& file, state_map& states) {
  const auto refuse = [](std::string_view name, const std::string& what) {
    throw file_error("tensor " + interop::in_quotes(name) + " holds " + what +
                     "; the file is damaged: write it anew");
  };
  std::array<std::int64_t, 3> counts{};
  std::array<std::int64_t, 2> random{};
  file.at("cella.progress").copy_to<std::int64_t>(counts);
  file.at("cella.random").copy_to<std::int64_t>(random);
  const auto check_count = [&](std::string_view name, std::int64_t n) {
    if (n < 0) refuse(name, "the negative count " + std::to_string(n));
    if (n > most_counted) refuse(name, "the count " + std::to_string(n) + ", above 2^53");
  };
  for (const std::int64_t n : counts) check_count("cella.progress", n);
  check_count("cella.random", random[1]);
  const auto [steps, epochs, batch] = counts;
  if (epochs + batch > steps) {
    refuse("cella.progress", std::to_string(epochs) + " epochs and " + std::to_string(batch) +
                                 " batches of another, but only " + std::to_string(steps) +
                                 " steps, which is fewer");
  }
  epoch_progress epoch;
  if (states.lower_bound("epoch.") != states.lower_bound("epoch/")) {
    state_visitor visitor(states, "epoch", true);
    epoch.state(visitor);
    states.erase(states.lower_bound("epoch."), states.lower_bound("epoch/"));
    if (!epoch.consistent(batch))
      refuse("cella.fit.epoch.batches", "another position in the epoch than cella.progress");
  } else if (batch > 0) {  // written by older versions, which tell no more
    epoch.last = event::batch_end;
  }
  epoch.now.record.epoch = epochs - (epoch.last == event::epoch_end);
  return epoch;
}

}  // namespace detail

CELLA_BODY training_position read_checkpoint(const std::string& path,
                                             const std::vector<checkpoint_tensor>& parameters,
                                             const std::vector<checkpoint_tensor>& training,
                                             bool non_finite) {
  const auto file = interop::safetensors_file::open(path);
  std::vector<interop::named_tensor> from;
  for (const auto* list : {&parameters, &training}) {
    for (const auto& t : *list) {
      from.push_back(detail::fitting(path, file, t));
      if (!non_finite) detail::check_finite(path, from.back());
    }
  }
  training_position found;
  for (const auto& t : file.tensors()) {
    bool known = training.empty() && detail::belongs_to_training(t.name, parameters);
    for (const auto& f : from) known = known || f.name == t.name;
    if (!training.empty() && t.name.starts_with(state_prefix)) {
      known = true;
      found.states[std::string(t.name.substr(state_prefix.size()))] = {
          t.type, {t.bytes.begin(), t.bytes.end()}};
    }
    if (!known) {
      throw file_error(detail::quoted(path) + " has the tensor " + interop::in_quotes(t.name) +
                       ", which the model lacks; load a file of this model, or what they share "
                       "with load_partial");
    }
  }
  if (!training.empty()) found.epoch = detail::read_epoch(file, found.states);
  std::size_t i = 0;
  for (const auto* list : {&parameters, &training}) {
    for (const auto& t : *list) detail::copy_values(t, from[i++]);
  }
  return found;
}

CELLA_BODY void read_part(const std::string& path, const std::vector<checkpoint_tensor>& tensors,
                          bool non_finite) {
  const auto file = interop::safetensors_file::open(path);
  std::vector<interop::named_tensor> from;
  for (const auto& t : tensors) {
    from.push_back(detail::fitting(path, file, t));
    if (!non_finite) detail::check_finite(path, from.back());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) detail::copy_values(tensors[i], from[i]);
}

}  // namespace cella::train
