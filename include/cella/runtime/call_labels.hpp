// What the calls of kernels are called in profiles: step, cell and line, and how much they do.
#pragma once

#include <array>
#include <cella/graph/frozen_graph.hpp>
#include <cella/graph/graph.hpp>
#include <cella/plan/plan.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella {

/// One call of a kernel in a table and in a trace.
struct call_label {
  std::string kernel;  ///< what kind of step, and for calls that only prepare it "(prepares)"
  std::string_view layout;
  std::string place;  ///< path of the cell, file and line
  double flops{};     ///< floating-point operations
  double bytes{};     ///< of the tensors that it reads and writes
};

/// What a label needs to know of a step. Plans and graphs themselves would be a thousand bytes for
/// each step in every program.
struct step_label {
  step_kind kind{};
  layout arrangement{};
  name_ref cell{};
  const char* file{};
  std::int32_t line{};
  double flops{}, bytes{};
};
constexpr step_label label_of(const plan_step& s, const node& n) {
  return {s.kind, s.arrangement, n.cell, n.file, n.line, double(s.flops), double(s.bytes)};
}
template <class P>
struct step_labels {
  static constexpr auto& characters = characters_of<typename P::root>;
  static constexpr auto steps = [] {
    std::array<step_label, std::size_t(P::plan.step_count)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const plan_step& s = P::plan.steps[i];
      all[i] = label_of(s, P::graph.nodes[std::size_t(s.anchor)]);
    }
    return all;
  }();
  /// The step of each call of a back end's runner.
  template <class Runner>
  static constexpr auto of_calls = [] {
    std::array<int, Runner::calls> all{};
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = Runner::step_of(k);
    return all;
  }();
};

/// The labels of a program's calls, given the step of each; names of cells are parts of
/// `characters`. A step of two calls does its arithmetic in the second.
[[gnu::cold]] inline std::vector<call_label> labels_of(span<const step_label> steps,
                                                       span<const char> characters,
                                                       span<const int> calls) {
  std::vector<call_label> labels;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const step_label& s = steps[std::size_t(calls[i])];
    const bool prepares = i + 1 < calls.size() && calls[i + 1] == calls[i];
    std::string place(characters.data() + s.cell.first, std::size_t(s.cell.size));
    if (s.line > 0) {
      const std::string_view file(s.file);
      if (!place.empty()) place.append(" ");
      place.append(file.substr(file.rfind('/') + 1)).append(":").append(std::to_string(s.line));
    }
    labels.push_back({std::string(name(s.kind)) + (prepares ? " (prepares)" : ""),
                      name(s.arrangement), std::move(place), prepares ? 0.0 : s.flops,
                      prepares ? 0.0 : s.bytes});
  }
  return labels;
}

/// The same of a plan that was made at run time, whose runner tells its steps and calls.
template <class Runner>
[[gnu::cold]] std::vector<call_label> labels_of_calls(const Runner& of) {
  std::vector<step_label> steps;
  for (const plan_step& s : of.plan().steps)
    steps.push_back(label_of(s, of.source().nodes[std::size_t(s.anchor)]));
  std::vector<int> calls;
  for (std::size_t k = 0; k < of.call_count(); ++k) calls.push_back(of.step_of(k));
  return labels_of(steps, of.source().characters, calls);
}

}  // namespace cella
