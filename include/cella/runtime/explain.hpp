// Shows what became of a model: its graph after each pass, the steps of its program and its memory,
// as tables for a terminal.
#pragma once

#include <algorithm>
#include <cella/graph/print.hpp>
#include <cella/runtime/columns.hpp>
#include <cella/runtime/program.hpp>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace cella {

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
template <class P>
void explain(std::ostream& out, const explain_options& options = {});

/// Prints the steps of program P alone.
template <class P>
void print_steps(std::ostream& out, const explain_options& options = {});

/// Prints the memory of program P: sizes, and which values lie where during which steps.
template <class P>
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

// ---- values

/// What is printed of a program, as plain data: one instance serves all programs.
struct program_facts {
  graph g;
  std::span<const plan_step> steps;
  std::span<const plan_value> results;
  std::int64_t arena, arena_without_reuse, live, parameters, slots;
  dtype element;
  int lanes;
  bool training;
};
template <class P>
program_facts facts_of() {
  const auto& p = P::plan;
  return {thaw(P::graph),
          {p.steps.data(), std::size_t(p.step_count)},
          {p.results.data(), std::size_t(p.result_count)},
          p.arena_bytes,
          p.arena_bytes_without_reuse,
          p.live_bytes,
          p.parameter_bytes,
          p.slot_bytes,
          P::element_type,
          lanes_of<P::element_type>(),
          P::training};
}

/// Binary operators as they are written, by precedence.
struct infix {
  std::string_view op, sign;
  int precedence;
};
inline constexpr std::array infix_operators{
    infix{"equal", " == ", 1},  infix{"not_equal", " != ", 1},
    infix{"less", " < ", 1},    infix{"less_equal", " <= ", 1},
    infix{"greater", " > ", 1}, infix{"greater_equal", " >= ", 1},
    infix{"add", " + ", 2},     infix{"sub", " - ", 2},
    infix{"mul", " * ", 3},     infix{"div", " / ", 3}};

/// Writes what a step computes as formulas over the values that lie in memory.
class formulas {
 public:
  explicit formulas(const program_facts& p) : g_(p.g), stored_(g_.nodes.size(), 0), names_(g_) {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) stored_[std::size_t(g_.input(int(i)))] = 1;
    for (const plan_step& s : p.steps) {
      for (int k = 0; k < s.output_count; ++k) {
        if (s.outputs[std::size_t(k)].value >= 0)
          stored_[std::size_t(s.outputs[std::size_t(k)].value)] = 1;
      }
      if (s.corners.valid()) stored_[std::size_t(corners(s))] = 1;
    }
  }

  /// `%12`, `fc1.weight`, or `fc1.weight'` for its new value.
  std::string name(node_id n) const {
    n = source(n);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      if (g_.outputs[k].updates >= 0 && g_.regions[0].outputs[k] == n)
        return input_name(g_.input(g_.outputs[k].updates)) + "'";
    }
    if (g_.nodes[std::size_t(n)].op == &input_info_of) return input_name(n);
    return names_[n];
  }
  /// The value of node n, whether it lies in memory or not.
  std::string definition(node_id n) const { return apply(n, 0); }

  /// The positions that a pooling step writes.
  node_id corners(const plan_step& s) const {
    const node_id pool = g_.operand(s.accumulated, 0);
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      if (x.op == &get_info_of && g_.operand(n, 0) == pool &&
          x.attributes.as<get_attributes>().result == 1)
        return n;
    }
    return no_node;
  }
  /// Through reshapes, which share their operand's memory.
  node_id source(node_id n) const {
    while (is<reshape_op>(at(n)) || is<identity_op>(at(n)) || is<stop_gradient_op>(at(n)))
      n = g_.operand(n, 0);
    return n;
  }
  /// What is read in place of n: broadcasts repeat their operand.
  node_id read_value(node_id n) const { return is<broadcast_op>(at(n)) ? g_.operand(n, 0) : n; }

 private:
  const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  std::string input_name(node_id n) const { return names_[n].substr(1); }

  std::string term(node_id n, int precedence) const {
    n = source(n);
    if (is<broadcast_op>(at(n)) && !stored_[std::size_t(n)])
      return term(g_.operand(n, 0), precedence);
    const bool is_constant = is<constant_op>(at(n));
    return stored_[std::size_t(n)] && !is_constant ? name(n) : apply(n, precedence);
  }
  std::string apply(node_id n, int precedence) const {
    n = source(n);
    const node& x = at(n);
    if (is<constant_op>(x)) return number(x.attributes.as<constant_op::options>().value);
    if (x.op == &get_info_of) {
      const int result = x.attributes.as<get_attributes>().result;
      return apply(g_.operand(n, 0), precedence) + (result ? "." + std::to_string(result) : "");
    }
    if (x.op->name == "neg") return "-" + term(g_.operand(n, 0), 4);
    for (const infix& i : infix_operators) {
      if (i.op != x.op->name) continue;
      const std::string s = term(g_.operand(n, 0), i.precedence) + std::string(i.sign) +
                            term(g_.operand(n, 1), i.precedence + 1);
      return i.precedence < precedence ? "(" + s + ")" : s;
    }
    std::string s(x.op->name);
    s += "(";
    for (int k = 0; k < x.operand_count; ++k) s += (k ? ", " : "") + term(g_.operand(n, k), 0);
    return s + ")";
  }

  const graph& g_;
  flags stored_;
  node_names names_;
};

// ---- addresses

/// A value in the arena, and the steps during which it lives.
struct arena_value {
  std::string name;
  std::int64_t offset{};
  std::int64_t bytes{};  ///< 0: scratch, whose size only the planner knows
  int first{};
  int last{};
};

/// Follows a program step by step: what lies at an address when a step reads it.
class address_book {
 public:
  address_book(const program_facts& p, const formulas& f)
      : p_(p), f_(f), batched_(batched_values(p.g)) {
    const input_offsets parameters = offsets_of(p.g, {input_role::parameter, input_role::state});
    const input_offsets slots = offsets_of(p.g, {input_role::slot});
    for (std::size_t i = 0; i < p.g.inputs.size(); ++i) {
      const input_info& in = p.g.inputs[i];
      const std::string name(p.g.view(in.name));
      if (parameters.offset[i] >= 0) lies_at_[{parameter_space, parameters.offset[i]}] = name;
      if (slots.offset[i] >= 0) lies_at_[{slot_space, slots.offset[i]}] = name;
      if (in.role == input_role::scalar)
        lies_at_[{scalar_space, in.index * std::int64_t{8}}] = name;
      if (in.role == input_role::argument) lies_at_[{first_argument + in.index, 0}] = name;
    }
  }

  static std::string address(const buffer_ref& r) {
    constexpr std::array<std::string_view, 4> spaces{"arena", "parameters", "slots", "scalars"};
    if (r.space >= first_argument) return "argument";
    return std::string(spaces[std::size_t(r.space)]) + "+" + std::to_string(r.offset);
  }
  /// `x @argument`, and in the arena the steps' own memory.
  std::string at(const buffer_ref& r) const {
    const auto found = lies_at_.find({r.space, r.offset});
    return (found == lies_at_.end() ? "?" : found->second) + " @" + address(r);
  }

  /// What the step reads, writes, and writes elsewhere: to be called for each step in order.
  struct access_list {
    std::vector<std::string> from, to;
  };
  access_list follow(int index) {
    const plan_step& s = p_.steps[std::size_t(index)];
    access_list all;
    for (std::size_t k = 0; k < s.in.size(); ++k) {
      if (!s.in[k].valid()) continue;
      // Filters in the kernel's own order, packed when the parameters change.
      if (k == 3) {
        touch(index, s.in[k], "packed " + f_.name(p_.g.operand(s.anchor, 1)), 0, true);
        values_.back().first = 0;
        all.from.push_back("packed filters @" + address(s.in[k]));
        continue;
      }
      read(index, s.in[k]);
      all.from.push_back(at(s.in[k]));
    }
    for (int k = 0; k < s.read_count; ++k) {
      const operand_read& r = s.reads[std::size_t(k)];
      constexpr std::array<std::string_view, 8> how{"", " per row", " per column", " once", "",
                                                    "", "",         ", drawn"};
      read(index, r.at);
      if (std::find_if(s.in.begin(), s.in.end(), [&](const buffer_ref& i) {
            return i.space == r.at.space && i.offset == r.at.offset;
          }) != s.in.end())
        continue;
      all.from.push_back(f_.name(f_.read_value(r.value)) + " @" + address(r.at) +
                         std::string(how[std::size_t(r.how)]));
    }
    if (s.scratch.valid()) {
      touch(index, s.scratch, "scratch", 0, false);
      all.to.push_back("scratch @" + address(s.scratch));
    }
    if (s.corners.valid()) {
      const std::string name = f_.name(f_.corners(s));
      touch(index, s.corners, name, 0, false);
      all.to.push_back(name + " @" + address(s.corners));
    }
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      const bool lanes = o.value >= 0 && writes_lanes(batched_, s, k);
      std::string label = o.value >= 0                         ? f_.name(o.value)
                          : s.kind == step_kind::random_stream ? "stream of " + f_.name(s.anchor)
                                                               : "unused result";
      if (is_conversion(s.kind) && s.kind != step_kind::copy)
        label += lanes ? " in lanes" : " unpacked";
      const bool in_place = o.at.space != arena_space;
      const std::int64_t bytes = o.value < 0 ? 0 : bytes_of(s, p_.g.type(o.value), lanes);
      if (!in_place) touch(index, o.at, label, bytes, false);
      all.to.push_back((in_place ? f_.name(o.value) : label) + " @" + address(o.at) +
                       (in_place ? " in place" : ""));
    }
    return all;
  }
  /// After all steps: results live on.
  std::vector<arena_value> values() {
    for (const plan_value& r : p_.results) read(int(p_.steps.size()), r.at);
    return values_;
  }

 private:
  std::int64_t bytes_of(const plan_step& s, const tensor_type& t, bool lanes) const {
    if (!lanes) return t.bytes();
    std::int64_t features = 1;
    for (int d = 1; d < t.rank(); ++d) {
      const bool bordered = is_conversion(s.kind) && t.rank() == 4 && d >= 2;
      features *= t[d] + (bordered ? 2 * s.extents[std::size_t(d + 2)] : 0);
    }
    return (t[0] + p_.lanes - 1) / p_.lanes * features * p_.lanes *
           std::int64_t(size_of(t.element));
  }
  void touch(int index, const buffer_ref& r, const std::string& name, std::int64_t bytes,
             bool stays) {
    lies_at_[{r.space, r.offset}] = name;
    current_[r.offset] = values_.size();
    values_.push_back({name, r.offset, bytes, index, stays ? int(p_.steps.size()) : index});
  }
  void read(int index, const buffer_ref& r) {
    const auto found = current_.find(r.offset);
    if (r.space != arena_space || found == current_.end()) return;
    int& last = values_[found->second].last;
    last = std::max(last, index);
  }

  const program_facts& p_;
  const formulas& f_;
  flags batched_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::string> lies_at_;
  std::map<std::int64_t, std::size_t> current_;
  std::vector<arena_value> values_;
};

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

template <class P>
struct program_traits;
template <class Cell, bool Training, dtype Element, class... Arguments>
struct program_traits<program<Cell, Training, Element, Arguments...>> {
  static graph trace_again() {
    Cell cell{};
    return trace(cell, std::array<tensor_type, sizeof...(Arguments)>{Arguments::type...},
                 {Training, Element});
  }
};

}  // namespace detail

template <class P>
void print_steps(std::ostream& out, const explain_options& options) {
  detail::print_steps(out, detail::facts_of<P>(), options);
}
template <class P>
void print_memory(std::ostream& out, const explain_options& options) {
  detail::print_memory(out, detail::facts_of<P>(), options);
}

template <class P>
void explain(std::ostream& out, const explain_options& options) {
  const detail::program_facts p = detail::facts_of<P>();
  if (options.graphs) {
    graph g = detail::program_traits<P>::trace_again();
    std::string before;
    detail::print_stage(out, "traced", g, before);
    for (const pass& next : standard_passes) {
      g = next.run(std::move(g));
      detail::print_stage(out, "after " + std::string(next.name), g, before);
    }
    // The compiler may evaluate operands in another order than the traced copy above.
    if (to_string(p.g) != before) detail::print_stage(out, "as compiled", p.g, before);
  }
  out << "== steps: " << (p.training ? "training" : "inference") << " in " << name(p.element)
      << ", " << p.lanes << " lanes\n";
  detail::print_steps(out, p, options);
  out << "\n== memory, in bytes\n";
  detail::print_memory(out, p, options);
}

}  // namespace cella
