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
  static void run(S, const memory& m, work_range, std::byte*) {
    control_step<typename S::program, S::index>::run(m);
  }
};

/// The key of the stream that a node draws from.
template <class S>
std::uint64_t stream_key(S, const memory& m) {
  using options = random_uniform_op::options;
  return random_uniform_op::key_of(S::template in<const std::uint64_t>(m, 0),
                                   S::template options<options>().stream);
}

struct random_stream_record : record_for<step_kind::random_stream> {
  template <int, class S>
  static void run(S step, const memory& m, work_range, std::byte*) {
    *S::template out<std::uint64_t>(m, 0) = stream_key(step, m);
  }
};

struct random_uniform_record : record_for<step_kind::random_uniform> {
  template <class S>
  static constexpr int units(S, int) {
    return uniform_units(S::anchor().type.size());
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    uniform_numbers(units, stream_key(step, m), S::anchor().type.size(), S::out(m, 0));
  }
};

/// The operation's own computation on plain tensors.
struct default_record : record_for<step_kind::generic> {
  template <int, class S>
  static void run(S, const memory& m, work_range, std::byte*) {
    constexpr const plan_step& s = S::s;
    constexpr const node& n = S::anchor();
    std::array<tensor_ref, std::size_t(n.operand_count ? n.operand_count : 1)> x{};
    for (int k = 0; k < n.operand_count; ++k) {
      const buffer_ref at = s.link_count ? S::program::plan.links[std::size_t(s.first_link + k)]
                                         : s.in[std::size_t(k)];
      x[std::size_t(k)] = {m.at<std::byte>(at), stored(S::operand(k))};
    }
    std::array<tensor_ref, std::size_t(s.output_count)> y{};
    for (int k = 0; k < s.output_count; ++k) {
      y[std::size_t(k)] = {S::template out<std::byte>(m, k),
                           stored(n.result_count ? S::g.result_type(s.anchor, k) : n.type)};
    }
    if constexpr (n.type.element == dtype::record && is<add_op>(n))
      return add_records(m.context->records, x[0], x[1], y[0]);
    if constexpr (n.type.element == dtype::record && is<sum_op>(n))
      return sum_records(m.context->records, S::template options<axes_options>().axes, x[0], y[0]);
    cella::compute(info_of<op_of<S::g.nodes[std::size_t(s.anchor)].op>>, n.attributes,
                   {x.data(), std::size_t(n.operand_count)}, y);
  }
};

using records_of_operations =
    record_list<control_record, random_stream_record, random_uniform_record, default_record>;

}  // namespace cella::cpu
