// A step of a program as its kernel sees it: where its values lie, how large they are, and what
// follows from each result.
#pragma once

#include <cella/backend/cpu/lanes/layout.hpp>
#include <cella/backend/cpu/loops/epilogue.hpp>
#include <cella/backend/cpu/loops/finish_form.hpp>
#include <cella/backend/cpu/loops/lift.hpp>
#include <cella/backend/cpu/loops/loop_nest.hpp>
#include <cella/backend/cpu/memory/run_context.hpp>
#include <cella/ops/op.hpp>
#include <cella/plan/repeated_steps.hpp>
#include <type_traits>

namespace cella::cpu {

/// Base addresses of the memory spaces; arguments follow from `first_argument` on.
struct memory {
  std::byte* const* base{};
  run_context* context{};
  /// Of a step whose code others share: its addresses, as `step_places` lists them.
  const buffer_ref* places{};

  memory with(const buffer_ref* of_step) const { return {base, context, of_step}; }
  template <class T>
  T* at(buffer_ref r) const {
    return reinterpret_cast<T*>(base[r.space] + r.offset);
  }
  /// Where a read or an output of a step begins.
  template <class T, class Place>
  T* first(const Place& p) const {
    return at<T>(p.at) + p.first;
  }
};

/// Which steps of program P share code, and the addresses of those that do.
template <class P>
inline constexpr auto step_codes = codes_of_steps<std::size_t(P::plan.step_count)>(P::graph,
                                                                                   P::plan);
template <class P>
inline constexpr auto shared_places =
    places_of_steps<std::size_t(step_codes<P>.places)>(step_codes<P>, P::plan);

/// Step I of program P: an empty object that kernel records take, all of whose members are
/// constants or functions of the program's memory. `loaded_step` is its like of plans that are made
/// at run time.
template <class P, int I>
struct program_step {
  static constexpr bool compiled = true;
  using program = P;
  using T = element<P::element_type>;
  static constexpr int index = I;
  static constexpr const plan_step& s = P::plan.steps[std::size_t(I)];
  static constexpr auto& g = P::graph;
  static constexpr bool in_lanes = s.arrangement == layout::lanes;
  static constexpr bool in_blocks = s.arrangement == layout::blocked;
  static constexpr bool whole_vectors = in_lanes || in_blocks;
  static constexpr int L = lanes<T>;
  /// Other steps run this one's code: then a call brings its addresses.
  static constexpr bool shared = step_codes<P>[I].shared;

  /// The node that the kernel computes, its options, and the type of its operand k.
  static constexpr const node& anchor() { return g.nodes[std::size_t(s.anchor)]; }
  /// Its operation, so that no other is linked.
  static constexpr const op_info& operation() { return info_of<op_of<anchor().op>>; }
  template <class Options>
  static constexpr Options options() {
    return anchor().attributes.template as<Options>();
  }
  /// All its options, apart from the graph: what reads that at run time takes all its operations
  /// with their rules into the program.
  static constexpr attributes options_of_anchor = anchor().attributes;
  static constexpr const attributes& all_options() { return options_of_anchor; }
  static constexpr tensor_type operand(int k) { return g.type(g.operand(s.anchor, k)); }
  template <int K>
  using operand_type = element<operand(K).element>;
  template <class X>
  static constexpr auto one_per_operand() {
    return std::array<X, std::size_t(std::max(1, int(anchor().operand_count)))>{};
  }
  /// The constant that node n multiplies by. Asked at run time it would take the graph into the
  /// program.
  static consteval double constant_factor(node_id n) {
    for (int k = 0; k < 2; ++k) {
      const node& o = g.nodes[std::size_t(g.operand(n, k))];
      if (is<constant_op>(o)) return o.attributes.template as<constant_op::options>().value;
    }
    return 1;
  }

  // ---- memory

  template <class U = const T>
  static U* in(const memory& m, int k) {
    return at<U>(m, k, s.in[std::size_t(k)]);
  }
  template <class U = T>
  static U* out(const memory& m, int k) {
    return at<U>(m, places.outputs + k, s.outputs[std::size_t(k)].at);
  }
  template <class U = T>
  static U* scratch(const memory& m) {
    return at<U>(m, places.scratch, s.scratch);
  }
  /// Where a read or an output begins.
  template <class U = const T>
  static U* first_read(const memory& m, int k) {
    const operand_read& r = s.reads[std::size_t(k)];
    return at<U>(m, places.reads + k, r.at) + r.first;
  }
  template <class U = T>
  static U* first_output(const memory& m, int k) {
    return out<U>(m, k) + s.outputs[std::size_t(k)].first;
  }
  static constexpr buffer_ref link(int k) { return P::plan.links[std::size_t(k)]; }
  static auto addresses_in(const memory& m) {
    addresses<T, s.read_count, s.output_count> a;
    for (int k = 0; k < s.read_count; ++k) a.in[std::size_t(k)] = first_read(m, k);
    for (int k = 0; k < s.output_count; ++k) a.out[std::size_t(k)] = first_output(m, k);
    return a;
  }

  // ---- epilogues

  /// In lanes: samples, whose last vector may have dead lanes, and vectors for a block of them.
  static constexpr int samples() {
    const shape& y = g.type(s.outputs[0].value).shape;
    return in_lanes && y.rank ? y[0] : 1;
  }
  static constexpr bool ragged() { return in_lanes && samples() % L != 0; }
  static constexpr dead_lanes dead() {
    if (!ragged()) return {0, first_bits(L)};
    return {samples() / L * (g.type(s.outputs[0].value).size() / samples()),
            first_bits(samples() % L)};
  }
  static auto lanes_epilogue(const memory& m, std::byte* = nullptr) {
    return lanes_sink<T, s.read_count, ragged(), line_of_outputs<P, I>>{addresses_in(m), dead()};
  }
  /// Of maxima of a convolution: stores their positions as well, if they are wanted.
  static auto pooled_epilogue(const memory& m, std::byte* = nullptr) {
    constexpr bool positions = s.pool_argmax.valid();
    return pooled_sink<T, decltype(lanes_epilogue(m)), positions>{
        lanes_epilogue(m),
        positions ? at<std::uint16_t>(m, places.positions, s.pool_argmax) : nullptr};
  }
  static auto plain_epilogue(const memory& m, std::byte* = nullptr) {
    return plain_sink<T, s.read_count, line_of_outputs<P, I>>{addresses_in(m)};
  }
  static auto blocked_epilogue(const memory& m, std::byte* = nullptr) {
    constexpr finish_form form = finish_of(program_lines<P, I>::find);
    return blocked_sink<T, s.read_count, line_of_outputs<P, I>>{addresses_in(m), form};
  }
  /// What becomes of the sum that the kernel yields beside its result.
  static auto side_epilogue([[maybe_unused]] const memory& m) {
    if constexpr (s.side < 0)
      return discard{};
    else  // whose addresses follow this step's
      return program_step<P, s.side>::plain_epilogue(m.with(m.places + places.size));
  }

  /// Whether a result is stored past the caches.
  static constexpr bool passes_caches() {
    for (int k = 0; k < s.output_count; ++k) {
      const node_id n = s.outputs[std::size_t(k)].value;
      if (n >= 0 && cpu::passes_caches(s, g.type(n), n, L)) return true;
    }
    return false;
  }

  // ---- loops

  static constexpr loop_nest<s.read_count> nest() {
    loop_nest<s.read_count> n{s.loops, s.loop, {}, s.folded};
    for (int k = 0; k < s.read_count; ++k)
      n.stride[std::size_t(k)] = s.reads[std::size_t(k)].strides;
    return n;
  }
  /// For outputs that are parts of larger tensors: elements per loop; dense ones have none.
  static constexpr auto output_strides() {
    std::array<std::array<std::int64_t, max_loops>, std::size_t(s.output_count)> strides{};
    for (int k = 0; k < s.output_count; ++k) {
      if (s.outputs[std::size_t(k)].part)
        strides[std::size_t(k)] = s.outputs[std::size_t(k)].strides;
    }
    return strides;
  }

 private:
  static constexpr step_places places{s};

  /// Address k of the list, which is `own` unless the code is shared.
  template <class U>
  static U* at(const memory& m, int k, const buffer_ref& own) {
    if constexpr (shared)
      return m.at<U>(m.places[k]);
    else
      return m.at<U>(own);
  }
};

/// Whether a step's anchor is an application of Op, for `with_constant`.
template <class Op>
inline constexpr auto anchor_is = [](auto step) { return is<Op>(step.anchor()); };

/// f(step) of an f without captures. Of a compiled program a constant, so that no other function is
/// linked than the one that it names.
template <class S, class F>
auto constant_of([[maybe_unused]] S step, F f) {
  if constexpr (S::compiled) {
    constexpr auto y = F{}(S{});
    return y;
  } else {
    return f(step);
  }
}
/// Calls f(bool constant) with what `condition(step)` says, so that a program has one form only.
template <class S, class Condition, class F>
void with_constant(S step, Condition condition, F f) {
  if constexpr (S::compiled)
    f(std::bool_constant<Condition{}(S{})>{});
  else if (condition(step))
    f(std::true_type{});
  else
    f(std::false_type{});
}

}  // namespace cella::cpu
