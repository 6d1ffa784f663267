// CELLA_DEBUG=nan for programs: a table of what each step writes, and a run that looks at it.
#pragma once

#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/backend/host/finite.hpp>
#include <cella/plan/options.hpp>

namespace cella::cpu {

/// Runs the steps of program P and looks at what each has written. Throws number_error at the first
/// NaN, and at the first infinity that was made from finite numbers: a mask of infinities is no
/// fault. It names what the step computes; operations that share its kernel are named together.
template <class P>
[[gnu::cold]] void run_watched(const memory& m, std::byte* scratch, std::int64_t scratch_bytes);

/// A value that a step writes, and how its elements lie: dense, or, where a loop nest writes a part
/// of a tensor, `strides` elements apart.
struct watched_value {
  node_id value = no_node;
  tensor_type type{};
  buffer_ref at{};
  layout arrangement{};
  int loops{};  ///< 0: dense
  std::int64_t first{};
  std::array<std::int64_t, max_loops> loop{}, strides{};
};

/// A range of another table.
struct table_range {
  int first{};
  int last{};
};

struct watched_step {
  table_range outputs;
  table_range sources;  ///< the values that it is computed from
  table_range words;    ///< what it computes, in characters
  bool infinite{};      ///< it computes with an infinite constant
};

/// The table while it is made, and as a constant.
struct growing_watch {
  list<watched_step> steps;
  list<watched_value> inputs, outputs;
  list<node_id> sources;
  list<char> characters;
};
template <int Steps, int Inputs, int Outputs, int Sources, int Characters>
struct watch_table {
  std::array<watched_step, std::size_t(Steps)> steps{};
  std::array<watched_value, std::size_t(Inputs)> inputs{};
  std::array<watched_value, std::size_t(Outputs)> outputs{};
  std::array<node_id, std::size_t(Sources)> sources{};
  std::array<char, std::size_t(Characters)> characters{};
};

namespace detail {

/// Makes the table of a program whose first region is the main region of `g`.
class watch_maker {
 public:
  constexpr watch_maker(const graph& g, span<const plan_step> steps, span<const buffer_ref> links)
      : g_(g), links_(links), seen_(g.nodes.size(), 0) {
    add_inputs();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      watched_step w;
      w.outputs.first = int(table.outputs.size());
      add_outputs(steps[i]);
      // A sum that this step's kernel yields as well is described by a step without a kernel.
      if (steps[i].side >= 0) put_outputs(steps[std::size_t(steps[i].side)]);
      w.outputs.last = int(table.outputs.size());
      describe(steps[i], w);
      table.steps.push_back(w);
    }
  }

  growing_watch table;

 private:
  constexpr void add_inputs() {
    const input_offsets parameters = offsets_of(g_, {input_role::parameter, input_role::state});
    const input_offsets slots = offsets_of(g_, {input_role::slot});
    for (std::size_t i = 0; i < g_.regions[0].inputs.size(); ++i) {
      const node_id n = g_.input(int(i));
      seen_[std::size_t(n)] = 1;
      const input_info in = i < g_.inputs.size() ? g_.inputs[i] : input_info{};
      buffer_ref at{first_argument + in.index, 0};
      if (parameters.offset[i] >= 0) at = {parameter_space, parameters.offset[i]};
      if (slots.offset[i] >= 0) at = {slot_space, slots.offset[i]};
      if (in.role == input_role::scalar) at = {scalar_space, in.index * std::int64_t{8}};
      add(table.inputs, n, at);
    }
  }
  constexpr void add_outputs(const plan_step& s) {
    if (is_conversion(s.kind) || s.carried) return;
    put_outputs(s);
  }
  constexpr void put_outputs(const plan_step& s) {
    if (s.kind == step_kind::control) {
      const node& n = g_.nodes[std::size_t(s.anchor)];
      for (int k = 0; k < n.result_count; ++k) {
        const tensor_type t = g_.result_type(s.anchor, k);
        if (!may_be_infinite(t.element)) continue;
        table.outputs.push_back(
            {s.anchor, t, links_[std::size_t(s.first_link + n.operand_count + k)]});
      }
      return;
    }
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      if (o.value < 0) continue;
      watched_value* const v = add(table.outputs, o.value, o.at);
      if (!v) continue;
      v->arrangement = o.form;
      if (o.summed) v->type.shape = {s.as<rows_step>().units(), s.as<rows_step>().width};
      if (!o.part) continue;
      for (int i = 0; i < s.loops; ++i) {
        if (s.folded >> i & 1) continue;
        v->loop[std::size_t(v->loops)] = s.loop[std::size_t(i)];
        v->strides[std::size_t(v->loops++)] = o.strides[std::size_t(i)];
      }
      v->first = o.first;
    }
  }
  constexpr watched_value* add(list<watched_value>& to, node_id n, buffer_ref at) {
    if (!may_be_infinite(g_.type(n).element)) return nullptr;
    to.push_back({n, g_.type(n), at});
    return &to.back();
  }

  // ---- what a step computes

  constexpr void describe(const plan_step& s, watched_step& w) {
    w.sources.first = int(table.sources.size());
    w.words.first = int(table.characters.size());
    members_.clear();
    for (int i = w.outputs.first; i < w.outputs.last; ++i)
      collect(table.outputs[std::size_t(i)].value, w);
    if (w.outputs.first < w.outputs.last) put_words(s);
    w.sources.last = int(table.sources.size());
    w.words.last = int(table.characters.size());
  }
  /// The nodes behind `n` that no step before has computed.
  constexpr void collect(node_id n, watched_step& w) {
    const node& x = g_.nodes[std::size_t(n)];
    if (is<constant_op>(x)) {
      const double value = x.attributes.template as<constant_op::options>().value;
      w.infinite |= !is_finite(value);
      return;
    }
    if (is<values_op>(x)) {
      if (!is_integer(x.type.element)) w.infinite |= holds_infinity(n);
      return;
    }
    if (seen_[std::size_t(n)]) {
      table.sources.push_back(n);
      return;
    }
    seen_[std::size_t(n)] = 1;
    for (node_id o : g_.operands(n)) collect(o, w);
    members_.push_back(n);
  }
  /// In constant evaluation, too, where infinities cannot be computed with.
  static constexpr bool is_finite(double value) {
    constexpr double largest = std::numeric_limits<double>::max();
    return value >= -largest && value <= largest;
  }
  /// Whether a constant tensor holds what is not finite.
  constexpr bool holds_infinity(node_id n) const {
    bool infinite = false;
    const tensor_type t = g_.type(n);
    with_element(t.element, [&]<class T>() {
      for_each_element<T>(g_.values_of(n), std::size_t(t.size()), [&](std::size_t, T x) {
        if constexpr (is_complex(dtype_of<T>))
          infinite |= !is_finite(x.real()) || !is_finite(x.imag());
        else
          infinite |= !is_finite(double(x));
      });
    });
    return infinite;
  }
  /// `log at net.cpp:12 in head`; of several: `exp at net.cpp:12 in head or log at net.cpp:13`
  constexpr void put_words(const plan_step& s) {
    constexpr std::size_t most = 6;
    list<text> all;
    // A small body runs as one function, of which only the results are seen.
    if (s.kind == step_kind::control) {
      for (int r : g_.nodes[std::size_t(s.anchor)].regions) {
        if (r < 0) continue;
        const auto& body = g_.regions[std::size_t(r)].nodes;
        members_.insert(members_.end(), body.begin(), body.end());
      }
    }
    for (node_id n : members_) {
      const node& x = g_.nodes[std::size_t(n)];
      const bool summed_up = is<matmul_op>(x) && s.kind == step_kind::elementwise;
      const bool computes = x.op->pointwise || x.op->kind == op_kind::control || n == s.anchor ||
                            n == s.accumulated || summed_up;
      if (!computes || x.op == &get_info_of || is<identity_op>(x)) continue;
      const text t = describe_operation(x, g_.view(x.cell));
      bool known = false;
      for (const text& other : all) known |= other.view() == t.view();
      if (!known) all.push_back(t);
    }
    if (all.empty()) all.push_back(text(name(s.kind)));
    const std::size_t shown = all.size() > most ? most : all.size();
    for (std::size_t i = 0; i < shown; ++i) {
      if (i) put(i + 1 == shown && shown == all.size() ? " or " : ", ");
      put(all[i].view());
    }
    if (shown < all.size()) {
      put(" or another of the ");
      put((text() << all.size()).view());
      put(" operations in this kernel");
    }
  }
  constexpr void put(std::string_view s) {
    table.characters.insert(table.characters.end(), s.begin(), s.end());
  }

  const graph& g_;
  span<const buffer_ref> links_;
  flags seen_;
  ids members_;
};

/// The table of program P as a constant.
template <class P>
constexpr auto make_watch_table() {
  // Twice: once for the sizes.
  constexpr auto make = [] {
    const graph g = P::planned();
    return watch_maker(g, P::plan.steps, P::plan.links).table;
  };
  constexpr auto sizes = [make] {
    const growing_watch w = make();
    return std::array{int(w.steps.size()), int(w.inputs.size()), int(w.outputs.size()),
                      int(w.sources.size()), int(w.characters.size())};
  }();
  const growing_watch w = make();
  watch_table<sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]> t;
  std::copy(w.steps.begin(), w.steps.end(), t.steps.begin());
  std::copy(w.inputs.begin(), w.inputs.end(), t.inputs.begin());
  std::copy(w.outputs.begin(), w.outputs.end(), t.outputs.begin());
  std::copy(w.sources.begin(), w.sources.end(), t.sources.begin());
  std::copy(w.characters.begin(), w.characters.end(), t.characters.begin());
  return t;
}

template <class P>
inline constexpr auto watch_table_of = make_watch_table<P>();

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
  span<const char> characters;
};
template <class Table>
constexpr watch_view view_of(const Table& t) {
  return {t.steps, t.inputs, t.outputs, t.sources, t.characters};
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
    const auto words = std::size_t(s.words.last - s.words.first);
    throw number_error(
        nan_made(std::string_view(table.characters.data() + s.words.first, words), found, v.type));
  }
}

/// The same for program P.
template <class P>
[[gnu::cold]] void look_at_inputs(const memory& m) {
  m.context->watch->infinite.resize(P::graph.nodes.size());
  look_at_inputs<lanes<element<P::element_type>>>(view_of(detail::watch_table_of<P>), m,
                                                  m.context->watch->infinite);
}
template <class P>
[[gnu::cold]] void look_at_step(const memory& m, int i) {
  look_at_step<lanes<element<P::element_type>>>(view_of(detail::watch_table_of<P>), m,
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
