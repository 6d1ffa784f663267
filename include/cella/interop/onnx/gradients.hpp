// Gradients of a part of a model: ai.onnx.preview.training.Gradient.
#pragma once

#include <cella/interop/onnx/training.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/gradient.hpp>
#include <set>

namespace cella::interop {

/// Calls f with the name of each value that a node reads, in graphs that it owns, too.
template <class F>
void for_each_name_read(const ::onnx::NodeProto& node, F&& f) {
  for (const std::string& name : node.input())
    if (!name.empty()) f(name);
  auto in_graph = [&](const ::onnx::GraphProto& g) {
    for (const auto& inner : g.node()) for_each_name_read(inner, f);
    for (const auto& result : g.output()) f(result.name());
  };
  for (const auto& a : node.attribute()) {
    if (a.has_g()) in_graph(a.g());
    for (const auto& g : a.graphs()) in_graph(g);
  }
}

/// Nodes and their numbers in their graphs.
using node_list = std::vector<std::pair<const ::onnx::NodeProto*, int>>;

/// The places of the nodes by which `y` depends on values of given names.
inline std::vector<std::size_t> nodes_between(const node_list& all,
                                              const std::set<std::string>& names,
                                              const std::string& y) {
  std::set<std::string> changed = names, needed{y};
  std::vector<std::size_t> forward, between;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const ::onnx::NodeProto& node = *all[k].first;
    bool reads = false;
    for_each_name_read(node, [&](const std::string& name) { reads |= changed.contains(name); });
    if (!reads) continue;
    forward.push_back(k);
    changed.insert(node.output().begin(), node.output().end());
  }
  for (std::size_t i = forward.size(); i-- > 0;) {
    const ::onnx::NodeProto& node = *all[forward[i]].first;
    // Values of the names are given, so that nothing before them is of interest.
    const bool makes = std::ranges::any_of(node.output(), [&](const std::string& out) {
      return needed.contains(out) && !names.contains(out);
    });
    if (!makes) continue;
    between.push_back(forward[i]);
    for_each_name_read(node, [&](const std::string& name) { needed.insert(name); });
  }
  std::ranges::reverse(between);
  return between;
}

/// The derivatives of the sum of y by each of `xs`, where those and `zs` have the operands' values.
inline list<var> gradient_rule(onnx_node& n) {
  const std::vector<std::string> xs = n.strings("xs");
  std::vector<std::string> names = xs;
  for (const std::string& z : n.strings("zs")) names.push_back(z);
  const std::string label = n.string("y", "");
  if (xs.empty() || label.empty()) n.refuse("names no xs or no y");
  if (n.input_count() != int(names.size()))
    n.refuse("has " + std::to_string(n.input_count()) + " operands for " +
             std::to_string(names.size()) + " names of xs and zs");
  list<var> at;
  for (const var& x : n.inputs())
    at.push_back(emit<identity_op>({}, std::source_location::current(), x));
  const model_value value = n.scope().traced_again(label, names, at);
  if (value.kind() != model_value::tensor) n.refuse("differentiates " + value.what());
  const var y = value.parts()[0];
  if (!is_floating(y.element())) n.refuse("differentiates a tensor that is not of floating point");
  ids targets;
  for (std::size_t k = 0; k < xs.size(); ++k) targets.push_back(at[k].id);
  const std::array ys{y.id};
  const std::array dys{ones_like(y).id};
  const ids derivatives = pullback(n.b(), ys, dys, targets);
  list<var> all;
  for (std::size_t k = 0; k < xs.size(); ++k) {
    if (derivatives[k] < 0 && n.wants(int(k)))
      n.refuse("asks for the gradient of " + in_quotes(label) + " by " + in_quotes(xs[k]) +
               ", on which it does not depend");
    all.push_back(derivatives[k] < 0 ? at[k] : var{&n.b(), derivatives[k]});
  }
  return all;
}

inline constexpr named_onnx_rule gradient_rules[] = {
    {"Gradient", gradient_rule, preview_training},
};

}  // namespace cella::interop
