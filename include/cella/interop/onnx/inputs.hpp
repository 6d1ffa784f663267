// The inputs of an ONNX model: arguments of the graph, or constants.
#pragma once

#include <algorithm>
#include <cella/graph/builder.hpp>
#include <cella/interop/onnx/tensors.hpp>
#include <cella/interop/onnx/values.hpp>

namespace cella::interop {

/// The name of an element of a sequence, of which an input or an output consists.
inline std::string name_of_element(const std::string& sequence, std::size_t k) {
  return sequence + "[" + std::to_string(k) + "]";
}

class onnx_input_reader {
 public:
  /// `label` begins the messages.
  onnx_input_reader(builder& b, const onnx_settings& settings, const std::string& label)
      : b_(b), settings_(settings), label_(label) {}

  model_value read(const ::onnx::ValueInfoProto& input) {
    const std::string& name = input.name();
    const std::string where = label_ + ": the input " + in_quotes(name);
    names_.push_back(name);
    const ::onnx::TypeProto* type = &input.type();
    const bool optional = type->has_optional_type();
    if (optional) type = &type->optional_type().elem_type();
    const bool sequence = type->has_sequence_type();
    if (sequence) type = &type->sequence_type().elem_type();
    if (!type->has_tensor_type())
      throw onnx_not_supported(where + " is no tensor and no sequence of tensors, and Cella has " +
                               "nothing else");
    const auto& tensor = type->tensor_type();
    if (!optional && !sequence) return argument(name, where, tensor, nullptr);
    const auto said = settings_.elements.find(name);
    if (said == settings_.elements.end())
      throw file_error(where + " is " + (optional ? "an optional value" : "a sequence") +
                       "; say whether it is there, and what shapes its elements have, in " +
                       "onnx_settings::elements");
    elements_.push_back(name);
    const auto& shapes = said->second;
    if (!shapes && optional) return {};
    if (!shapes)
      throw file_error(where + " is a sequence, which may be empty, but cannot be missing; " +
                       "give a list of shapes");
    if (!sequence && shapes->size() != 1)
      throw file_error(where +
                       " holds one tensor, but onnx_settings::elements says the shapes of " +
                       std::to_string(shapes->size()));
    if (!sequence) return argument(name, where, tensor, shapes->data());
    list<var> all;
    for (std::size_t k = 0; k < shapes->size(); ++k) {
      names_.push_back(name_of_element(name, k));
      all.push_back(argument(name_of_element(name, k), where, tensor, &(*shapes)[k]));
    }
    return model_value(std::move(all));
  }

  /// Refuses settings for what is no input. `known` tells of other values that may be named.
  template <class Known>
  void check_settings(Known known) const {
    for (const auto& [name, value] : settings_.values)
      if (!holds(names_, name) && !known(name)) refuse(name, "a value is");
    for (const auto& [name, shapes] : settings_.elements)
      if (!holds(elements_, name)) refuse(name, "elements are", "sequence or optional ");
  }

 private:
  using tensor_proto = ::onnx::TypeProto_Tensor;
  using name_list = std::vector<std::string>;

  static bool holds(const name_list& all, const std::string& name) {
    return std::ranges::find(all, name) != all.end();
  }

  var argument(const std::string& name, const std::string& where, const tensor_proto& t,
               const shape* said) {
    const dtype element = onnx_tensor_reader::element_of(t.elem_type(), where);
    const auto given = settings_.values.find(name);
    if (given == settings_.values.end()) {
      const auto extents = said ? checked(*said, where, t) : extents_of(name, where, t);
      return {&b_, b_.input(checked_type(where, element, extents), input_role::argument, name)};
    }
    const tensor_type& type = given->second.type;
    if (type.element != element)
      throw file_error(
          where + " is " + std::string((text() << tensor_type{element, type.shape}).view()) +
          ", but the value that is given for it is " + std::string((text() << type).view()));
    return constant_of(b_, given->second);
  }
  std::vector<std::uint64_t> extents_of(const std::string& name, const std::string& where,
                                        const tensor_proto& t) const {
    std::vector<std::uint64_t> extents;
    for (int d = 0; d < t.shape().dim_size(); ++d) {
      const auto& dim = t.shape().dim(d);
      std::int64_t extent = dim.has_dim_value() ? dim.dim_value() : -1;
      const std::string own = name + "." + std::to_string(d);
      for (const std::string& key : {dim.dim_param(), own}) {
        const auto found = settings_.extents.find(key);
        if (found != settings_.extents.end()) extent = found->second;
      }
      if (extent < 0)
        throw file_error(where + " leaves the extent of axis " + std::to_string(d) + " open" +
                         (dim.dim_param().empty() ? "" : " (" + in_quotes(dim.dim_param()) + ")") +
                         "; say it in onnx_settings::extents, by the name of the extent or as " +
                         in_quotes(own));
      extents.push_back(std::uint64_t(extent));
    }
    if (!t.has_shape()) throw file_error(where + " has no shape; write the model with one");
    return extents;
  }
  /// A shape that was said, which has the extents that the model fixes.
  static std::vector<std::uint64_t> checked(const shape& said, const std::string& where,
                                            const tensor_proto& t) {
    bool fits = !t.has_shape() || t.shape().dim_size() == said.rank;
    for (int d = 0; fits && t.has_shape() && d < said.rank; ++d)
      fits = !t.shape().dim(d).has_dim_value() || t.shape().dim(d).dim_value() == said[d];
    if (!fits)
      throw file_error(where + " has elements of another shape than " +
                       std::string((text() << said).view()) +
                       ", which onnx_settings::elements says");
    return {said.begin(), said.end()};
  }
  [[noreturn]] void refuse(const std::string& name, const char* what, const char* kind = "") const {
    std::string all;
    for (const std::string& n : *kind ? elements_ : names_)
      all += (all.empty() ? "" : ", ") + in_quotes(n);
    throw file_error(label_ + " has no " + kind + "input " + in_quotes(name) + ", for which " +
                     what + " given; its inputs are " + (all.empty() ? "none" : all));
  }

  builder& b_;
  const onnx_settings& settings_;
  const std::string& label_;
  name_list names_;     ///< of inputs and of elements of sequences
  name_list elements_;  ///< of sequences and optional values
};

}  // namespace cella::interop
