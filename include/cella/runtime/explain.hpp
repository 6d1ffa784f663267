// Shows what became of a model: its graph after each pass, the steps of its program and its memory,
// as tables for a terminal.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/print.hpp>
#include <cella/runtime/address_book.hpp>
#include <cella/runtime/columns.hpp>
#include <cella/runtime/program.hpp>
#include <cella/runtime/program_arguments.hpp>
#include <cella/runtime/step_formulas.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace cella {

namespace detail {
template <class T>
constexpr auto find_explain_fault() {
  if constexpr (compiled_program<T>)
    return refusal_of<T>{};
  else
    return program_fault<T>{};
}
template <class T>
using explain_fault = decltype(find_explain_fault<T>());
/// A program that the compiler did not refuse.
template <class T>
concept can_be_explained = compiled_program<T> && T::accepted;
}  // namespace detail

/// What `explain` prints.
struct explain_options {
  bool graphs = true;       ///< the traced graph, and the graph after each pass that changed it
  std::size_t width = 100;  ///< columns to fill
};

/// Prints how program P came about and what it does: graphs, steps, memory.
///
/// A step is one row with its kernel, layout, work and place in the user's source, then what it
/// computes: a value `%12` by its number in the last graph, an input by its name, the new value of
/// an input by its name with a prime. `from` and `to` list the values that lie in memory, with
/// addresses in bytes. The work counts the step's arithmetic; bytes are those of the tensors that
/// it names.
template <compiled_program P>
requires(P::accepted)  //
    void explain(std::ostream& out, const explain_options& options = {});
/// What is no program, or was refused as one, is refused here.
template <class T, class Why = detail::explain_fault<T>>
requires(!detail::can_be_explained<T>)  //
    void explain(std::ostream&, const explain_options& = {}) = delete;
template <class T, class Why = detail::program_fault<T>>
void explain(const T&, std::ostream&, const explain_options& = {}) = delete;

/// Prints the steps of program P alone.
template <compiled_program P>
requires(P::accepted)  //
    void print_steps(std::ostream& out, const explain_options& options = {});

/// Prints the memory of program P: sizes, and which values lie where during which steps.
template <compiled_program P>
requires(P::accepted)  //
    void print_memory(std::ostream& out, const explain_options& options = {});

namespace detail {

// ---- text

/// A value with two decimals, or nothing for zero.
inline std::string decimal(double v) {
  if (v == 0) return "";
  std::array<char, 32> s{};
  std::snprintf(s.data(), s.size(), "%.2f", v);
  return s.data();
}
inline std::string to_text(const tensor_type& t) { return std::string((text() << t).view()); }
/// Writes pieces behind a heading, as many to a line as fit; further lines are indented as far.
inline void wrapped(std::ostream& out, const std::string& heading,
                    const std::vector<std::string>& pieces, std::string_view separator,
                    std::size_t width) {
  const std::size_t indent = std::min<std::size_t>(heading.size(), 10);
  std::string line = heading;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string piece =
        pieces[i] + (i + 1 < pieces.size() ? std::string(separator) : std::string());
    if (line.size() + piece.size() > width && line.size() > indent) {
      out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
      line = std::string(indent, ' ');
    }
    line += piece;
  }
  out << line << "\n";
}
inline std::vector<std::string> words_in(std::string_view s) {
  std::vector<std::string> all;
  while (!s.empty()) {
    const std::size_t n = std::min(s.find(' '), s.size());
    all.emplace_back(s.substr(0, n));
    s.remove_prefix(std::min(n + 1, s.size()));
  }
  return all;
}

// ---- tables

inline std::string place_of(const graph& g, const plan_step& s) {
  const node& n = g.nodes[std::size_t(s.anchor)];
  std::string where(g.view(n.cell));
  if (n.line > 0)
    where += (where.empty() ? "" : "  ") + base_name(n.file) + ":" + std::to_string(n.line);
  return where;
}
/// The loops of a group without an anchor, and which of them are summed over: `loops 2 x 84+`.
inline std::string loops_of(const plan_step& s) {
  std::string t;
  for (int d = 0; d < s.loops; ++d) {
    t += (d ? " x " : "loops ") + std::to_string(s.loop[std::size_t(d)]);
    if (s.folded >> d & 1) t += "+";
  }
  return t;
}

inline void print_steps(std::ostream& out, const program_facts& p, const explain_options& o) {
  const formulas f(p);
  address_book book(p, f);
  const std::string indent(5, ' ');
  std::size_t widest = 8;
  for (const plan_step& s : p.steps) widest = std::max(widest, name(s.kind).size() + 2);
  out << " #   " << left("kernel", widest) << "layout      MFLOP       KiB  cell and source\n"
      << std::string(o.width, '-') << "\n";
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const plan_step& s = p.steps[i];
    const tensor_type t = p.g.type(s.anchor);
    const std::int64_t moved = is_conversion(s.kind) ? 2 * t.bytes() : s.bytes;
    flops += s.flops;
    bytes += moved;
    std::string where = place_of(p.g, s);
    if (s.carried) where += "  (by the kernel of step " + std::to_string(i + 1) + ")";
    out << right(std::to_string(i), 2) << "   " << left(std::string(name(s.kind)), widest)
        << left(std::string(name(s.arrangement)), 7) << right(decimal(double(s.flops) * 1e-6), 10)
        << right(decimal(double(moved) / 1024), 10) << (where.empty() ? "" : "  ") << where << "\n";
    for (int k = 0; k < s.output_count; ++k) {
      const node_id n = s.outputs[std::size_t(k)].value;
      if (n < 0) continue;
      const std::string heading = indent + f.name(n) + ": ";
      std::string formula = to_text(p.g.type(n));
      if (!is_conversion(s.kind)) formula += " = " + f.definition(n);
      wrapped(out, heading, words_in(formula), " ", o.width);
    }
    if (s.kind == step_kind::control) {
      std::vector<std::string> pieces;
      for (node_id n : f.control_results(s)) {
        if (n >= 0) pieces.push_back(f.name(n) + ": " + to_text(p.g.type(n)) + ",");
      }
      if (!pieces.empty()) pieces.back().replace(pieces.back().size() - 1, 1, " =");
      for (std::string& word : words_in(f.definition(s.anchor))) pieces.push_back(std::move(word));
      wrapped(out, indent, pieces, " ", o.width);
    }
    const auto all = book.follow(int(i));
    if (!loops_of(s).empty()) out << indent << loops_of(s) << "\n";
    if (!all.from.empty()) wrapped(out, indent + "from ", all.from, ", ", o.width);
    wrapped(out, indent + "to   ", all.to, ", ", o.width);
  }
  out << std::string(o.width, '-') << "\n"
      << left("     " + std::to_string(p.steps.size()) + " steps", widest + 12)
      << right(decimal(double(flops) * 1e-6), 10) << right(decimal(double(bytes) / 1024), 10)
      << "\n";
  for (std::size_t k = 0; k < p.results.size(); ++k) {
    const plan_value& r = p.results[k];
    out << indent << "result " << k << ": " << f.name(r.value) << " " << to_text(p.g.type(r.value))
        << " @" << address_book::address(r.at) << "\n";
  }
}

inline void print_memory(std::ostream& out, const program_facts& p, const explain_options& o) {
  auto row = [&](std::string_view what, std::int64_t bytes, const std::string& remark) {
    out << "     " << left(std::string(what), 24) << right(grouped(bytes), 12) << "   " << remark
        << "\n";
  };
  auto tensors = [&](std::initializer_list<input_role> roles) {
    std::int64_t n = 0;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < p.g.inputs.size(); ++i) {
      for (input_role r : roles) {
        if (p.g.inputs[i].role != r) continue;
        ++n;
        elements += p.g.type(p.g.input(int(i))).size();
      }
    }
    return grouped(elements) + " numbers in " + grouped(n) + " tensors";
  };
  row("arena", p.arena, "values between steps");
  row("  without reuse", p.arena_without_reuse, "the sum of all values");
  row("  lower bound", p.live, "the largest set of values alive at once");
  row("parameters and states", p.parameters, tensors({input_role::parameter, input_role::state}));
  row("optimizer slots", p.slots, tensors({input_role::slot}));
  const constant_pool& constants = p.g.constants;
  if (!constants.tensors.empty())
    row("constants", std::int64_t(constants.words.size() * 8),
        "in the executable file, " + grouped(std::int64_t(constants.tensors.size())) + " tensors");

  const formulas f(p);
  address_book book(p, f);
  for (std::size_t i = 0; i < p.steps.size(); ++i) book.follow(int(i));
  std::vector<arena_value> values = book.values();
  std::sort(values.begin(), values.end(), [](const arena_value& a, const arena_value& b) {
    return std::tie(a.offset, a.first, a.name) < std::tie(b.offset, b.first, b.name);
  });
  // One column per step, and one behind the last for results; several steps share one if need be.
  const std::size_t columns = p.steps.size() + 1;
  const std::size_t room = o.width > 80 ? o.width - 50 : 30;
  const std::size_t per_column = (columns + room - 1) / room;
  std::string tens;
  std::string ones;
  for (std::size_t c = 0; c < columns; c += 5 * per_column) {
    tens += left(std::to_string(c / 10 % 10), 5);
    ones += left(std::to_string(c % 10), 5);
  }
  auto trimmed = [](const std::string& s) { return s.substr(0, s.find_last_not_of(' ') + 1); };
  out << "\n     " << left("value in the arena", 20) << right("at", 10) << right("bytes", 10)
      << "   " << trimmed(tens) << "\n"
      << std::string(48, ' ') << trimmed(ones) << "\n";
  for (const arena_value& v : values) {
    const std::string label = v.name.size() > 20 ? v.name.substr(0, 18) + ".." : v.name;
    std::string bars;
    for (std::size_t c = 0; c < columns; c += per_column) {
      const bool alive = int(c + per_column - 1) >= v.first && int(c) <= v.last;
      bars += alive ? "#" : ".";
    }
    out << "     " << left(label, 20) << right(std::to_string(v.offset), 10)
        << right(v.bytes ? std::to_string(v.bytes) : "", 10) << "   " << bars << "\n";
  }
}

/// A stage of a graph's way: its name, node count and text.
inline void print_stage(std::ostream& out, const std::string& what, const graph& g,
                        std::string& before) {
  std::size_t nodes = 0;
  for (const region& r : g.regions) nodes += r.nodes.size();
  std::string now = to_string(g);
  out << "== " << what << ": " << nodes << " nodes";
  if (now == before) {
    out << ", unchanged\n\n";
    return;
  }
  out << "\n" << now << "\n";
  before = std::move(now);
}

/// The steps and the memory, each under a heading.
inline void print_plan(std::ostream& out, const program_facts& p, const explain_options& o) {
  out << "== steps: " << (p.training ? "training" : "inference") << " in " << name(p.element)
      << ", " << p.lanes << " lanes\n";
  print_steps(out, p, o);
  out << "\n== memory, in bytes\n";
  print_memory(out, p, o);
}

}  // namespace detail

template <compiled_program P>
requires(P::accepted)  //
    void print_steps(std::ostream& out, const explain_options& options) {
  detail::print_steps(out, detail::facts_of<P>(), options);
}
template <compiled_program P>
requires(P::accepted)  //
    void print_memory(std::ostream& out, const explain_options& options) {
  detail::print_memory(out, detail::facts_of<P>(), options);
}

template <compiled_program P>
requires(P::accepted)  //
    void explain(std::ostream& out, const explain_options& options) {
  const detail::program_facts p = detail::facts_of<P>();
  if (options.graphs) {
    graph g = P::traced();
    std::string before;
    detail::print_stage(out, "traced", g, before);
    for (const pass& next : standard_passes) {
      g = next.run(std::move(g));
      detail::print_stage(out, "after " + std::string(next.name), g, before);
    }
    // The compiler may evaluate operands in another order than the traced copy above.
    if (to_string(p.g) != before) detail::print_stage(out, "as compiled", p.g, before);
  }
  detail::print_plan(out, p, options);
}

namespace detail {

/// The same of a plan that was made at run time, given what runs it: graph, steps and memory.
template <class Runner>
[[gnu::cold]] void explain_plan(std::ostream& out, const Runner& of,
                                const explain_options& options) {
  const growing_plan& p = of.plan();
  program_facts facts{of.source(),
                      {p.steps.data(), p.steps.size()},
                      {p.results.data(), p.results.size()},
                      {p.links.data(), p.links.size()},
                      p.arena_bytes,
                      p.arena_bytes_without_reuse,
                      p.live_bytes,
                      0,
                      0,
                      Runner::element,
                      Runner::vector_lanes,
                      of.source().changes_inputs()};
  // The caller owns all inputs, each in a memory space of its own.
  for (std::size_t i = 0; i < facts.g.inputs.size(); ++i) {
    facts.g.inputs[i].role = input_role::argument;
    facts.g.inputs[i].index = std::int32_t(i);
  }
  std::string none;
  if (options.graphs) print_stage(out, "planned", facts.g, none);
  print_plan(out, facts, options);
}

}  // namespace detail

}  // namespace cella
