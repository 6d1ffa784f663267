// The parts of an ONNX model that is being written: tensors, nodes and their names.
#pragma once

#include <onnx/onnx_pb.h>

#include <cella/graph/dtype.hpp>
#include <cella/graph/onnx_attributes.hpp>
#include <cella/graph/shape.hpp>
#include <cella/ops/numbers.hpp>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace cella::interop {

class onnx_model_parts {
 public:
  using names = std::vector<std::string>;
  using integers = std::vector<std::int64_t>;

  explicit onnx_model_parts(int opset) {
    model_.set_ir_version(8);
    model_.set_producer_name("cella");
    model_.add_opset_import()->set_version(opset);
    graph().set_name("graph");
  }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  ::onnx::ModelProto take() { return std::move(model_); }

  // ---- names

  /// Whoever comes later gets another name.
  void reserve(std::string_view name) { taken_.insert(std::string(name)); }
  std::string fresh(const std::string& wanted) {
    std::string s = wanted;
    for (int k = 1; !taken_.insert(s).second; ++k) s = wanted + "_" + std::to_string(k);
    return s;
  }
  std::string fresh_node(const std::string& wanted) {
    const int k = nodes_[wanted]++;
    return k ? wanted + "_" + std::to_string(k) : wanted;
  }

  // ---- tensors

  void describe(::onnx::ValueInfoProto& v, const std::string& label, const tensor_type& t) const {
    v.set_name(label);
    auto* type = v.mutable_type()->mutable_tensor_type();
    type->set_elem_type(int(onnx_code(t.element)));
    type->mutable_shape();
    for (int e : t.shape) type->mutable_shape()->add_dim()->set_dim_value(e);
  }
  void initializer(const std::string& label, const tensor_type& t,
                   std::span<const std::byte> bytes) {
    auto* to = graph().add_initializer();
    to->set_name(label);
    to->set_data_type(int(onnx_code(t.element)));
    for (int e : t.shape) to->add_dims(e);
    to->set_raw_data(bytes.data(), bytes.size());
  }
  std::string integer_tensor(const integers& all, const shape& s) {
    const std::string label = fresh("shape");
    initializer(label, {dtype::i64, s}, std::as_bytes(std::span(all)));
    return label;
  }
  std::string list_of(const integers& all) {
    return integer_tensor(all, {std::int64_t(all.size())});
  }
  /// One number of this element type.
  std::string number(double value, dtype element) {
    const std::string label = fresh("number");
    with_element(element, [&]<class T>() {
      const T x = from_double<T>(value);
      initializer(label, {element, {}}, std::as_bytes(std::span(&x, 1)));
    });
    return label;
  }

  // ---- nodes

  ::onnx::NodeProto& add(const std::string& op, const names& in, const std::string& out) {
    auto* n = graph().add_node();
    n->set_op_type(op);
    for (const std::string& i : in) n->add_input(i);
    n->add_output(out);
    return *n;
  }
  /// A node whose result is only read by other nodes of the same rule.
  std::string between(const std::string& op, const names& in) {
    const std::string label = fresh("v");
    add(op, in, label);
    return label;
  }
  static void set(::onnx::NodeProto& n, const std::string& label, const integers& values) {
    auto* a = n.add_attribute();
    a->set_name(label);
    a->set_type(::onnx::AttributeProto::INTS);
    for (std::int64_t v : values) a->add_ints(v);
  }
  static void set(::onnx::NodeProto& n, const std::string& label, std::int64_t value) {
    auto* a = n.add_attribute();
    a->set_name(label);
    a->set_type(::onnx::AttributeProto::INT);
    a->set_i(value);
  }
  static void set(::onnx::NodeProto& n, const onnx_attribute& from) {
    auto* a = n.add_attribute();
    a->set_name(from.name);
    const onnx_value& v = from.value;
    switch (v.kind) {
      case onnx_kind::integer:
        a->set_type(::onnx::AttributeProto::INT);
        return a->set_i(v.integer);
      case onnx_kind::element:
        a->set_type(::onnx::AttributeProto::INT);
        return a->set_i(onnx_code(v.element));
      case onnx_kind::number:
        a->set_type(::onnx::AttributeProto::FLOAT);
        return a->set_f(v.number);
      case onnx_kind::string:
        a->set_type(::onnx::AttributeProto::STRING);
        return a->set_s(v.string);
      case onnx_kind::integers:
        a->set_type(::onnx::AttributeProto::INTS);
        for (std::int64_t i : v.integers) a->add_ints(i);
        return;
      case onnx_kind::numbers:
        a->set_type(::onnx::AttributeProto::FLOATS);
        for (float f : v.numbers) a->add_floats(f);
    }
  }

 private:
  ::onnx::ModelProto model_;
  std::set<std::string> taken_;
  std::map<std::string, int> nodes_;
};

}  // namespace cella::interop
