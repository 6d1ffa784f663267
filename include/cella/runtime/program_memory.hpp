// The memory spaces of a program: what the executable owns, what the parameter store owns, and what
// the caller has; on a device that does not see the host's memory, with copies of the latter two.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/host/buffer.hpp>
#include <cella/runtime/call_labels.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/runtime/program.hpp>
#include <cella/runtime/program_results.hpp>
#include <cella/runtime/step_number.hpp>
#include <span>
#include <utility>

namespace cella {

/// The constant tensors of program P, where kernels read them: a part of the executable file. A
/// copy of the graph's own, so that the rest of the graph need not be there.
template <class P>
alignas(arena_alignment) inline constexpr auto constant_words = P::graph.constant_words;

/// `P::backend` gives the buffers and, if they are not the host's, the copies.
template <class P>
class program_memory {
  using device = typename P::backend;
  static constexpr bool host = device::host_memory;

 public:
  /// `slots`: where the optimizer's state lies in the host's memory; null: here.
  program_memory(parameter_store& store, std::byte* slots)
      : store_(&store),
        arena_(std::size_t(P::plan.arena_bytes)),
        own_slots_(slots ? 0 : std::size_t(P::plan.slot_bytes)),
        slots_(slots ? slots : own_slots_.data()),
        scalars_(std::size_t(P::count(input_role::scalar)) * 8) {
    spaces_[arena_space] = arena_.data();
    if constexpr (host) {
      spaces_[parameter_space] = store.data();
      spaces_[slot_space] = slots_;
      spaces_[scalar_space] = scalars_.data();
      // Nobody writes there: no step has a constant as its result.
      spaces_[constant_space] =
          const_cast<std::byte*>(reinterpret_cast<const std::byte*>(constant_words<P>.data()));
    } else {
      copies_.make();
      for (std::size_t s = parameter_space; s < spaces_.size(); ++s)
        spaces_[s] = copies_.of[s].data();
      device::upload(spaces_[constant_space], constant_words<P>.data(), sizes[constant_space]);
    }
  }
  program_memory(const program_memory&) = delete;
  program_memory& operator=(const program_memory&) = delete;

  std::byte* const* spaces() const { return spaces_.data(); }
  std::byte* slots() const { return slots_; }

  /// Throws `error` for the index of no number, and for a step before the first.
  void scalar(int index, double value) {
    if (index < 0 || std::size_t(index) >= set_.size()) [[unlikely]]
      throw error("this program asks for no such number; ask program::scalar, which gives -1 then");
    constexpr int step = P::scalar("step");
    if (index == step) check_step("step", value);
    set_[std::size_t(index)] = true;
    *reinterpret_cast<element<P::element_type>*>(scalars_.data() + std::size_t(index) * 8) =
        static_cast<element<P::element_type>>(value);
  }
  /// Throws `error` unless each number was set at least once.
  void check_scalars() const {
    if (std::find(set_.begin(), set_.end(), false) == set_.end()) [[likely]]
      return;
    for (std::size_t i = 0; i < set_.size(); ++i) {
      if (set_[i]) continue;
      const name_ref at = scalar_names[i];
      const std::string_view name(step_labels<P>::characters.data() + at.first,
                                  std::size_t(at.size));
      throw error(text() << "the number \"" << name << "\" of this program was never set; call "
                         << "scalar(program::scalar(\"" << name << "\"), value) before each step");
    }
  }
  void argument(int index, const void* at) {
    const auto s = std::size_t(first_argument + index);
    if constexpr (host)
      spaces_[s] = const_cast<std::byte*>(static_cast<const std::byte*>(at));
    else
      device::upload(spaces_[s], at, copies_.of[s].size());
  }
  /// Where result `index` of a program with bound results is wanted.
  void bind(int index, void* at) {
    const auto s = std::size_t(P::plan.results[std::size_t(index)].at.space);
    if constexpr (host)
      spaces_[s] = static_cast<std::byte*>(at);
    else
      copies_.wanted[s] = static_cast<std::byte*>(at);
  }

  /// Before a call: the device gets what the host has. `changed`: the parameters.
  void begin([[maybe_unused]] bool changed) {
    if constexpr (!host) {
      if (changed) device::upload(spaces_[parameter_space], store_->data(), sizes[parameter_space]);
      device::upload(spaces_[slot_space], slots_, sizes[slot_space]);
      device::upload(spaces_[scalar_space], scalars_.data(), sizes[scalar_space]);
    }
  }
  /// Behind a call: the host gets what the program has changed.
  void end() {
    if constexpr (!host) {
      if (changes) {
        device::download(store_->data(), spaces_[parameter_space], sizes[parameter_space]);
        device::download(slots_, spaces_[slot_space], sizes[slot_space]);
      }
      for (std::size_t s = first_argument; s < spaces_.size(); ++s) {
        if (copies_.wanted[s]) device::download(copies_.wanted[s], spaces_[s], sizes[s]);
      }
      for (int k = 0; !P::options.results_bound && k < detail::result_count<P>(); ++k)
        copies_.fetch(k, address(k));
    }
  }
  /// Result `index` of the last call, in the host's memory.
  const std::byte* result(int index) const {
    if constexpr (host)
      return address(index);
    else
      return copies_.results[std::size_t(index)].data();
  }

 private:
  static constexpr std::size_t space_count =
      std::size_t(first_argument + P::count(input_role::argument) +
                  (P::options.results_bound ? detail::result_count<P>() : 0));
  /// Bytes of each space but the arena.
  static constexpr std::array<std::size_t, space_count> sizes = [] {
    std::array<std::size_t, space_count> all{};
    all[parameter_space] = std::size_t(P::plan.parameter_bytes);
    all[slot_space] = std::size_t(P::plan.slot_bytes);
    all[scalar_space] = std::size_t(P::count(input_role::scalar)) * 8;
    all[constant_space] = sizeof(std::uint64_t) * std::size_t(P::graph.sizes.constant_words);
    for (std::size_t i = 0; i < P::graph.inputs.size(); ++i) {
      const input_info& in = P::graph.inputs[i];
      if (in.role == input_role::argument)
        all[std::size_t(first_argument + in.index)] =
            std::size_t(P::graph.type(P::graph.input(int(i))).bytes());
    }
    for (int k = 0; P::options.results_bound && k < detail::result_count<P>(); ++k)
      all[std::size_t(P::plan.results[std::size_t(k)].at.space)] =
          std::size_t(detail::result_type<P>(k).bytes());
    return all;
  }();
  /// The names of the numbers, as parts of `step_labels<P>::characters`.
  static constexpr auto scalar_names = [] {
    std::array<name_ref, std::size_t(P::count(input_role::scalar))> all{};
    for (const input_info& in : P::graph.inputs) {
      if (in.role == input_role::scalar) all[std::size_t(in.index)] = in.name;
    }
    return all;
  }();
  static constexpr bool changes = [] {
    for (const output_info& o : P::graph.outputs) {
      if (o.updates >= 0) return true;
    }
    return false;
  }();

  const std::byte* address(int k) const {
    const buffer_ref at = P::plan.results[std::size_t(k)].at;
    return spaces_[std::size_t(at.space)] + at.offset;
  }

  /// What a device has copies of, and the host's copies of results.
  struct device_copies {
    std::array<typename device::buffer, space_count> of;
    std::array<std::byte*, space_count> wanted{};
    std::array<aligned_buffer, std::size_t(detail::result_count<P>())> results;

    void make() {
      for (std::size_t s = parameter_space; s < space_count; ++s)
        of[s] = typename device::buffer(sizes[s]);
      for (int k = 0; k < detail::result_count<P>(); ++k)
        results[std::size_t(k)] = aligned_buffer(std::size_t(detail::result_type<P>(k).bytes()));
    }
    void fetch(int k, const std::byte* from) {
      device::download(results[std::size_t(k)].data(), from, results[std::size_t(k)].size());
    }
  };
  struct no_copies {};

  parameter_store* store_;
  typename device::buffer arena_;
  aligned_buffer own_slots_;
  std::byte* slots_;
  aligned_buffer scalars_;
  std::array<bool, std::size_t(P::count(input_role::scalar))> set_{};
  std::array<std::byte*, space_count> spaces_{};
  [[no_unique_address]] std::conditional_t<host, no_copies, device_copies> copies_;
};

}  // namespace cella
