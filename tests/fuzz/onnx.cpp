// Any bytes are a model, or throw an error of the library. For libFuzzer.
#include <cella/graph/check.hpp>
#include <cella/onnx.cpp>
#include <cstdint>
#include <string>

namespace {

void try_model(const ::onnx::ModelProto& model) {
  using namespace cella;
  const std::string bytes = model.SerializeAsString();
  onnx_settings settings{.extents = {{"n", 2}, {"x.0", 2}, {"x.1", 3}}};
  for (const auto& i : model.graph().input()) {
    if (i.type().has_optional_type() && i.name().size() % 2 == 0)
      settings.elements[i.name()] = std::nullopt;
    else if (i.type().has_optional_type() || i.type().has_sequence_type())
      settings.elements[i.name()] = {shape{2, 3}};
  }
  try {
    const graph g = onnx_from_bytes(std::as_bytes(std::span(bytes)), settings);
    // What loads is well formed.
    if (!cella::check(g).empty()) __builtin_trap();
  } catch (const error&) {}
}

/// Graphs whose operators, attributes and operands bytes choose: blind bytes seldom are a model
/// with nodes.
class model_maker {
 public:
  model_maker(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  ::onnx::ModelProto make() {
    ::onnx::ModelProto made;
    made.set_ir_version(8);
    made.add_opset_import()->set_version(1 + byte() % 20);
    auto& g = *made.mutable_graph();
    names all;
    for (const char* name : {"x", "y"}) {
      all.push_back(name);
      tensor_type(*add_input(g, name));
    }
    all.push_back("q"), all.push_back("oo"), all.push_back("o");
    tensor_type(*add_input(g, "q")->mutable_sequence_type()->mutable_elem_type());
    tensor_type(*add_input(g, "oo")->mutable_optional_type()->mutable_elem_type());
    tensor_type(*add_input(g, "o")->mutable_optional_type()->mutable_elem_type());
    for (const char* name : {"i", "j"}) {
      all.push_back(name);
      initializer(g, name);
    }
    nodes(g, all, 6);
    return made;
  }

 private:
  using names = std::vector<std::string>;

  std::uint8_t byte() { return next_ < size_ ? data_[next_++] : std::uint8_t{0}; }
  const std::string& one_of(const names& all) { return all[byte() % all.size()]; }

  static ::onnx::TypeProto* add_input(::onnx::GraphProto& g, const std::string& name) {
    auto* input = g.add_input();
    input->set_name(name);
    return input->mutable_type();
  }
  void tensor_type(::onnx::TypeProto& type) {
    auto* t = type.mutable_tensor_type();
    t->set_elem_type(byte() % 4 ? 1 : byte() % 17);
    if (byte() % 8 == 0) return;
    t->mutable_shape();
    for (int d = byte() % 6; d > 0; --d) t->mutable_shape()->add_dim()->set_dim_value(byte() % 5);
  }
  void initializer(::onnx::GraphProto& g, const std::string& name) {
    auto* t = g.add_initializer();
    t->set_name(name);
    t->set_data_type(byte() % 4 ? 7 : 1);
    const int count = byte() % 5;
    t->add_dims(count);
    for (int k = 0; k < count; ++k) {
      const auto v = std::int8_t(byte());
      if (t->data_type() == 7)
        t->add_int64_data(v);
      else
        t->add_float_data(float(v) / 4);
    }
  }
  /// A graph that a node owns, which may name the values outside.
  void body(::onnx::GraphProto& g, names all) {
    for (int k = byte() % 4; k > 0; --k) {
      all.push_back("b" + std::to_string(fresh_++));
      add_input(g, all.back());
    }
    nodes(g, all, 3);
  }
  void nodes(::onnx::GraphProto& g, names& all, int most) {
    static const std::vector<std::string> operators = cella::onnx_operators();
    while (next_ < size_ && g.node_size() < most) {
      auto* n = g.add_node();
      n->set_op_type(one_of(operators));
      for (int k = byte() % 5; k > 0; --k) n->add_input(one_of(all));
      for (int k = byte() % 4; k > 0; --k) attribute(*n->add_attribute(), all);
      all.push_back("v" + std::to_string(fresh_++));
      n->add_output(all.back());
    }
    for (int k = 1 + byte() % 2; k > 0; --k)
      g.add_output()->set_name(all[all.size() - std::size_t(k)]);
  }
  void attribute(::onnx::AttributeProto& a, const names& all) {
    static const names labels{"axis",
                              "axes",
                              "kernel_shape",
                              "strides",
                              "pads",
                              "dilations",
                              "group",
                              "keepdims",
                              "to",
                              "perm",
                              "auto_pad",
                              "mode",
                              "ceil_mode",
                              "blocksize",
                              "split",
                              "start",
                              "end",
                              "equation",
                              "k",
                              "size",
                              "direction",
                              "hidden_size",
                              "num_groups",
                              "output_shape",
                              "batch_dims",
                              "reduction",
                              "alpha",
                              "output_padding",
                              "new_axis",
                              "num_scan_inputs"};
    static const names graphs{"body", "then_branch", "else_branch"};
    a.set_name(one_of(labels));
    switch (byte() % 7) {
      case 0:
        a.set_type(::onnx::AttributeProto::INT);
        a.set_i(std::int8_t(byte()));
        break;
      case 1:
        a.set_type(::onnx::AttributeProto::INTS);
        for (int m = byte() % 5; m > 0; --m) a.add_ints(std::int8_t(byte()));
        break;
      case 2:
        a.set_type(::onnx::AttributeProto::FLOAT);
        a.set_f(float(std::int8_t(byte())) / 8);
        break;
      case 3:
        a.set_name(byte() % 2 ? "xs" : "zs");
        a.set_type(::onnx::AttributeProto::STRINGS);
        for (int m = byte() % 3; m > 0; --m) a.add_strings(one_of(all));
        break;
      case 4:
        a.set_name("y");
        a.set_type(::onnx::AttributeProto::STRING);
        a.set_s(one_of(all));
        break;
      case 5:
        a.set_name(one_of(graphs));
        a.set_type(::onnx::AttributeProto::GRAPH);
        body(*a.mutable_g(), all);
        break;
      default:
        a.set_type(::onnx::AttributeProto::STRING);
        for (int m = byte() % 8; m > 0; --m) a.mutable_s()->push_back(char(byte()));
    }
  }

  const std::uint8_t* data_;
  std::size_t size_, next_ = 0;
  int fresh_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ::onnx::ModelProto model;
  if (model.ParseFromArray(data, int(size))) try_model(model);
  if (size >= 4) try_model(model_maker(data, size).make());
  return 0;
}
