// What a name of an ONNX model stands for: a tensor, a sequence of tensors, or an optional value.
#pragma once

#include <cella/graph/list.hpp>
#include <cella/graph/var.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cella::interop {

/// A value of a model. Graphs are static, so that a sequence is known by its elements, which are
/// values of the graph, and an optional value by whether there is one. If there is, it is what it
/// holds: nothing else tells them apart.
class model_value {
 public:
  enum kinds : std::uint8_t { tensor, sequence, empty };

  /// An optional value that is empty.
  model_value() = default;
  model_value(var x) : kind_(tensor), parts_{x} {}
  /// A sequence of these elements.
  explicit model_value(list<var> elements) : kind_(sequence), parts_(std::move(elements)) {}

  kinds kind() const { return kind_; }
  /// The tensor as the only one, or the elements.
  const list<var>& parts() const { return parts_; }
  list<var>& parts() { return parts_; }
  /// In messages.
  std::string what() const {
    if (kind_ == tensor) return "a tensor";
    return kind_ == empty ? "an optional value that is empty"
                          : "a sequence of " + std::to_string(parts_.size());
  }

 private:
  kinds kind_ = empty;
  list<var> parts_;
};
using model_values = std::vector<model_value>;

/// All tensors of these values, in order.
inline list<var> parts_of(const model_values& all) {
  list<var> parts;
  for (const model_value& v : all)
    for (const var& x : v.parts()) parts.push_back(x);
  return parts;
}
/// Values of the same form whose tensors are `parts`.
inline model_values with_parts(model_values all, const list<var>& parts) {
  std::size_t next = 0;
  for (model_value& v : all)
    for (var& x : v.parts()) x = parts[next++];
  return all;
}
/// Whether values are of the same kinds, lengths and types.
inline bool of_one_form(const model_values& a, const model_values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const list<var>&x = a[k].parts(), &y = b[k].parts();
    if (a[k].kind() != b[k].kind() || x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i].type() != y[i].type()) return false;
  }
  return true;
}
inline list<var> joined(list<var> a, const list<var>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline model_values as_values(const list<var>& all) { return model_values(all.begin(), all.end()); }

}  // namespace cella::interop
