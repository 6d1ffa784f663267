// ONNX models as tests write them.
#pragma once

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <cella/interop/onnx_model.hpp>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace cella::test {

/// A model of opset 17, which grows part by part.
class model_proto {
 public:
  explicit model_proto(int opset = 17) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
  }
  /// An input or, with `result`, an output. Extents below 0 are left open.
  void value(const std::string& name, const std::vector<int>& extents, int element = 1,
             bool result = false) {
    auto* v = result ? graph().add_output() : graph().add_input();
    v->set_name(name);
    auto* t = v->mutable_type()->mutable_tensor_type();
    t->set_elem_type(element);
    t->mutable_shape();
    for (int e : extents) {
      auto* d = t->mutable_shape()->add_dim();
      if (e >= 0) d->set_dim_value(e);
    }
  }
  void result(const std::string& name, const std::vector<int>& extents) {
    value(name, extents, 1, true);
  }
  ::onnx::TensorProto& floats(const std::string& name, const std::vector<int>& extents,
                              const std::vector<float>& values) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(1);
    for (int e : extents) t->add_dims(e);
    for (float v : values) t->add_float_data(v);
    return *t;
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& in,
                          const std::vector<std::string>& out) {
    auto* n = graph().add_node();
    n->set_op_type(op);
    for (const auto& i : in) n->add_input(i);
    for (const auto& o : out) n->add_output(o);
    return *n;
  }
  static void set(::onnx::NodeProto& n, const std::string& name, std::vector<std::int64_t> values) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(::onnx::AttributeProto::INTS);
    for (auto v : values) a->add_ints(v);
  }
  static void set(::onnx::NodeProto& n, const std::string& name, std::int64_t value) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(::onnx::AttributeProto::INT);
    a->set_i(value);
  }
  static void set(::onnx::NodeProto& n, const std::string& name, const std::string& value) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(::onnx::AttributeProto::STRING);
    a->set_s(value);
  }
  static void set(::onnx::NodeProto& n, const std::string& name,
                  const std::vector<std::string>& values) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(::onnx::AttributeProto::STRINGS);
    for (const std::string& v : values) a->add_strings(v);
  }
  /// The graph of another model as one that a node owns.
  static void set(::onnx::NodeProto& n, const std::string& name, model_proto body) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(::onnx::AttributeProto::GRAPH);
    *a->mutable_g() = body.graph();
  }
  /// An input that is a sequence of f32 tensors of any shape, or an optional tensor.
  void sequence(const std::string& name) {
    auto* v = graph().add_input();
    v->set_name(name);
    auto* element = v->mutable_type()->mutable_sequence_type()->mutable_elem_type();
    element->mutable_tensor_type()->set_elem_type(1);
  }
  void optional(const std::string& name) {
    auto* v = graph().add_input();
    v->set_name(name);
    auto* element = v->mutable_type()->mutable_optional_type()->mutable_elem_type();
    element->mutable_tensor_type()->set_elem_type(1);
  }
  /// A constant of i64 of rank 0.
  void integer(const std::string& name, std::int64_t value) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(7);
    t->add_int64_data(value);
  }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  ::onnx::ModelProto& proto() { return model_; }

  std::string bytes() const { return model_.SerializeAsString(); }
  cella::graph read(const onnx_settings& settings = {}) const {
    const std::string all = bytes();
    return onnx_from_bytes(std::as_bytes(std::span(all)), settings);
  }

 private:
  ::onnx::ModelProto model_;
};

/// What is said of a model that cannot be read.
inline std::string fault(const model_proto& m, const onnx_settings& settings = {}) {
  try {
    (void)m.read(settings);
  } catch (const file_error& e) { return e.what(); }
  return "nothing";
}
inline void says(const std::string& sentence, const std::string& part) {
  CAPTURE(sentence);
  CHECK(sentence.find(part) != std::string::npos);
}

inline onnx_tensor integers(const std::vector<std::int64_t>& values) {
  onnx_tensor t{{dtype::i64, {std::int64_t(values.size())}}, {}};
  t.bytes.resize(values.size() * 8);
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

}  // namespace cella::test
