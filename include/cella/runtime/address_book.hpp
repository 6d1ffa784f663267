// What lies where in the memory of a program, from step to step.
#pragma once

#include <algorithm>
#include <array>
#include <cella/runtime/step_formulas.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::detail {

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
  address_book(const program_facts& p, const formulas& f) : p_(p), f_(f) {
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
    for (node_id n : p.g.regions[0].nodes) {
      const node& x = p.g.nodes[std::size_t(n)];
      if (!is<values_op>(x)) continue;
      const auto index = std::size_t(x.attributes.as<values_options>().index);
      lies_at_[{constant_space, p.g.constants.tensors[index].offset}] = f.name(n);
    }
  }

  static std::string address(const buffer_ref& r) {
    constexpr std::array<std::string_view, 5> spaces{"arena", "parameters", "slots", "scalars",
                                                     "constants"};
    const bool argument = r.space >= first_argument;
    if (argument && r.offset == 0) return "argument";
    return std::string(argument ? "argument" : spaces[std::size_t(r.space)]) + "+" +
           std::to_string(r.offset);
  }
  /// `x @argument`, `part of x @argument+180`; in the arena the steps' own memory.
  std::string at(const buffer_ref& r) const {
    auto found = lies_at_.upper_bound({r.space, r.offset});
    if (found == lies_at_.begin() || (--found)->first.first != r.space) return "? @" + address(r);
    const bool part = found->first.second != r.offset;
    return (part ? "part of " : "") + found->second + " @" + address(r);
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
      if (k == 3 && may_pack(s.kind)) {
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
      constexpr std::array<std::string_view, 9> how{
          "", " per row", " per column", " per stretch", " once", "", "", "", ", drawn"};
      read(index, r.at);
      if (std::find_if(s.in.begin(), s.in.end(), [&](const buffer_ref& i) {
            return i.space == r.at.space && i.offset == r.at.offset;
          }) != s.in.end())
        continue;
      all.from.push_back(f_.name(f_.read_value(r)) + " @" + address(r.at) +
                         std::string(how[std::size_t(r.how)]));
    }
    if (s.kind == step_kind::control) follow_links(index, s, all);
    if (s.scratch.valid()) {
      touch(index, s.scratch, "scratch", 0, false);
      all.to.push_back("scratch @" + address(s.scratch));
    }
    if (s.pool_argmax.valid()) {
      const std::string name = f_.name(f_.pool_argmax(s));
      touch(index, s.pool_argmax, name, 0, false);
      all.to.push_back(name + " @" + address(s.pool_argmax));
    }
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      const bool lanes = o.form == layout::lanes;
      std::string label = o.value >= 0                         ? f_.name(o.value)
                          : s.kind == step_kind::random_stream ? "stream of " + f_.name(s.anchor)
                                                               : "unused result";
      if (is_conversion(s.kind) && s.kind != step_kind::copy)
        label += lanes ? " in lanes" : " unpacked";
      if (o.summed) label = "sums of " + label;
      const bool in_place = o.at.space != arena_space;
      const std::int64_t bytes =
          o.value < 0 || o.summed ? 0 : bytes_of(s, p_.g.type(o.value), lanes);
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
  static constexpr bool may_pack(step_kind k) {
    return k == step_kind::product ||
           (k >= step_kind::convolution && k <= step_kind::convolution_pool_weight_gradient);
  }
  void follow_links(int index, const plan_step& s, access_list& all) {
    const auto links = p_.links.subspan(std::size_t(s.first_link), std::size_t(s.link_count));
    const auto operands = std::size_t(p_.g.nodes[std::size_t(s.anchor)].operand_count);
    for (const buffer_ref& r : links.first(operands)) {
      read(index, r);
      all.from.push_back(at(r));
    }
    const std::vector<node_id> results = f_.control_results(s);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const buffer_ref& r = links[operands + k];
      const bool named = results[k] >= 0;
      const std::string label = named ? f_.name(results[k]) : "unused result";
      if (r.space == arena_space)
        touch(index, r, label, p_.g.result_type(s.anchor, int(k)).bytes(), false);
      all.to.push_back(label + " @" + address(r));
    }
  }
  std::int64_t bytes_of(const plan_step& s, const tensor_type& t, bool lanes) const {
    if (!lanes) return t.bytes();
    std::int64_t features = t.shape.size(1, t.rank());
    if (is_conversion(s.kind) && t.rank() == 4) {
      const auto e = s.as<image_step>();
      features = std::int64_t{t[1]} * (t[2] + 2 * e.border_height) * (t[3] + 2 * e.border_width);
    }
    return (t[0] + p_.lanes - 1) / p_.lanes * features * p_.lanes *
           std::int64_t(size_of(t.element));
  }
  void touch(int index, const buffer_ref& r, const std::string& name, std::int64_t bytes,
             bool stays) {
    // What lay inside is no more.
    const auto inside = [&](auto& map, auto key) {
      map.erase(map.lower_bound(key(r.offset)), map.lower_bound(key(r.offset + bytes)));
    };
    if (bytes > 0) {
      inside(lies_at_, [&](std::int64_t at) { return std::pair{r.space, at}; });
      inside(current_, [](std::int64_t at) { return at; });
    }
    lies_at_[{r.space, r.offset}] = name;
    current_[r.offset] = values_.size();
    values_.push_back({name, r.offset, bytes, index, stays ? int(p_.steps.size()) : index});
  }
  void read(int index, const buffer_ref& r) {
    auto found = current_.upper_bound(r.offset);
    if (r.space != arena_space || found == current_.begin()) return;
    --found;
    int& last = values_[found->second].last;
    last = std::max(last, index);
  }

  const program_facts& p_;
  const formulas& f_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::string> lies_at_;
  std::map<std::int64_t, std::size_t> current_;
  std::vector<arena_value> values_;
};

}  // namespace cella::detail
