// What control nodes do with the plans of their regions, in compiled programs and in plans that are
// made at run time alike.
#pragma once

#include <cella/backend/cpu/lower/step.hpp>
#include <cella/backend/cpu/memory/records.hpp>
#include <cella/ops/control.hpp>
#include <cella/plan/make_plan.hpp>
#include <cstring>

namespace cella::cpu {

/// How a region of a control node runs: its first `carries` outputs replace its first inputs, and
/// inputs from `first_constant` on are bound once for all runs.
struct region_use {
  int carries{};
  int first_constant = plan_options::no_constants;
  friend constexpr bool operator==(const region_use&, const region_use&) = default;
};
constexpr region_use use_of_region(const node& n, int which) {
  if (is<scan_op>(n)) {
    const auto o = n.attributes.as<scan_options>();
    return {o.carries, o.carries + o.xs};
  }
  if (is<while_op>(n)) {
    const int carries = n.attributes.as<while_options>().carries;
    return {which == 0 ? 0 : carries, carries};
  }
  return {};
}
/// What a region is planned for.
constexpr plan_options options_of_region(dtype element, region_use use) {
  return {.element = element,
          .results_bound = true,
          .region = true,
          .first_constant = use.first_constant};
}

/// Where the outputs of a region go.
///
/// A carry that the region also yields as it was before the turn has a record of all its values. It
/// moves along this record: the turn reads it in its own slice, and puts the new value where the
/// caller wants it, in the next slice. Nothing is copied.
struct outputs_of_region {
  list<int> records;  ///< for each carry the output that records it, or -1
  list<int> fates;    ///< of each: `region_result`, `not_wanted`, or the input that it replaces
  list<int> places;   ///< of each among the results, if it is one

  constexpr outputs_of_region(span<const node_id> inputs, span<const node_id> outputs,
                              int carries) {
    const int count = int(outputs.size());
    for (int k = 0; k < carries; ++k) {
      records.push_back(-1);
      for (int j = count - 1; j >= carries; --j) {
        if (outputs[std::size_t(j)] == inputs[std::size_t(k)]) records.back() = j;
      }
    }
    for (int k = 0; k < count; ++k)
      fates.push_back(k < carries && records[std::size_t(k)] < 0 ? k : region_result);
    for (int k : records) {
      if (k >= 0) fates[std::size_t(k)] = not_wanted;
    }
    int place = 0;
    for (int fate : fates) {
      places.push_back(place);
      place += fate == region_result;
    }
  }
};

// ---- the nodes. `step` tells how many operands and results there are, their types and where they
// ---- lie, and opens frames: `frame<K>(memory)` of region K, which takes the addresses of inputs
// ---- and outputs, is prepared once and then runs any number of times.

/// Where a turn of a scan finds its part of an operand, or puts its part of a result.
template <class Step>
std::byte* slice_of_operand(const Step& step, const memory& m, int k, std::int64_t place) {
  return step.operand(m, k) + place * without_leading(step.operand_type(k)).bytes();
}
template <class Step>
std::byte* slice_of_result(const Step& step, const memory& m, int k, std::int64_t place) {
  return step.result(m, k) + place * without_leading(step.result_type(k)).bytes();
}
/// The carries of a loop start in `home(k)`; mostly they live in the loop's results.
template <class Step, class Frame, class Home>
void bind_carries(const Step& step, const memory& m, Frame& frame, int carries, Home home) {
  for (int k = 0; k < carries; ++k) {
    std::memmove(home(k), step.operand(m, k), std::size_t(step.operand_type(k).bytes()));
    frame.input(k, home(k));
  }
}

/// Region `Region`, whose inputs are the operands from `First` on.
template <int Region, int First, class Step>
void run_region_once(const Step& step, const memory& m) {
  auto frame = step.template frame<Region>(m);
  for (int k = First; k < step.operands(); ++k) frame.input(k - First, step.operand(m, k));
  for (int k = 0; k < step.results(); ++k) frame.output(k, step.result(m, k));
  frame.run();
}

template <class Step>
void run_scan(const Step& step, const memory& m) {
  const auto o = step.template options<scan_options>();
  auto frame = step.template frame<0>(m);
  for (int k = o.carries + o.xs; k < step.operands(); ++k) frame.input(k, step.operand(m, k));
  frame.prepare();
  // A carry with a record starts in the record's first slice.
  bind_carries(step, m, frame, o.carries, [&](int k) {
    return o.length == 0 || frame.record_of(k) < 0
               ? step.result(m, k)
               : slice_of_result(step, m, frame.record_of(k), o.place(0));
  });
  for (int turn = 0; turn < o.length; ++turn) {
    const int t = o.place(turn);
    for (int k = 0; k < o.carries; ++k) {
      const int trail = frame.record_of(k);
      if (trail < 0) continue;
      frame.input(k, slice_of_result(step, m, trail, t));
      frame.output(k, turn + 1 < o.length ? slice_of_result(step, m, trail, o.place(turn + 1))
                                          : step.result(m, k));
    }
    for (int k = o.carries; k < o.carries + o.xs; ++k)
      frame.input(k, slice_of_operand(step, m, k, t));
    for (int k = o.carries; k < step.results(); ++k)
      frame.output(k, slice_of_result(step, m, k, t));
    frame.run();
  }
}

template <class Step>
void run_while(const Step& step, const memory& m) {
  const auto o = step.template options<while_options>();
  auto condition = step.template frame<0>(m);
  auto body = step.template frame<1>(m);
  bind_carries(step, m, body, o.carries, [&](int k) { return step.result(m, k); });
  for (int k = 0; k < step.operands(); ++k)
    condition.input(k, k < o.carries ? step.result(m, k) : step.operand(m, k));
  for (int k = o.carries; k < step.operands(); ++k) body.input(k, step.operand(m, k));
  condition.prepare();
  body.prepare();
  bool goes_on{};
  condition.output(0, reinterpret_cast<std::byte*>(&goes_on));
  for (int turn = 0; o.max_steps == 0 || turn < o.max_steps; ++turn) {
    condition.run();
    if (!goes_on) break;
    body.run();
  }
}

/// Leading axes are those of the records; each holds its part of every operand, of which `fields`
/// are the types. They outlive the records.
template <class Step>
void run_pack(const Step& step, const memory& m, span<const tensor_type> fields) {
  const auto out = reinterpret_cast<record*>(step.result(m, 0));
  const std::int64_t records = step.template options<record_options>().shape.size();
  for (std::int64_t i = 0; i < records; ++i) {
    out[i] = stored_record::make(m.context->records, fields);
    std::byte* to = out[i]->data();
    for (int k = 0; k < step.operands(); ++k) {
      const tensor_type& f = fields[std::size_t(k)];
      const auto size = std::size_t(stored(f).bytes());
      std::memcpy(to, step.operand(m, k) + std::size_t(i) * size, size);
      to += stored_record::bytes(f);
    }
  }
}
/// The type of operand `t` of a pack in each of its records, which have `axes` axes.
constexpr tensor_type field_of_record(tensor_type t, int axes) {
  for (int d = 0; d < axes; ++d) t.shape.erase(0);
  return t;
}
template <class Step>
void run_unpack(const Step& step, const memory& m) {
  const auto in = reinterpret_cast<const record*>(step.operand(m, 0));
  const std::int64_t records = step.operand_type(0).size();
  for (std::int64_t i = 0; i < records; ++i) {
    const std::byte* from = in[i] ? in[i]->data() : nullptr;
    for (int k = 0; k < step.results(); ++k) {
      const std::int64_t size = step.result_type(k).bytes() / records;
      std::byte* to = step.result(m, k) + i * size;
      if (!from) {
        std::memset(to, 0, std::size_t(size));
        continue;
      }
      std::memcpy(to, from, std::size_t(size));
      from += stored_record::room(size);
    }
  }
}

}  // namespace cella::cpu
