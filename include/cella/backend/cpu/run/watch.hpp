// CELLA_DEBUG=nan for programs: a run that looks at what each step has written.
#pragma once

#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/backend/cpu/run/watch_table.hpp>
#include <cella/backend/host/finite.hpp>

namespace cella::cpu {

/// Runs the steps of program P and looks at what each has written. Throws number_error at the first
/// NaN, and at the first infinity that was made from finite numbers: a mask of infinities is no
/// fault. It names what the step computes; operations that share its kernel are named together.
template <class P>
[[gnu::cold]] void run_watched(const memory& m, std::byte* scratch, std::int64_t scratch_bytes);

namespace detail {

template <int Lanes>
[[gnu::cold]] not_finite look_at(const memory& m, const watched_value& v) {
  const tensor_ref all{m.at<std::byte>(v.at), v.type};
  if (v.loops == 0 && v.arrangement == layout::plain) return find_not_finite(all);
  not_finite found;
  if (v.arrangement == layout::lanes) {  // lanes behind the last sample hold nothing
    const std::int64_t each = v.type.size() / v.type[0];
    for (std::int64_t i = 0; i < v.type.size(); ++i) {
      const std::int64_t sample = i / each;
      const std::int64_t block = sample / Lanes * each + i % each;
      found.look_at(least_finite_part(all, block * Lanes + sample % Lanes), i);
    }
    return found;
  }
  if (v.arrangement == layout::blocked) {
    const std::int64_t pixels = v.type.size() / (std::int64_t{v.type[0]} * v.type[1]);
    for (std::int64_t i = 0; i < v.type.size(); ++i) {
      const std::int64_t channel = i / pixels;
      const std::int64_t at = (channel / Lanes * pixels + i % pixels) * Lanes + channel % Lanes;
      found.look_at(least_finite_part(all, at), i);
    }
    return found;
  }
  std::array<std::int64_t, max_loops> i{};
  for (std::int64_t n = 0;; ++n) {
    std::int64_t at = v.first;
    for (std::size_t d = 0; d < max_loops; ++d) at += i[d] * v.strides[d];
    found.look_at(least_finite_part(all, at), n);
    int d = v.loops;
    while (d-- > 0) {
      if (++i[std::size_t(d)] < v.loop[std::size_t(d)]) break;
      i[std::size_t(d)] = 0;
    }
    if (d < 0) return found;
  }
}

}  // namespace detail

/// A table as ranges, wherever it lies.
struct watch_view {
  span<const watched_step> steps;
  span<const watched_value> inputs, outputs;
  span<const node_id> sources;
  span<const placed_operation> operations;
  span<const char> characters;  ///< of the names of cells
};
template <class Table>
constexpr watch_view view_of(const Table& t, span<const char> characters) {
  return {t.steps, t.inputs, t.outputs, t.sources, t.operations, characters};
}

/// What step `s` computes: `exp at net.cpp:12 in head or log at net.cpp:13`.
[[gnu::cold]] inline std::string operations_of(const watch_view& table, const watched_step& s) {
  if (s.computed == 0) return std::string(name(s.kind));
  std::string all;
  const int shown = s.operations.last - s.operations.first;
  for (int i = 0; i < shown; ++i) {
    if (i) all += i + 1 == shown && shown == s.computed ? " or " : ", ";
    const auto& o = table.operations[std::size_t(s.operations.first + i)];
    all += describe_operation(o, table.characters).view();
  }
  if (shown < s.computed)
    all += " or another of the " + std::to_string(s.computed) + " operations in this kernel";
  return all;
}

/// Notes which inputs hold infinities, and refuses NaN.
template <int Lanes>
[[gnu::cold]] void look_at_inputs(const watch_view& table, const memory& m, flags& infinite) {
  for (const watched_value& v : table.inputs) {
    const not_finite found = detail::look_at<Lanes>(m, v);
    if (found.nan >= 0) throw number_error(nan_in_input(found, v.type));
    infinite[std::size_t(v.value)] = found.infinity >= 0;
  }
}
/// Looks at what step `i` has written.
template <int Lanes>
[[gnu::cold]] void look_at_step(const watch_view& table, const memory& m, flags& infinite, int i) {
  const watched_step& s = table.steps[std::size_t(i)];
  bool from_infinity = s.infinite;
  for (int k = s.sources.first; k < s.sources.last; ++k)
    from_infinity |= infinite[std::size_t(table.sources[std::size_t(k)])] != 0;
  for (int k = s.outputs.first; k < s.outputs.last; ++k) {
    const watched_value& v = table.outputs[std::size_t(k)];
    const not_finite found = detail::look_at<Lanes>(m, v);
    infinite[std::size_t(v.value)] = found.infinity >= 0;
    if (found.nan < 0 && (found.infinity < 0 || from_infinity)) continue;
    throw number_error(nan_made(operations_of(table, s), found, v.type));
  }
}

namespace detail {
template <class P>
watch_view watch_of() {
  return view_of(watch_table_of<P>, characters_of<typename P::root>);
}
}  // namespace detail

/// The same for program P.
template <class P>
[[gnu::cold]] void look_at_inputs(const memory& m) {
  m.context->watch->infinite.resize(P::graph.nodes.size());
  look_at_inputs<lanes<element<P::element_type>>>(detail::watch_of<P>(), m,
                                                  m.context->watch->infinite);
}
template <class P>
[[gnu::cold]] void look_at_step(const memory& m, int i) {
  look_at_step<lanes<element<P::element_type>>>(detail::watch_of<P>(), m,
                                                m.context->watch->infinite, i);
}

template <class P>
void run_watched(const memory& m, std::byte* scratch, std::int64_t scratch_bytes) {
  look_at_inputs<P>(m);
  const span calls(kernel_calls<P>::steps);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    run_call(calls[i], m, scratch, scratch_bytes);
    if (i + 1 == calls.size() || calls[i + 1].step != calls[i].step)
      look_at_step<P>(m, calls[i].step);
  }
}

}  // namespace cella::cpu
