// Programs in every way that the library can run them (see harness.hpp), and kernel by kernel on
// the CPU: everything that each kernel writes beside the interpreter's value of the same node.
#pragma once

#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cmath>
#include <string>

#include "support/harness.hpp"

namespace cella::test {

namespace checked_steps {

/// Returns the worst error, relative to the largest element of its tensor, and names the step in
/// `where`.
template <class P>
double worst_step(const parameter_store& store, const std::vector<reals>& arguments,
                  const reals& scalars, std::string& where) {
  using T = element<P::element_type>;
  const graph g = thaw(P::graph);
  value_store values;
  std::vector<aligned_buffer> owned;
  std::array<std::byte*, 16> spaces{};
  cpu::run_context context;
  const cpu::memory m{spaces.data(), &context};
  aligned_buffer arena{std::size_t(P::plan.arena_bytes)};
  aligned_buffer slots{std::size_t(P::plan.slot_bytes + 64)};
  aligned_buffer numbers{scalars.size() * 8 + 64};
  aligned_buffer scratch{std::size_t{64} << 20};
  aligned_buffer parameters{std::size_t(P::plan.parameter_bytes + 64)};
  std::memcpy(parameters.data(), store.data(), std::size_t(P::plan.parameter_bytes));
  spaces = {arena.data(), parameters.data(), slots.data(), numbers.data()};
  for (std::size_t i = 0; i < scalars.size(); ++i)
    reinterpret_cast<T*>(numbers.data() + i * 8)[0] = T(scalars[i]);
  const input_offsets parameter_at = offsets_of(g, {input_role::parameter, input_role::state});
  const input_offsets slot_at = offsets_of(g, {input_role::slot});
  auto copy_of = [&](const std::byte* from, tensor_type t) {
    owned.emplace_back(std::size_t(t.bytes()) + 64);
    std::memcpy(owned.back().data(), from, std::size_t(t.bytes()));
    return tensor_ref{owned.back().data(), t};
  };
  owned.reserve(256);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const node_id n = g.input(int(i));
    const tensor_type t = g.type(n);
    const input_info in = g.inputs[i];
    const std::byte* from{};
    if (in.role == input_role::argument) {
      owned.emplace_back(std::size_t(t.bytes()) + 64);
      const tensor_ref r{owned.back().data(), t};
      const auto& v = arguments[std::size_t(in.index)];
      for (std::size_t k = 0; k < v.size(); ++k) write_element(r, std::int64_t(k), v[k]);
      spaces[std::size_t(first_argument + in.index)] = r.data;
      values.bind(n, r);
      continue;
    }
    if (in.role == input_role::slot)
      from = slots.data() + slot_at.offset[i];
    else if (in.role == input_role::scalar)
      from = numbers.data() + in.index * 8;
    else
      from = parameters.data() + parameter_at.offset[i];
    values.bind(n, copy_of(from, t));
  }
  interpret(g, values);
  double worst = 0;
  auto compare = [&](int step) {
    const plan_step& s = P::plan.steps[std::size_t(step)];
    // A value that is moved in boxes is there with the last of them.
    for (int later = step + 1; later < P::plan.step_count; ++later) {
      const plan_step& other = P::plan.steps[std::size_t(later)];
      if (s.kind == step_kind::move && other.kind == s.kind && other.anchor == s.anchor)
        return true;
    }
    for (int k = 0; k < s.output_count; ++k) {
      const node_id n = s.outputs[std::size_t(k)].value;
      if (n < 0 || g.type(n).element != P::element_type || s.outputs[std::size_t(k)].summed)
        continue;
      const tensor_ref expected = values.value(n);
      const T* ours = m.at<const T>(s.outputs[std::size_t(k)].at);
      const int L = lanes_of<P::element_type>();
      const std::int64_t size = expected.type.size();
      const bool lanes = s.outputs[std::size_t(k)].form == layout::lanes;
      const bool blocks = s.outputs[std::size_t(k)].form == layout::blocked;
      const std::int64_t plane = blocks ? expected.type.shape.size(2, 4) : 1;
      if (s.kind == step_kind::pack || s.kind == step_kind::border) continue;
      const std::int64_t features = lanes ? size / expected.type[0] : size;
      double most = 0.05;  // sums that cancel are compared absolutely
      for (std::int64_t i = 0; i < size; ++i)
        most = std::max(most, std::abs(read_element(expected, i)));
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t sample = i / features;
        const std::int64_t channel = i / plane;
        const std::int64_t at = blocks  ? (channel / L * plane + i % plane) * L + channel % L
                                : lanes ? (sample / L * features + i % features) * L + sample % L
                                        : i;
        const double e = std::abs(double(ours[at]) - read_element(expected, i)) / most;
        if (!(e <= worst)) {
          worst = std::isfinite(e) ? e : 1e9;
          where = "step " + std::to_string(step) + " (" + std::string(name(s.kind)) + ") output %" +
                  std::to_string(n) + " element " + std::to_string(i) + ": " +
                  std::to_string(double(ours[at])) + " for " +
                  std::to_string(read_element(expected, i)) + " in " +
                  std::string(text(node_line(g, n)).view());
        }
      }
      if (worst > 1e-3) return false;
    }
    return true;
  };
  bool fine = true;
  auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto one = [&]<int S>(std::integral_constant<int, S>) {
      using lowered = cpu::lowered<P, S>;
      using code = typename lowered::code;
      if (!fine) return;
      const cpu::memory own = m.with(lowered::places());
      code::template run<0>(own, {0, code::units(0)}, scratch.data());
      [&]<int... K>(std::integer_sequence<int, K...>) {
        (code::template run<K + 1>(own, {0, code::units(K + 1)}, scratch.data()), ...);
      }
      (std::make_integer_sequence<int, code::phases() - 1>{});
      fine = compare(S);
    };
    (one(std::integral_constant<int, int(I)>{}), ...);
  };
  all(std::make_index_sequence<std::size_t(P::plan.step_count)>{});
  return worst;
}

}  // namespace checked_steps

/// Checks one call of a program that is given these run-time numbers. `tolerance` is for each
/// kernel's values beside the interpreter's of the same graph, relative to the largest of a tensor.
/// What the call leaves is compared with the graph as it was before all passes, which reassociate:
/// for that, four times as much.
template <class P>
void check_steps(const std::vector<reals>& arguments, const reals& scalars, double tolerance,
                 std::uint64_t seed = 1) {
  const ways<P> all(seed, scalars, &compute_on_cpu);
  std::string where;
  const double worst = checked_steps::worst_step<P>(all.make_store(), arguments, scalars, where);
  INFO(where);
  CHECK(worst <= tolerance);
  all.check(arguments, 1, 4 * tolerance);
}

}  // namespace cella::test
