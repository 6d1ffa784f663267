// Control nodes as loops and branches over the plans of their regions.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/backend/cpu/registers/register_region.hpp>
#include <cella/backend/cpu/run/control_flow.hpp>
#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/backend/cpu/run/watch.hpp>

namespace cella::cpu {

/// Region `R` of program `Root` as a program of its own. Its arguments are the region's inputs; its
/// outputs go where `outputs_of_region` says.
template <class Root, int R, int Carries, int FirstConstant>
class region_program {
  static constexpr outputs_of_region goes() {
    ids carries;
    for (int k = 0; k < Carries; ++k)
      carries.push_back(graph.regions[std::size_t(R)].first_node + k);
    return {carries, graph.region_outputs(R), Carries};
  }
  template <int Count>
  static constexpr auto copied(const list<int>& from) {
    std::array<int, std::size_t(Count)> all{};
    std::copy(from.begin(), from.end(), all.begin());
    return all;
  }

 public:
  using root = Root;
  static constexpr dtype element_type = Root::element_type;
  static constexpr auto& graph = Root::graph;
  static constexpr int region = R;
  static constexpr int inputs = graph.regions[std::size_t(R)].input_count;

  static constexpr int all_outputs = graph.regions[std::size_t(R)].output_count;

  /// See outputs_of_region.
  static constexpr auto record_of = copied<Carries>(goes().records);
  static constexpr auto fates = copied<all_outputs>(goes().fates);
  static constexpr auto result_of = copied<all_outputs>(goes().places);
  static constexpr int outputs = int(std::count(fates.begin(), fates.end(), region_result));

  static constexpr auto planned = [] { return region_graph(thaw(graph), R, fates); };
  static constexpr auto plan =
      make_plan<planning, planned, options_of_region(element_type, {Carries, FirstConstant})>();
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
  /// Output `k` is written to `at`, if it is a result.
  void output(int k, std::byte* at) {
    if (Body::fates[std::size_t(k)] != region_result) return;
    spaces_[std::size_t(first_argument + Body::inputs + Body::result_of[std::size_t(k)])] = at;
  }
  static constexpr int record_of(int k) { return Body::record_of[std::size_t(k)]; }

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
    using code = typename step::code;
    if constexpr (!step::s.carried) {
      [this]<int... K>(std::integer_sequence<int, K...>) {
        const memory of_step = memory_.with(step::places());
        (code::template run<K>(of_step, {0, code::units(K)}, scratch()), ...);
      }
      (std::make_integer_sequence<int, code::phases()>{});
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
  template <int Region>
  static constexpr region_use use = use_of_region(n, Region);
  template <int Region>
  using region = region_program<typename P::root, n.regions[Region], use<Region>.carries,
                                use<Region>.first_constant>;
  template <int Region>
  using small_region = register_region<typename P::root, n.regions[Region]>;
  template <int Region>
  static constexpr bool in_registers = runs_in_registers<typename P::root, n.regions[Region]>;

  // Made by the compiler: code that asked the graph would keep it in the program.
  static constexpr int operand_count = n.operand_count, result_count = n.result_count;
  static constexpr auto operand_types = [] {
    std::array<tensor_type, std::size_t(operand_count)> types{};
    for (int k = 0; k < operand_count; ++k)
      types[std::size_t(k)] = stored(g.type(g.operand(s.anchor, k)));
    return types;
  }();
  static constexpr auto result_types = [] {
    std::array<tensor_type, std::size_t(result_count)> types{};
    for (int k = 0; k < result_count; ++k)
      types[std::size_t(k)] = stored(g.result_type(s.anchor, k));
    return types;
  }();

 public:
  // ---- what control_flow.hpp asks of a step

  static constexpr int operands() { return operand_count; }
  static constexpr int results() { return result_count; }
  static std::byte* operand(const memory& m, int k) {
    return m.at<std::byte>(P::plan.links[std::size_t(s.first_link + k)]);
  }
  static std::byte* result(const memory& m, int k) { return operand(m, operands() + k); }
  static constexpr const tensor_type& operand_type(int k) { return operand_types[std::size_t(k)]; }
  static constexpr const tensor_type& result_type(int k) { return result_types[std::size_t(k)]; }
  template <class Options>
  static constexpr Options options() {
    constexpr Options chosen = n.attributes.template as<Options>();
    return chosen;
  }
  template <int Region>
  static auto frame(const memory& m) {
    return region_frame<region<Region>>(m);
  }

  static void run(const memory& m) {
    if constexpr (is<cond_op>(n))
      run_cond(m);
    else if constexpr (is<scan_op>(n))
      run_slices(m);
    else if constexpr (is<while_op>(n))
      run_turns(m);
    else if constexpr (is<pack_op>(n))
      run_pack(control_step{}, m, fields);
    else if constexpr (is<unpack_op>(n))
      run_unpack(control_step{}, m);
    else
      run_once<0, 0>(m);
  }

 private:
  static void run_cond(const memory& m) {
    if (*reinterpret_cast<const bool*>(operand(m, 0)))
      run_once<0, 1>(m);
    else
      run_once<1, 1>(m);
  }
  template <int Region, int First>
  static void run_once(const memory& m) {
    if constexpr (in_registers<Region>)
      run_once_in_registers<Region, First>(m);
    else
      run_region_once<Region, First>(control_step{}, m);
  }
  template <int Region, int First>
  [[gnu::flatten]] static void run_once_in_registers(const memory& m) {
    using body = small_region<Region>;
    typename body::frame f;
    body::template load<0, body::inputs>(f, [&](int k) { return operand(m, First + k); });
    body::run(f, *m.context);
    body::template store_outputs<0, body::outputs>(f, [&](int k) { return result(m, k); });
  }

  static void run_slices(const memory& m) {
    if constexpr (in_registers<0>)
      run_scan_in_registers(m);
    else
      run_scan(control_step{}, m);
  }
  // All that these call is inlined: a call between the operations would empty the registers.
  [[gnu::flatten]] static void run_scan_in_registers(const memory& m) {
    constexpr auto o = options<scan_options>();
    constexpr int slices = o.carries + o.xs;
    using body = small_region<0>;
    typename body::frame f;
    const auto in = [&](int k) { return operand(m, k); };
    body::template load<0, o.carries>(f, in);
    body::template load<slices, operands()>(f, in);
    for (int turn = 0; turn < o.length; ++turn) {
      const std::int64_t t = o.place(turn);
      body::template load<o.carries, slices>(
          f, [&](int k) { return slice_of_operand(control_step{}, m, k, t); });
      body::run(f, *m.context);
      body::template store_outputs<o.carries, results()>(
          f, [&](int k) { return slice_of_result(control_step{}, m, k, t); });
      body::template advance<o.carries>(f);
    }
    body::template store_inputs<0, o.carries>(f, [&](int k) { return result(m, k); });
  }

  static void run_turns(const memory& m) {
    if constexpr (in_registers<0> && in_registers<1>)
      run_while_in_registers(m);
    else
      run_while(control_step{}, m);
  }
  [[gnu::flatten]] static void run_while_in_registers(const memory& m) {
    constexpr auto o = options<while_options>();
    using body = small_region<1>;
    typename body::frame f;
    body::template load<0, operands()>(f, [&](int k) { return operand(m, k); });
    register_while<typename P::root, n.regions[0], n.regions[1], o.carries, o.max_steps>(
        f, *m.context);
    body::template store_inputs<0, o.carries>(f, [&](int k) { return result(m, k); });
  }

  /// What a pack holds.
  static constexpr auto fields = [] {
    std::array<tensor_type, std::size_t(operands())> f{};
    for (int k = 0; k < operands(); ++k)
      f[std::size_t(k)] = field_of_record(g.type(g.operand(s.anchor, k)), n.type.rank());
    return f;
  }();
};

}  // namespace cella::cpu
