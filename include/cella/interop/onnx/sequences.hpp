// Sequences of tensors and optional values. Both are taken apart when the model is loaded: what
// makes a sequence only names values of the graph anew, and no kernel ever sees one.
#pragma once

#include <cella/interop/onnx/cutting.hpp>

namespace cella::interop {

/// The place that operand `i` names among the first `places` of a sequence of `count` elements;
/// negative ones count from its end.
inline std::size_t place_in(const onnx_node& n, int i, std::size_t count, std::size_t places) {
  const std::int64_t place = n.integer(i), elements = std::int64_t(count);
  if (place < -elements || place >= std::int64_t(places))
    n.refuse("names place " + std::to_string(place) + " of a sequence of " +
             std::to_string(elements));
  return std::size_t(place < 0 ? place + elements : place);
}

inline model_values sequence_construct_rule(onnx_node& n) {
  const list<var> all = n.inputs();
  for (const var& x : all)
    if (x.element() != all[0].element()) n.refuse("has elements of different types");
  return {model_value(all)};
}
inline model_values sequence_empty_rule(onnx_node& n) {
  (void)n.element("dtype", dtype::f32);  // refuses types that Cella lacks
  return {model_value(list<var>())};
}
inline model_values sequence_at_rule(onnx_node& n) {
  const list<var>& all = n.sequence(0);
  return {all[place_in(n, 1, all.size(), all.size())]};
}
inline model_values sequence_insert_rule(onnx_node& n) {
  list<var> all = n.sequence(0);
  const var x = n.in(1);
  if (!all.empty() && all[0].element() != x.element())
    n.refuse("inserts a tensor of another type than the elements have");
  // A place may lie behind the last element.
  const std::size_t place = n.has(2) ? place_in(n, 2, all.size(), all.size() + 1) : all.size();
  all.insert(all.begin() + std::ptrdiff_t(place), x);
  return {model_value(std::move(all))};
}
inline model_values sequence_erase_rule(onnx_node& n) {
  const list<var>& all = n.sequence(0);
  if (all.empty()) n.refuse("erases an element of an empty sequence");
  const std::size_t gone = n.has(1) ? place_in(n, 1, all.size(), all.size()) : all.size() - 1;
  list<var> left;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (k != gone) left.push_back(all[k]);
  return {model_value(std::move(left))};
}
inline list<var> sequence_length_rule(onnx_node& n) {
  return {integers_as_constant(n.b(), {std::int64_t(n.sequence(0).size())}, {})};
}

inline list<var> concat_from_sequence_rule(onnx_node& n) {
  const list<var>& all = n.sequence(0);
  if (all.empty()) n.refuse("joins the elements of an empty sequence");
  const int rank = all[0].rank();
  if (!n.integer("new_axis", 0)) return {joined_along(all, n.axis("axis", 0, rank))};
  if (rank == max_rank) n.not_supported("a tensor of more than 8 axes");
  return {stack(span<const var>(all.data(), all.size()), n.axis("axis", 0, rank + 1))};
}
inline model_values split_to_sequence_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  const std::int64_t extent = x.extent(axis);
  if (n.has(1)) {
    // One number is the size of each part, a list has all sizes.
    const bool equal = n.in(1).rank() == 0;
    const auto sizes =
        equal ? equal_sizes(n, extent, n.between(1, n.integer(1), std::int64_t{1} << 31, "split"))
              : n.integers(1);
    return {model_value(parts_along(n, x, axis, sizes))};
  }
  list<var> all = parts_along(n, x, axis, equal_sizes(n, extent, 1));
  if (!n.integer("keepdims", 1))
    for (var& part : all) part = squeeze(part, axis);
  return {model_value(std::move(all))};
}
/// The body once for each element of the first sequence, beside the elements of others there and
/// whole tensors.
inline model_values sequence_map_rule(onnx_node& n) {
  const ::onnx::GraphProto& body = n.graph("body");
  const std::size_t steps = n.sequence(0).size();
  model_values in;
  for (int i = 0; i < n.input_count(); ++i) {
    in.push_back(n.value(i));
    if (in.back().kind() == model_value::sequence && in.back().parts().size() != steps)
      n.refuse("goes over sequences of " + std::to_string(steps) + " and of " +
               std::to_string(in.back().parts().size()) + " elements");
  }
  std::vector<list<var>> made(std::size_t(body.output_size()));
  for (std::size_t k = 0; k < steps; ++k) {
    model_values own;
    for (const model_value& v : in)
      own.push_back(v.kind() == model_value::sequence ? model_value(v.parts()[k]) : v);
    const list<var> out = n.traced_tensors(body, own);
    for (std::size_t i = 0; i < made.size(); ++i) made[i].push_back(out[i]);
  }
  model_values all;
  for (list<var>& sequence : made) all.push_back(model_value(std::move(sequence)));
  return all;
}

// ---- optional values

inline model_values optional_rule(onnx_node& n) { return {n.has(0) ? n.value(0) : model_value()}; }
inline list<var> optional_has_element_rule(onnx_node& n) {
  const bool has = n.has(0) && n.value(0).kind() != model_value::empty;
  return {constant(n.b(), has, {dtype::boolean, {}})};
}
inline model_values optional_get_element_rule(onnx_node& n) {
  if (n.value(0).kind() == model_value::empty)
    n.refuse("takes what an optional value holds that is empty");
  return {n.value(0)};
}
/// Of values of any kind.
inline model_values identity_rule(onnx_node& n) { return {n.value(0)}; }

inline constexpr named_onnx_rule sequence_rules[] = {
    {"ConcatFromSequence", concat_from_sequence_rule},
    {"Identity", identity_rule},
    {"Optional", optional_rule},
    {"OptionalGetElement", optional_get_element_rule},
    {"OptionalHasElement", optional_has_element_rule},
    {"SequenceAt", sequence_at_rule},
    {"SequenceConstruct", sequence_construct_rule},
    {"SequenceEmpty", sequence_empty_rule},
    {"SequenceErase", sequence_erase_rule},
    {"SequenceInsert", sequence_insert_rule},
    {"SequenceLength", sequence_length_rule},
    {"SequenceMap", sequence_map_rule},
    {"SplitToSequence", split_to_sequence_rule},
};

}  // namespace cella::interop
