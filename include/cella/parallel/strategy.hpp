// What a user says of how a program is divided: a mode, and what is fixed of some tensors and
// operations.
#pragma once

#include <cella/graph/name_pattern.hpp>
#include <cella/parallel/block_name.hpp>
#include <cella/parallel/propagation.hpp>

namespace cella::parallel {

enum class mode : std::uint8_t {
  serial,          ///< all ranks compute everything
  data,            ///< samples are divided along one mesh axis; parameters are replicated
  zero1,           ///< the same, and the optimizer's state is divided, too (ZeRO stage 1)
  zero2,           ///< and gradients, of which each rank sums up its part (ZeRO stage 2)
  zero3,           ///< and parameters, which are gathered where they are read (ZeRO stage 3)
  semi_automatic,  ///< samples as in `data`, tensors and operations as stated, the rest follows
  automatic        ///< what is stated holds, all else is found
};
constexpr std::string_view mode_name(mode m) {
  constexpr std::array<std::string_view, 7> names{"serial", "data",   "zero1",    "zero2",
                                                  "zero3",  "tensor", "automatic"};
  return names[std::size_t(m)];
}
/// The mode of this name. Throws `error`, which lists them, if there is none.
inline mode mode_called(std::string_view name) {
  text all;
  for (int m = 0; m <= int(mode::automatic); ++m) {
    if (mode_name(mode(m)) == name) return mode(m);
    all << (m ? ", " : "") << mode_name(mode(m));
  }
  throw error(text() << "mode " << name << ": there are " << all);
}
/// What of a training step is divided among the ranks that divide the samples: nothing (0), the
/// optimizer's state (1), gradients (2), parameters (3).  Rajbhandari et al. 2020
constexpr int zero_stage(mode m) {
  return m >= mode::zero1 && m <= mode::zero3 ? int(m) - int(mode::data) : 0;
}

/// As the dimension of a `tensor_cut`: ranks along this axis have all of the tensor.
inline constexpr int stays_whole = -1;
/// Parameters, states and arguments whose name matches `name` (`*` stands for any characters) are
/// cut along a dimension: `{"blocks.*.up.weight", "model", 0}`. The optimizer's state of a
/// parameter lies as the parameter, unless it is named in full. Of two cuts the later one holds.
struct tensor_cut {
  std::string_view name;
  std::string_view axis;
  int dimension{};
};
/// The first operation `op` of the cells whose path matches `cell` is computed on parts: into how
/// many each dimension of each operand is divided. `{"fc1", "matmul", {{4, 1}, {1, 1}}}`
struct operation_cut {
  std::string_view cell;
  std::string_view op;
  list<shape> parts;
};

/// How attention is computed whose queries, keys and values are cut along the places of a sequence.
enum class attention_kind : std::uint8_t {
  cheapest,  ///< by the model of costs, within the memory of a device
  gathered,  ///< a rank gathers the keys and values of all
  ring       ///< they go round the ranks, where `join_attention` finds attention
};

struct strategy {
  parallel::mode mode = mode::automatic;
  list<tensor_cut> tensors{};
  list<operation_cut> operations{};
  std::string_view data_axis = "data";
  std::int64_t bucket_bytes = 1 << 20;  ///< see bucket_gradients; 0: each gradient by itself
  /// Parameters of fewer bytes, and what the optimizer keeps of them, ZeRO leaves with every rank:
  /// a message takes longer than they are worth.
  std::int64_t whole_bytes = 1 << 12;
  attention_kind attention = attention_kind::cheapest;
};

/// What is left to choose; the fault says what of the strategy is impossible.
struct stated_space {
  search_space space;
  text fault{};
};
constexpr stated_space space_of(const graph& g, const device_mesh& m, const strategy& s);

// ------------------------------------------------------------------------------------------------

namespace detail {

class statement {
 public:
  constexpr statement(const graph& g, const device_mesh& m, const strategy& s)
      : g_(g), m_(m), s_(s) {
    out_.space.only.resize(g.nodes.size());
  }

  constexpr stated_space run() {
    const int stage = zero_stage(s_.mode);
    const bool divides_samples =
        s_.mode == mode::data || stage > 0 || s_.mode == mode::semi_automatic;
    data_ = m_.find(s_.data_axis);
    if (s_.mode == mode::serial) out_.space.axes = 0;
    if (s_.mode == mode::data || stage > 0) {
      if (data_ < 0)
        return refuse(text() << "mode " << mode_name(s_.mode) << ": the mesh " << mesh_text(m_)
                             << " has no axis called " << s_.data_axis
                             << ", along which samples are divided");
      out_.space.axes = 1u << data_;
    }
    list<layout> stated(g_.inputs.size());
    flags is_stated(g_.inputs.size(), 0);
    for (const tensor_cut& c : s_.tensors) cut(c, stated, is_stated);
    for (std::size_t i = 0; i < g_.inputs.size() && out_.fault.empty(); ++i) {
      const input_info& in = g_.inputs[i];
      const node_id n = g_.input(int(i));
      const tensor_type t = g_.type(n);
      layout l = stated[i];
      if (in.role == input_role::slot && !is_stated[i]) {
        const int p = parameter_of(int(i));
        if (p >= 0 && is_stated[std::size_t(p)]) {
          l = stated[std::size_t(p)];
          is_stated[i] = 1;
        }
      }
      const bool is_divided = (in.role == input_role::slot && stage >= 1) ||
                              (in.role == input_role::parameter && stage >= 3);
      if (is_divided && t.bytes() >= s_.whole_bytes) divide(t.shape, l);
      if (divides_samples && in.role == input_role::argument && data_ >= 0 && t.rank() > 0 &&
          !is_stated[i]) {
        l[data_] = 0;
        if (!can_lie(t.shape, l, m_))
          return refuse(text() << "mode " << mode_name(s_.mode) << ": the argument "
                               << g_.view(in.name) << " " << t
                               << " is less than a sample for each of the " << m_[data_].size
                               << " ranks of the axis " << s_.data_axis
                               << "; take a larger batch or fewer ranks");
      }
      if (divides_samples || is_stated[i])
        out_.space.only[std::size_t(n)].push_back({{}, list<layout>(1, l)});
    }
    for (const operation_cut& c : s_.operations)
      if (out_.fault.empty()) cut(c);
    if (out_.fault.empty() && divides_samples)
      propagate(
          g_, m_, out_.space,
          {.updates_open = stage >= 1, .gradients_cut = stage >= 2, .whole_bytes = s_.whole_bytes});
    return std::move(out_);
  }

 private:
  constexpr stated_space refuse(const text& why) {
    out_.fault = why;
    return std::move(out_);
  }
  constexpr void cut(const tensor_cut& c, list<layout>& stated, flags& is_stated) {
    if (!out_.fault.empty()) return;
    const int a = m_.find(c.axis);
    if (a < 0) {
      out_.fault = text() << "strategy: " << c.name << " is to be cut along the axis " << c.axis
                          << ", which the mesh " << mesh_text(m_) << " does not have";
      return;
    }
    bool any = false;
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const input_role role = g_.inputs[i].role;
      const std::string_view label = g_.view(g_.inputs[i].name);
      if (role == input_role::scalar ||
          (!matches(c.name, label) && !matches(c.name, block_of(label).whole)))
        continue;
      if (role == input_role::slot && c.name != label) continue;
      any = true;
      is_stated[i] = 1;
      const shape s = g_.type(g_.input(int(i))).shape;
      stated[i][a] = replicated;
      if (c.dimension == stays_whole) continue;
      if (c.dimension >= 0 && c.dimension < s.rank) {
        stated[i][a] = std::int8_t(c.dimension);
        if (can_lie(s, stated[i], m_)) continue;
      }
      out_.fault = text() << "strategy: " << label << " " << s << " cannot be cut into "
                          << m_[a].size << " parts along dimension " << c.dimension
                          << " (mesh axis " << c.axis << ")";
      return;
    }
    if (!any)
      out_.fault = text() << "strategy: there is no parameter, state or argument " << c.name;
  }
  constexpr void cut(const operation_cut& c) {
    bool any = false;
    name_ref last{-1, 0};
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      if (x.op->name != c.op || !matches(c.cell, g_.view(x.cell))) continue;
      if (x.cell.first == last.first && x.cell.size == last.size) continue;  // of its derivative
      last = x.cell;
      any = true;
      list<node_choice> left;
      for (const node_choice& choice : choices_of(g_, n, m_, out_.space.axes))
        if (has_parts(n, choice, c.parts)) left.push_back(choice);
      if (left.empty()) {
        text t;
        t << "strategy: " << c.op << " of " << g_.view(x.cell) << " cannot be computed in parts {";
        for (std::size_t k = 0; k < c.parts.size(); ++k) t << (k ? "," : "") << c.parts[k];
        t << "} of its operands";
        for (node_id o : g_.operands(n)) t << " " << g_.type(o);
        out_.fault = t << " on the mesh " << mesh_text(m_);
        return;
      }
      out_.space.only[std::size_t(n)] = left;
    }
    if (!any) out_.fault = text() << "strategy: no cell " << c.cell << " has an operation " << c.op;
  }
  constexpr bool has_parts(node_id n, const node_choice& c, const list<shape>& parts) const {
    const node_part part = cut_node(g_, n, c.cut, m_);
    const auto in = g_.operands(n);
    if (in.size() != parts.size()) return false;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const shape s = g_.type(in[k]).shape;
      if (s.rank != parts[k].rank) return false;
      for (int d = 0; d < s.rank; ++d)
        if (parts_of(part.operands[k], m_, d) != parts[k][d]) return false;
    }
    return true;
  }
  /// The parameter whose optimizer's state input `i` is: `momentum.fc1.weight` ends with its name.
  constexpr int parameter_of(int i) const {
    const std::string_view label = g_.view(g_.inputs[std::size_t(i)].name);
    for (std::size_t p = 0; p < g_.inputs.size(); ++p) {
      if (g_.inputs[p].role != input_role::parameter) continue;
      const std::string_view its = g_.view(g_.inputs[p].name);
      if (label.size() > its.size() && label.ends_with(its) &&
          label[label.size() - its.size() - 1] == '.' &&
          g_.type(g_.input(int(p))) == g_.type(g_.input(i)))
        return int(p);
    }
    return -1;
  }
  /// Cuts a tensor among the ranks that divide the samples, where a dimension divides.
  constexpr void divide(const shape& s, layout& l) const {
    for (int d = 0; d < s.rank; ++d) {
      layout cut = l;
      cut[data_] = std::int8_t(d);
      if (!can_lie(s, cut, m_)) continue;
      l = cut;
      return;
    }
  }

  const graph& g_;
  const device_mesh& m_;
  const strategy& s_;
  int data_ = -1;
  stated_space out_;
};

}  // namespace detail

constexpr stated_space space_of(const graph& g, const device_mesh& m, const strategy& s) {
  return detail::statement(g, m, s).run();
}

}  // namespace cella::parallel
