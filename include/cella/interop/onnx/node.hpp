// One node of an ONNX model while it becomes operations: its operands, its attributes, and what is
// known of values.
#pragma once

#include <onnx/onnx_pb.h>

#include <cella/graph/builder.hpp>
#include <cella/graph/list.hpp>
#include <cella/interop/onnx/tensors.hpp>
#include <cella/interop/onnx/values.hpp>
#include <cella/ops/numbers.hpp>
#include <cmath>
#include <functional>
#include <optional>

namespace cella::interop {

/// What a node asks of the model that it is part of.
class onnx_scope {
 public:
  /// The value of this name; throws if there is none.
  virtual const model_value& find(const std::string& name) = 0;
  /// The elements of a value if they follow from constants alone.
  virtual const tensor_ref* known(var x) = 0;
  /// Whether they do, and do not depend on the number of a step that is on trial.
  virtual bool is_known(var x) = 0;
  /// The name of an input on which a value depends.
  virtual std::string input_of(var x) = 0;
  /// Traces a graph that a node owns. Its inputs are `in`; other values are those in reach.
  virtual model_values trace(const ::onnx::GraphProto& g, const model_values& in) = 0;
  /// What the value `y` is where the values of these names are `in`: the nodes between them are
  /// traced again.
  virtual model_value traced_again(const std::string& y, const std::vector<std::string>& names,
                                   const list<var>& in) = 0;
  /// A step on trial: whether f asks for the value of what follows from the number that it is
  /// called with. What f appends to the graph is forgotten.
  virtual bool is_asked_for(const std::function<void(var)>& f) = 0;
  virtual bool is_on_trial() const = 0;
  virtual onnx_tensor_reader& tensors() = 0;

 protected:
  ~onnx_scope() = default;
};

class onnx_node {
 public:
  onnx_node(onnx_scope& scope, builder& b, const ::onnx::NodeProto& proto, int opset,
            std::string where)
      : scope_(scope), b_(b), proto_(proto), opset_(opset), where_(std::move(where)) {}

  builder& b() const { return b_; }
  onnx_scope& scope() const { return scope_; }
  /// Of the operator's domain, in the model.
  int opset() const { return opset_; }
  const std::string& op() const { return proto_.op_type(); }

  // ---- operands

  int input_count() const { return proto_.input_size(); }
  /// Optional operands are left out by an empty name.
  bool has(int i) const { return i < proto_.input_size() && !proto_.input(i).empty(); }
  /// An operand of any kind.
  const model_value& value(int i) const {
    if (!has(i)) refuse("lacks operand " + std::to_string(i));
    return scope_.find(proto_.input(i));
  }
  var in(int i) const {
    const model_value& v = value(i);
    if (v.kind() != model_value::tensor)
      refuse("takes a tensor as operand " + std::to_string(i) + ", which is " + v.what());
    return v.parts()[0];
  }
  /// An operand of so many axes at least, and at most.
  var in(int i, int least, int most = max_rank) const {
    const var x = in(i);
    if (x.rank() < least || x.rank() > most)
      refuse("takes a tensor of " + std::to_string(least) +
             (most == least      ? ""
              : most == max_rank ? " or more"
                                 : " to " + std::to_string(most)) +
             " axes as operand " + std::to_string(i) + ", which has " + std::to_string(x.rank()));
    return x;
  }
  list<var> inputs() const {
    list<var> all;
    for (int i = 0; i < input_count(); ++i) all.push_back(in(i));
    return all;
  }
  /// The elements of a sequence.
  const list<var>& sequence(int i) const {
    const model_value& v = value(i);
    if (v.kind() != model_value::sequence)
      refuse("takes a sequence as operand " + std::to_string(i) + ", which is " + v.what());
    return v.parts();
  }
  int output_count() const { return proto_.output_size(); }
  bool wants(int k) const { return k < proto_.output_size() && !proto_.output(k).empty(); }

  /// The elements of an operand, which must be known: the graph depends on them.
  std::vector<std::int64_t> integers(int i) const { return values<std::int64_t>(i); }
  std::vector<double> numbers(int i) const { return values<double>(i); }
  std::int64_t integer(int i) const { return one(integers(i), i); }
  double number(int i) const { return one(numbers(i), i); }
  bool is_known(int i) const { return has(i) && scope_.is_known(in(i)); }

  // ---- attributes

  bool has_attribute(std::string_view name) const { return find(name); }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    const auto* a = find(name, ::onnx::AttributeProto::INT, "an INT");
    return a ? a->i() : otherwise;
  }
  double number(std::string_view name, double otherwise) const {
    const auto* a = find(name, ::onnx::AttributeProto::FLOAT, "a FLOAT");
    return a ? double(a->f()) : otherwise;
  }
  std::string string(std::string_view name, const char* otherwise) const {
    const auto* a = find(name, ::onnx::AttributeProto::STRING, "a STRING");
    return a ? a->s() : otherwise;
  }
  std::vector<std::int64_t> integers(std::string_view name,
                                     std::vector<std::int64_t> otherwise = {}) const {
    const auto* a = find(name, ::onnx::AttributeProto::INTS, "INTS");
    return a ? std::vector<std::int64_t>(a->ints().begin(), a->ints().end()) : otherwise;
  }
  std::vector<double> numbers(std::string_view name) const {
    const auto* a = find(name, ::onnx::AttributeProto::FLOATS, "FLOATS");
    return a ? std::vector<double>(a->floats().begin(), a->floats().end()) : std::vector<double>();
  }
  std::vector<std::string> strings(std::string_view name) const {
    const auto* a = find(name, ::onnx::AttributeProto::STRINGS, "STRINGS");
    return a ? std::vector<std::string>(a->strings().begin(), a->strings().end())
             : std::vector<std::string>();
  }
  std::optional<onnx_tensor> tensor(std::string_view name) const {
    const auto* a = find(name, ::onnx::AttributeProto::TENSOR, "a TENSOR");
    if (!a) return {};
    return scope_.tensors().read(a->t(), where_ + ": the attribute \"" + std::string(name) + "\"");
  }
  /// What a graph that the node owns makes of tensors.
  list<var> traced_tensors(const ::onnx::GraphProto& g, const model_values& in) const {
    const model_values all = scope_.trace(g, in);
    for (const model_value& v : all)
      if (v.kind() != model_value::tensor)
        refuse("has a graph that hands out " + v.what() + " where a tensor belongs");
    return parts_of(all);
  }
  const ::onnx::GraphProto& graph(std::string_view name) const {
    const auto* a = find(name, ::onnx::AttributeProto::GRAPH, "a GRAPH");
    if (!a) refuse("lacks the attribute \"" + std::string(name) + "\"");
    return a->g();
  }
  dtype element(std::string_view name, dtype otherwise) const {
    const std::int64_t code = integer(name, -1);
    return code < 0 ? otherwise : onnx_tensor_reader::element_of(code, where_);
  }
  /// An axis counted from the first of `rank`.
  int axis(std::int64_t axis, int rank) const {
    if (axis < -rank || axis >= rank)
      refuse("names axis " + std::to_string(axis) + " of " + std::to_string(rank));
    return int(axis < 0 ? axis + rank : axis);
  }
  int axis(std::string_view name, std::int64_t otherwise, int rank) const {
    return axis(integer(name, otherwise), rank);
  }
  /// A list that is an attribute in old opsets and operand `i` in new ones; empty if it is neither.
  std::vector<std::int64_t> attribute_or_operand(std::string_view name, int i) const {
    return has(i) ? integers(i) : integers(name);
  }
  /// Refuses a string that is none of these.
  std::string one_of(std::string_view name, std::initializer_list<const char*> known) const {
    const std::string s = string(name, *known.begin());
    for (const char* k : known)
      if (s == k) return s;
    not_supported("the " + std::string(name) + " " + in_quotes(s));
  }

  /// An integer attribute or operand within bounds.
  std::int64_t between(std::int64_t least, std::int64_t value, std::int64_t most,
                       const char* what) const {
    if (value < least || value > most)
      refuse("has a " + std::string(what) + " of " + std::to_string(value) +
             ", which must lie from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }
  /// Refuses constants that Cella would have to make of more elements than a model can mean.
  void limit(double elements) const {
    if (!(elements <= double(1 << 24))) refuse("asks for a constant of too many elements");
  }

  /// The same for results: of these extents, each so many times.
  void limit_result(const shape& s, const std::vector<int>& times) const {
    double size = 1;
    for (int d = 0; d < s.rank; ++d)
      size *=
          std::max(1.0, double(s[d]) * (std::size_t(d) < times.size() ? times[std::size_t(d)] : 1));
    if (size > double(std::int64_t{1} << 40)) refuse("asks for a tensor of too many elements");
  }

  // ---- faults

  /// The model is wrong.
  [[noreturn]] void refuse(const std::string& what) const {
    throw file_error(where_ + " " + what + "; check how the model was written");
  }
  /// The model is right, but asks for more than Cella has.
  [[noreturn]] void not_supported(const std::string& what) const {
    throw onnx_not_supported(where_ + " asks for " + what + ", which Cella does not have");
  }

 private:
  const ::onnx::AttributeProto* find(std::string_view name) const {
    for (const auto& a : proto_.attribute())
      if (a.name() == name) return &a;
    return nullptr;
  }
  const ::onnx::AttributeProto* find(std::string_view name,
                                     ::onnx::AttributeProto::AttributeType type,
                                     const char* called) const {
    const auto* a = find(name);
    if (a && a->type() != type)
      refuse("has the attribute \"" + std::string(name) + "\", which must be " + called);
    return a;
  }
  template <class T>
  std::vector<T> values(int i) const {
    const var x = in(i);
    const tensor_ref* const t = scope_.known(x);
    if (!t) {
      const std::string input = scope_.input_of(x);
      if (input.empty())
        not_supported("a shape that depends on values that are computed in a loop or at random");
      throw onnx_value_needed(where_ + " takes from operand " + std::to_string(i) +
                                  " what its result is, so that it must be known when the model is "
                                  "loaded; give the value of the input " +
                                  in_quotes(input) + " as onnx_settings::values",
                              input);
    }
    std::vector<T> all;
    for (std::int64_t k = 0; k < t->type.size(); ++k) {
      if (std::is_integral_v<T> && is_floating(t->type.element)) {
        const double number = read_number<double>(*t, k);
        if (!(std::abs(number) <= 0x1p62) || number != std::trunc(number))
          refuse("takes integers as operand " + std::to_string(i));
      }
      all.push_back(read_number<T>(*t, k));
    }
    return all;
  }
  template <class T>
  T one(const std::vector<T>& all, int i) const {
    if (all.size() != 1)
      refuse("has " + std::to_string(all.size()) + " elements in operand " + std::to_string(i) +
             ", which takes one");
    return all[0];
  }

  onnx_scope& scope_;
  builder& b_;
  const ::onnx::NodeProto& proto_;
  int opset_;
  std::string where_;
};

/// How an operator becomes operations: its results, as many as the node wants.
class onnx_rule {
 public:
  using of_tensors = list<var> (*)(onnx_node&);
  using of_values = model_values (*)(onnx_node&);

  constexpr onnx_rule(of_tensors f) : of_tensors_(f) {}
  constexpr onnx_rule(of_values f) : of_values_(f) {}
  model_values operator()(onnx_node& n) const {
    return of_values_ ? of_values_(n) : as_values(of_tensors_(n));
  }

 private:
  of_tensors of_tensors_ = nullptr;
  of_values of_values_ = nullptr;
};
struct named_onnx_rule {
  std::string_view op;
  onnx_rule apply;
  std::string_view domain{};
};

}  // namespace cella::interop
