// Control nodes as loops and branches over the plans of their regions.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/memory/records.hpp>
#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/backend/cpu/registers/register_region.hpp>
#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/backend/cpu/run/watch.hpp>
#include <cella/ops/control.hpp>
#include <cella/plan/make_plan.hpp>

namespace cella::cpu {

/// Region `R` of program `Root` as a program of its own. Its arguments are the region's inputs; the
/// first `Carries` outputs replace the first inputs, the others go where the caller wants them.
/// Inputs from `FirstConstant` on are bound once for all runs.
///
/// A carry that the region also yields as it was before the turn has a record of all its values. It
/// moves along this record: the turn reads it in its own slice, and puts the new value where the
/// caller wants it, in the next slice. Nothing is copied.
template <class Root, int R, int Carries, int FirstConstant>
struct region_program {
  using root = Root;
  static constexpr dtype element_type = Root::element_type;
  static constexpr auto& graph = Root::graph;
  static constexpr int inputs = graph.regions[std::size_t(R)].input_count;

  static constexpr int all_outputs = graph.regions[std::size_t(R)].output_count;

  /// For each carry the output that records it, or -1.
  static constexpr auto record_of = [] {
    std::array<int, std::size_t(Carries)> found{};
    const auto out = graph.region_outputs(R);
    for (int k = 0; k < Carries; ++k) {
      found[std::size_t(k)] = -1;
      for (int j = all_outputs - 1; j >= Carries; --j) {
        if (out[std::size_t(j)] == graph.regions[std::size_t(R)].first_node + k)
          found[std::size_t(k)] = j;
      }
    }
    return found;
  }();
  /// What becomes of each output: `region_result`, `not_wanted`, or the input that it replaces.
  static constexpr auto fates = [] {
    std::array<int, std::size_t(all_outputs)> fate{};
    for (int k = 0; k < all_outputs; ++k)
      fate[std::size_t(k)] = k < Carries && record_of[std::size_t(k)] < 0 ? k : region_result;
    for (int k : record_of) {
      if (k >= 0) fate[std::size_t(k)] = not_wanted;
    }
    return fate;
  }();
  /// The place of each output among the results, if it is one.
  static constexpr auto result_of = [] {
    std::array<int, std::size_t(all_outputs)> place{};
    for (int k = 1; k < all_outputs; ++k)
      place[std::size_t(k)] =
          place[std::size_t(k - 1)] + (fates[std::size_t(k - 1)] == region_result);
    return place;
  }();
  static constexpr int outputs = int(std::ranges::count(fates, region_result));

  static constexpr auto planned = [] { return region_graph(thaw(graph), R, fates); };
  static constexpr auto plan = make_plan<planning, planned,
                                         plan_options{.element = element_type,
                                                      .results_bound = true,
                                                      .region = true,
                                                      .first_constant = FirstConstant}>();
};

/// A frame of a region: bind its inputs and results, prepare it, then run it any number of times.
template <class Body>
class region_frame {
  using calls = kernel_calls<Body>;
  static constexpr std::int64_t arena_bytes = align_up(Body::plan.arena_bytes);
  static constexpr std::int64_t scratch_bytes = calls::scratch_bytes();

 public:
  explicit region_frame(const memory& outer)
      : frames_(outer.context->frames), before_(frames_.top()) {
    const int threads = outer.context->threads ? outer.context->threads->capacity() : 1;
    spaces_[arena_space] = frames_.take(arena_bytes + scratch_bytes * threads);
    for (int s : {parameter_space, slot_space, scalar_space, constant_space})
      spaces_[std::size_t(s)] = outer.base[s];
    memory_ = {spaces_.data(), outer.context};
  }
  region_frame(const region_frame&) = delete;
  region_frame& operator=(const region_frame&) = delete;
  ~region_frame() { frames_.release(before_); }

  void input(int k, std::byte* at) { spaces_[std::size_t(first_argument + k)] = at; }
  void result(int k, std::byte* at) {
    spaces_[std::size_t(first_argument + Body::inputs + k)] = at;
  }

  /// What depends on constants only; they are bound.
  void prepare() {
    for (const kernel_call& call : calls::preparation) run(call);
  }
  void run() {
    if constexpr (small) {
      run_inlined(std::make_index_sequence<std::size_t(Body::plan.step_count)>{});
    } else {
      if (memory_.context->watch) [[unlikely]]
        return run_watched<Body>(memory_, scratch(), scratch_bytes);
      for (const kernel_call& call : calls::steps) run(call);
    }
  }

 private:
  /// So little work that the calls themselves would count: the kernels are inlined into one
  /// function.
  static constexpr bool small = [] {
    std::int64_t work = 0;
    for (const plan_step& s : Body::plan.steps)
      work += s.kind == step_kind::control || s.kind == step_kind::generic ? 1 << 20
                                                                           : s.flops + s.bytes;
    return work < 4096 && calls::preparation.empty();
  }();
  template <std::size_t... I>
  void run_inlined(std::index_sequence<I...>) {
    if (memory_.context->watch) [[unlikely]]
      look_at_inputs<Body>(memory_);
    (run_step<int(I)>(), ...);
  }
  template <int I>
  void run_step() {
    using step = lowered<Body, I>;
    if constexpr (!step::s.carried) {
      [this]<int... K>(std::integer_sequence<int, K...>) {
        (step::template run<K>(memory_, {0, step::units(K)}, scratch()), ...);
      }
      (std::make_integer_sequence<int, step::phases()>{});
      if (memory_.context->watch) [[unlikely]]
        look_at_step<Body>(memory_, I);
    }
  }
  void run(const kernel_call& call) { run_call(call, memory_, scratch(), scratch_bytes); }
  std::byte* scratch() { return spaces_[arena_space] + arena_bytes; }

  frame_stack& frames_;
  frame_stack::mark before_;
  std::array<std::byte*, std::size_t(first_argument + Body::inputs + Body::outputs)> spaces_{};
  memory memory_;
};

/// Step `I` of program `P`, a control node.
template <class P, int I>
class control_step {
  static constexpr const plan_step& s = P::plan.steps[std::size_t(I)];
  static constexpr auto& g = P::graph;
  static constexpr const node& n = g.nodes[std::size_t(s.anchor)];
  static constexpr int operands = n.operand_count;
  template <int Region, int Carries, int FirstConstant = plan_options::no_constants>
  using region = region_program<typename P::root, n.regions[Region], Carries, FirstConstant>;
  template <int Region>
  using small_region = register_region<typename P::root, n.regions[Region]>;
  template <int Region>
  static constexpr bool in_registers = runs_in_registers<typename P::root, n.regions[Region]>;

  static std::byte* operand(const memory& m, int k) {
    return m.at<std::byte>(P::plan.links[std::size_t(s.first_link + k)]);
  }
  static std::byte* result(const memory& m, int k) { return operand(m, operands + k); }
  // Made by the compiler: code that asked the graph would keep it in the program.
  static constexpr auto operand_types = [] {
    std::array<tensor_type, std::size_t(operands)> types{};
    for (int k = 0; k < operands; ++k)
      types[std::size_t(k)] = stored(g.type(g.operand(s.anchor, k)));
    return types;
  }();
  static constexpr auto result_types = [] {
    std::array<tensor_type, std::size_t(n.result_count)> types{};
    for (int k = 0; k < n.result_count; ++k)
      types[std::size_t(k)] = stored(g.result_type(s.anchor, k));
    return types;
  }();
  static constexpr const tensor_type& operand_type(int k) { return operand_types[std::size_t(k)]; }
  static constexpr const tensor_type& result_type(int k) { return result_types[std::size_t(k)]; }
  static std::size_t bytes(int k) { return std::size_t(operand_type(k).bytes()); }

  /// The carries of a loop start in `home(k)`; mostly they live in the loop's results.
  template <class Frame, class Home>
  static void bind_carries(const memory& m, Frame& frame, int carries, Home home) {
    for (int k = 0; k < carries; ++k) {
      std::memmove(home(k), operand(m, k), bytes(k));
      frame.input(k, home(k));
    }
  }

  static void run_cond(const memory& m) {
    if (*reinterpret_cast<const bool*>(operand(m, 0)))
      run_branch<0>(m);
    else
      run_branch<1>(m);
  }
  template <int Branch>
  static void run_branch(const memory& m) {
    run_once<Branch, 1>(m);
  }
  static void run_call(const memory& m) { run_once<0, 0>(m); }
  /// A region whose inputs are the operands from `First` on.
  template <int Region, int First>
  static void run_once(const memory& m) {
    if constexpr (in_registers<Region>) {
      run_once_in_registers<Region, First>(m);
    } else {
      region_frame<region<Region, 0>> frame(m);
      for (int k = First; k < operands; ++k) frame.input(k - First, operand(m, k));
      for (int k = 0; k < n.result_count; ++k) frame.result(k, result(m, k));
      frame.run();
    }
  }

  template <int Region, int First>
  [[gnu::flatten]] static void run_once_in_registers(const memory& m) {
    using body = small_region<Region>;
    typename body::frame f;
    body::template load<0, body::inputs>(f, [&](int k) { return operand(m, First + k); });
    body::run(f, *m.context);
    body::template store_outputs<0, body::outputs>(f, [&](int k) { return result(m, k); });
  }

  static void run_scan(const memory& m) {
    if constexpr (in_registers<0>)
      run_scan_in_registers(m);
    else
      run_scan_of_kernels(m);
  }
  /// Where a turn of a scan finds its part of an operand, or puts its part of a result.
  static std::byte* slice_of_operand(const memory& m, int k, std::int64_t place) {
    return operand(m, k) + place * without_leading(operand_type(k)).bytes();
  }
  static std::byte* slice_of_result(const memory& m, int k, std::int64_t place) {
    return result(m, k) + place * without_leading(result_type(k)).bytes();
  }
  // All that these call is inlined: a call between the operations would empty the registers.
  [[gnu::flatten]] static void run_scan_in_registers(const memory& m) {
    constexpr auto o = n.attributes.template as<scan_options>();
    constexpr int slices = o.carries + o.xs;
    using body = small_region<0>;
    typename body::frame f;
    const auto in = [&](int k) { return operand(m, k); };
    body::template load<0, o.carries>(f, in);
    body::template load<slices, operands>(f, in);
    for (int turn = 0; turn < o.length; ++turn) {
      const std::int64_t t = o.place(turn);
      body::template load<o.carries, slices>(f, [&](int k) { return slice_of_operand(m, k, t); });
      body::run(f, *m.context);
      body::template store_outputs<o.carries, n.result_count>(
          f, [&](int k) { return slice_of_result(m, k, t); });
      body::template advance<o.carries>(f);
    }
    body::template store_inputs<0, o.carries>(f, [&](int k) { return result(m, k); });
  }
  static void run_scan_of_kernels(const memory& m) {
    constexpr auto o = n.attributes.template as<scan_options>();
    using body = region<0, o.carries, o.carries + o.xs>;
    region_frame<body> frame(m);
    for (int k = o.carries + o.xs; k < operands; ++k) frame.input(k, operand(m, k));
    frame.prepare();
    // A carry with a record starts in the record's first slice.
    const auto trail = [](int k) { return body::record_of[std::size_t(k)]; };
    bind_carries(m, frame, o.carries, [&](int k) {
      return o.length == 0 || trail(k) < 0 ? result(m, k)
                                           : slice_of_result(m, trail(k), o.place(0));
    });
    for (int turn = 0; turn < o.length; ++turn) {
      const int t = o.place(turn);
      for (int k = 0; k < o.carries; ++k) {
        if (trail(k) < 0) continue;
        frame.input(k, slice_of_result(m, trail(k), t));
        frame.result(
            body::result_of[std::size_t(k)],
            turn + 1 < o.length ? slice_of_result(m, trail(k), o.place(turn + 1)) : result(m, k));
      }
      for (int k = o.carries; k < o.carries + o.xs; ++k) frame.input(k, slice_of_operand(m, k, t));
      for (int k = o.carries; k < n.result_count; ++k) {
        if (body::fates[std::size_t(k)] == region_result)
          frame.result(body::result_of[std::size_t(k)], slice_of_result(m, k, t));
      }
      frame.run();
    }
  }

  static void run_while(const memory& m) {
    if constexpr (in_registers<0> && in_registers<1>)
      run_while_in_registers(m);
    else
      run_while_of_kernels(m);
  }
  [[gnu::flatten]] static void run_while_in_registers(const memory& m) {
    constexpr auto o = n.attributes.template as<while_options>();
    using body = small_region<1>;
    typename body::frame f;
    body::template load<0, operands>(f, [&](int k) { return operand(m, k); });
    register_while<typename P::root, n.regions[0], n.regions[1], o.carries, o.max_steps>(
        f, *m.context);
    body::template store_inputs<0, o.carries>(f, [&](int k) { return result(m, k); });
  }
  static void run_while_of_kernels(const memory& m) {
    constexpr auto o = n.attributes.template as<while_options>();
    region_frame<region<0, 0, o.carries>> condition(m);
    region_frame<region<1, o.carries, o.carries>> body(m);
    bind_carries(m, body, o.carries, [&](int k) { return result(m, k); });
    for (int k = 0; k < operands; ++k)
      condition.input(k, k < o.carries ? result(m, k) : operand(m, k));
    for (int k = o.carries; k < operands; ++k) body.input(k, operand(m, k));
    condition.prepare();
    body.prepare();
    bool goes_on{};
    condition.result(0, reinterpret_cast<std::byte*>(&goes_on));
    for (int step = 0; o.max_steps == 0 || step < o.max_steps; ++step) {
      condition.run();
      if (!goes_on) break;
      body.run();
    }
  }

  /// Leading axes are those of the records; each holds its part of every operand.
  static void run_pack(const memory& m) {
    static constexpr auto fields = [] {
      std::array<tensor_type, std::size_t(operands)> f{};
      for (int k = 0; k < operands; ++k) {
        f[std::size_t(k)] = g.type(g.operand(s.anchor, k));
        for (int d = 0; d < n.type.rank(); ++d) f[std::size_t(k)].shape.erase(0);
      }
      return f;
    }();
    const auto out = reinterpret_cast<record*>(result(m, 0));
    for (std::int64_t i = 0; i < n.type.size(); ++i) {
      out[i] = stored_record::make(m.context->records, fields);
      std::byte* to = out[i]->data();
      for (int k = 0; k < operands; ++k) {
        const tensor_type& f = fields[std::size_t(k)];
        const auto size = std::size_t(stored(f).bytes());
        std::memcpy(to, operand(m, k) + std::size_t(i) * size, size);
        to += stored_record::bytes(f);
      }
    }
  }
  static void run_unpack(const memory& m) {
    const auto in = reinterpret_cast<const record*>(operand(m, 0));
    const std::int64_t records = operand_type(0).size();
    for (std::int64_t i = 0; i < records; ++i) {
      const std::byte* from = in[i] ? in[i]->data() : nullptr;
      for (int k = 0; k < n.result_count; ++k) {
        const std::int64_t size = result_type(k).bytes() / records;
        std::byte* to = result(m, k) + i * size;
        if (!from) {
          std::memset(to, 0, std::size_t(size));
          continue;
        }
        std::memcpy(to, from, std::size_t(size));
        from += stored_record::room(size);
      }
    }
  }

 public:
  static void run(const memory& m) {
    if constexpr (is<cond_op>(n))
      run_cond(m);
    else if constexpr (is<scan_op>(n))
      run_scan(m);
    else if constexpr (is<while_op>(n))
      run_while(m);
    else if constexpr (is<pack_op>(n))
      run_pack(m);
    else if constexpr (is<unpack_op>(n))
      run_unpack(m);
    else
      run_call(m);
  }
};

}  // namespace cella::cpu
