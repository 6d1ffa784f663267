// Any bytes are a model, or throw an error of the library. For libFuzzer.
#include <cella/graph/check.hpp>
#include <cella/onnx.cpp>
#include <cstdint>
#include <string>

namespace {

void try_model(const ::onnx::ModelProto& model) {
  using namespace cella;
  const std::string bytes = model.SerializeAsString();
  try {
    const graph g = onnx_from_bytes(std::as_bytes(std::span(bytes)),
                                    {.extents = {{"n", 2}, {"x.0", 2}, {"x.1", 3}}});
    // What loads is well formed.
    if (!cella::check(g).empty()) __builtin_trap();
  } catch (const error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ::onnx::ModelProto model;
  if (model.ParseFromArray(data, int(size))) try_model(model);
  if (size < 4) return 0;

  // Blind bytes seldom are a model with nodes: one whose operators, attributes and operands the
  // bytes choose gets further.
  static const std::vector<std::string> operators = cella::onnx_operators();
  std::size_t next = 0;
  auto byte = [&] { return next < size ? data[next++] : std::uint8_t{0}; };
  ::onnx::ModelProto made;
  made.set_ir_version(8);
  made.add_opset_import()->set_version(1 + byte() % 20);
  auto& g = *made.mutable_graph();
  std::vector<std::string> names;
  for (const char* name : {"x", "y"}) {
    auto* input = g.add_input();
    input->set_name(name);
    auto* t = input->mutable_type()->mutable_tensor_type();
    t->set_elem_type(byte() % 4 ? 1 : byte() % 17);
    t->mutable_shape();
    for (int d = byte() % 6; d > 0; --d) t->mutable_shape()->add_dim()->set_dim_value(byte() % 5);
    names.push_back(name);
  }
  for (const char* name : {"i", "j"}) {
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
    names.push_back(name);
  }
  static constexpr const char* attributes[] = {"axis",       "axes",        "kernel_shape",
                                               "strides",    "pads",        "dilations",
                                               "group",      "keepdims",    "to",
                                               "perm",       "auto_pad",    "mode",
                                               "ceil_mode",  "blocksize",   "split",
                                               "start",      "end",         "equation",
                                               "k",          "size",        "output_shape",
                                               "direction",  "hidden_size", "num_groups",
                                               "batch_dims", "reduction",   "output_padding",
                                               "alpha"};
  while (next < size && g.node_size() < 6) {
    auto* n = g.add_node();
    n->set_op_type(operators[byte() % operators.size()]);
    for (int k = byte() % 5; k > 0; --k) n->add_input(names[byte() % names.size()]);
    for (int k = byte() % 4; k > 0; --k) {
      auto* a = n->add_attribute();
      a->set_name(attributes[byte() % std::size(attributes)]);
      switch (byte() % 4) {
        case 0:
          a->set_type(::onnx::AttributeProto::INT);
          a->set_i(std::int8_t(byte()));
          break;
        case 1:
          a->set_type(::onnx::AttributeProto::INTS);
          for (int m = byte() % 5; m > 0; --m) a->add_ints(std::int8_t(byte()));
          break;
        case 2:
          a->set_type(::onnx::AttributeProto::FLOAT);
          a->set_f(float(std::int8_t(byte())) / 8);
          break;
        default:
          a->set_type(::onnx::AttributeProto::STRING);
          for (int m = byte() % 8; m > 0; --m) a->mutable_s()->push_back(char(byte()));
      }
    }
    const std::string out = "v" + std::to_string(g.node_size());
    n->add_output(out);
    names.push_back(out);
  }
  auto* result = g.add_output();
  result->set_name(names.back());
  try_model(made);
  return 0;
}
