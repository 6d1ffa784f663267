// Operations that run alone: control flow, random numbers, and all that have no kernel.
#pragma once

#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/memory/records.hpp>
#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>

namespace cella::cpu {

/// A step that runs regions: control.hpp.
template <class P, int I>
class control_step;

struct control_record : record_for<step_kind::control> {
  template <int, class S>
  static void run(S step, const memory& m, work_range, std::byte*) {
    if constexpr (S::compiled)
      control_step<typename S::program, S::index>::run(m);
    else
      step.control->run(m);
  }
};

/// The key of the stream that a node draws from.
std::uint64_t stream_key(auto step, const memory& m) {
  using options = random_uniform_op::options;
  return random_uniform_op::key_of(step.template in<const std::uint64_t>(m, 0),
                                   step.template options<options>().stream);
}

struct random_stream_record : record_for<step_kind::random_stream> {
  template <int>
  static void run(auto step, const memory& m, work_range, std::byte*) {
    *step.template out<std::uint64_t>(m, 0) = stream_key(step, m);
  }
};

struct random_uniform_record : record_for<step_kind::random_uniform> {
  static constexpr int units(auto step, int) { return uniform_units(step.anchor().type.size()); }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    uniform_numbers(units, stream_key(step, m), step.anchor().type.size(), step.out(m, 0));
  }
};

/// A step of a program whose operation has a computation of its own: then the program does without
/// those of all element types.
template <class S>
concept known_to_compute = requires {
  requires S::operation()
  .compute != nullptr;
};

/// The operation's own computation on plain tensors.
struct default_record : record_for<step_kind::generic> {
  template <int>
  static void run(auto step, const memory& m, work_range, std::byte*) {
    const plan_step& s = step.s;
    const node& n = step.anchor();
    auto x = step.template one_per_operand<tensor_ref>();
    for (int k = 0; k < n.operand_count; ++k) {
      const buffer_ref at = s.link_count ? step.link(s.first_link + k) : s.in[std::size_t(k)];
      x[std::size_t(k)] = {m.at<std::byte>(at), stored(step.operand(k))};
    }
    std::array<tensor_ref, std::tuple_size_v<decltype(s.outputs)>> y{};
    for (int k = 0; k < s.output_count; ++k) {
      y[std::size_t(k)] = {step.template out<std::byte>(m, k),
                           stored(n.result_count ? step.g.result_type(s.anchor, k) : n.type)};
    }
    with_constant(step, adds_records, [&](auto adds) {
      if constexpr (adds) return add_records(m.context->records, x[0], x[1], y[0]);
      if (n.type.element == dtype::record && is<sum_op>(n))
        return sum_records(m.context->records, step.template options<axes_options>().axes, x[0],
                           y[0]);
      const span<const tensor_ref> in(x.data(), std::size_t(n.operand_count));
      const span<const tensor_ref> out(y.data(), std::size_t(s.output_count));
      if constexpr (known_to_compute<decltype(step)>)
        step.operation().compute(step.all_options(), in, out);
      else
        cella::compute(step.operation(), step.all_options(), in, out);
    });
  }

 private:
  static constexpr auto adds_records = [](auto step) {
    return step.anchor().type.element == dtype::record && is<add_op>(step.anchor());
  };
};

using records_of_operations =
    record_list<control_record, random_stream_record, random_uniform_record, default_record>;

}  // namespace cella::cpu
