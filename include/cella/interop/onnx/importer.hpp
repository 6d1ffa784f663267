// From an ONNX model to a graph: node after node, each by the rule of its operator.
#pragma once

#include <cella/graph/check.hpp>
#include <cella/interop/graph_reader.hpp>
#include <cella/interop/onnx/activations.hpp>
#include <cella/interop/onnx/constants.hpp>
#include <cella/interop/onnx/control.hpp>
#include <cella/interop/onnx/convolutions.hpp>
#include <cella/interop/onnx/cutting.hpp>
#include <cella/interop/onnx/einsum.hpp>
#include <cella/interop/onnx/elementwise.hpp>
#include <cella/interop/onnx/grid_sampling.hpp>
#include <cella/interop/onnx/images.hpp>
#include <cella/interop/onnx/indexing.hpp>
#include <cella/interop/onnx/normalization.hpp>
#include <cella/interop/onnx/padding.hpp>
#include <cella/interop/onnx/pools.hpp>
#include <cella/interop/onnx/products.hpp>
#include <cella/interop/onnx/quantization.hpp>
#include <cella/interop/onnx/recurrent.hpp>
#include <cella/interop/onnx/reductions.hpp>
#include <cella/interop/onnx/regions.hpp>
#include <cella/interop/onnx/scattering.hpp>
#include <cella/interop/onnx/shapes.hpp>
#include <cella/interop/onnx/signals.hpp>
#include <cella/interop/onnx/training.hpp>
#include <cella/interop/onnx/unpooling.hpp>
#include <cella/runtime/interpreter.hpp>
#include <map>
#include <unordered_map>

namespace cella::interop {

/// Calls f for each rule.
template <class F>
void for_each_onnx_rule(F f) {
  auto each = [&](span<const named_onnx_rule> rules) {
    for (const named_onnx_rule& r : rules) f(r);
  };
  each(activation_rules);
  each(constant_rules);
  each(control_rules);
  each(convolution_rules);
  each(cutting_rules);
  each(einsum_rules);
  each(elementwise_rules);
  each(grid_sampling_rules);
  each(image_rules);
  each(indexing_rules);
  each(normalization_rules);
  each(padding_rules);
  each(pool_rules);
  each(product_rules);
  each(quantization_rules);
  each(recurrent_rules);
  each(reduction_rules);
  each(region_rules);
  each(scattering_rules);
  each(shape_rules);
  each(signal_rules);
  each(training_rules);
  each(unpooling_rules);
}

/// ONNX's own domain has two names.
inline std::string domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

class onnx_importer final : public onnx_scope {
 public:
  onnx_importer(std::string label, const std::filesystem::path& folder,
                const onnx_settings& settings)
      : label_(std::move(label)), settings_(settings), tensors_(folder, settings.max_bytes) {
    for_each_onnx_rule([&](const named_onnx_rule& r) {
      rules_[full_name(std::string(r.domain), std::string(r.op))] = r.apply;
    });
  }

  graph read(const ::onnx::ModelProto& model) {
    for (const auto& o : model.opset_import()) opsets_[domain_of(o.domain())] = int(o.version());
    if (!model.has_graph()) throw file_error(label_ + " has no graph; name a file with a model");
    const ::onnx::GraphProto& g = model.graph();
    scopes_.emplace_back();
    read_initializers(g);
    for (const auto& input : g.input()) read_input(input);
    for (const auto& [name, value] : settings_.values)
      if (!scopes_.front().contains(name))
        throw file_error(label_ + " has no input " + in_quotes(name) +
                         ", for which a value is given; its inputs are " + names_of_inputs(g));
    read_nodes(g);
    ids out;
    for (const auto& o : g.output()) {
      out.push_back(find(o.name()).id);
      b_.g.outputs.push_back({-1, b_.g.intern(o.name())});
    }
    b_.end(out);
    return std::move(b_.g);
  }

  static std::string full_name(const std::string& domain, const std::string& op) {
    return domain.empty() ? op : domain + "." + op;
  }

  // ---- onnx_scope

  var find(const std::string& name) override {
    for (std::size_t k = scopes_.size(); k-- > 0;) {
      const auto found = scopes_[k].find(name);
      if (found != scopes_[k].end()) return {&b_, found->second};
    }
    throw file_error(label_ + " has no value " + in_quotes(name) + " before it is used; " +
                     "write the model anew, its nodes in the order in which they run");
  }
  const tensor_ref* known(var x) override {
    return is_known(x.id) ? &values_.value(x.id) : nullptr;
  }
  std::string input_of(var x) override {
    std::vector<node_id> left{x.id};
    while (!left.empty()) {
      const node_id n = left.back();
      left.pop_back();
      if (b_.g.nodes[std::size_t(n)].op == &input_info_of && b_.region_of(n) == 0)
        return std::string(b_.describe(n).view());
      for (node_id o : b_.g.operands(n)) left.push_back(o);
    }
    return {};
  }
  list<var> trace(const ::onnx::GraphProto& g, span<const var> in) override {
    if (int(in.size()) != g.input_size())
      throw file_error(label_ + ": the graph " + in_quotes(g.name()) + " takes " +
                       std::to_string(g.input_size()) + " values, but gets " +
                       std::to_string(in.size()) + "; check how the model was written");
    auto& own = scopes_.emplace_back();
    for (int i = 0; i < g.input_size(); ++i) own[g.input(i).name()] = in[std::size_t(i)].id;
    read_initializers(g);
    read_nodes(g);
    list<var> out;
    for (const auto& o : g.output()) out.push_back(find(o.name()));
    scopes_.pop_back();
    return out;
  }
  onnx_tensor_reader& tensors() override { return tensors_; }

 private:
  void read_initializers(const ::onnx::GraphProto& g) {
    for (const auto& t : g.initializer()) {
      const std::string where = label_ + ": the initializer " + in_quotes(t.name());
      scopes_.back()[t.name()] = constant_of(b_, tensors_.read(t, where)).id;
    }
    if (g.sparse_initializer_size())
      throw onnx_not_supported(label_ + " has sparse initializers, which Cella does not have");
  }
  void read_input(const ::onnx::ValueInfoProto& input) {
    const std::string& name = input.name();
    auto& own = scopes_.front();
    if (own.contains(name)) return;  // an initializer that could be replaced
    const std::string where = label_ + ": the input " + in_quotes(name);
    const tensor_type type = type_of(input, where);
    const auto given = settings_.values.find(name);
    if (given == settings_.values.end()) {
      own[name] = b_.input(type, input_role::argument, name);
      return;
    }
    if (given->second.type.element != type.element)
      throw file_error(where + " is " + std::string((text() << type).view()) +
                       ", but the value that is given for it is " +
                       std::string((text() << given->second.type).view()));
    own[name] = constant_of(b_, given->second).id;
  }
  tensor_type type_of(const ::onnx::ValueInfoProto& input, const std::string& where) const {
    if (!input.type().has_tensor_type())
      throw onnx_not_supported(where +
                               " is no tensor; Cella has no sequences and no optional values");
    const auto& t = input.type().tensor_type();
    const dtype element = onnx_tensor_reader::element_of(t.elem_type(), where);
    const auto given = settings_.values.find(input.name());
    if (given != settings_.values.end()) return {element, given->second.type.shape};
    std::vector<std::uint64_t> extents;
    for (int d = 0; d < t.shape().dim_size(); ++d) {
      const auto& dim = t.shape().dim(d);
      std::int64_t extent = dim.has_dim_value() ? dim.dim_value() : -1;
      const std::string own = input.name() + "." + std::to_string(d);
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
    return checked_type(where, element, extents);
  }
  static std::string names_of_inputs(const ::onnx::GraphProto& g) {
    std::string all;
    for (const auto& input : g.input()) all += (all.empty() ? "" : ", ") + in_quotes(input.name());
    return all.empty() ? "none" : all;
  }

  void read_nodes(const ::onnx::GraphProto& g) {
    for (int k = 0; k < g.node_size(); ++k) read_node(g.node(k), k);
  }
  void read_node(const ::onnx::NodeProto& proto, int number) {
    std::string where = label_ + ": node " + std::to_string(number) + " (" + proto.op_type();
    if (!proto.name().empty()) where += " " + in_quotes(proto.name());
    where += ")";
    const std::string domain = domain_of(proto.domain());
    const std::string name = full_name(domain, proto.op_type());
    const auto rule = rules_.find(name);
    if (rule == rules_.end())
      throw onnx_not_supported(where + " applies the operator " + in_quotes(name) +
                               ", which Cella does not have");
    const auto opset = opsets_.find(domain);
    if (opset == opsets_.end())
      throw file_error(where + " is of a domain whose opset the model does not say; write it anew");
    onnx_node n(*this, b_, proto, opset->second, where);
    const name_ref outer = b_.current_cell();
    b_.current_cell(b_.g.intern(proto.name().empty() ? proto.op_type() : proto.name()));
    const auto line = b_.attribute_to({kept_file_, number + 1});
    list<var> results;
    try {
      results = rule->second(n);
    } catch (const model_error& e) { throw file_error(where + ": " + without_place(e.what())); }
    b_.attribute_to(line);
    b_.current_cell(outer);
    for (int k = 0; k < proto.output_size(); ++k) {
      if (proto.output(k).empty()) continue;
      if (std::size_t(k) >= results.size())
        throw onnx_not_supported(where + " hands out result " + std::to_string(k) +
                                 ", which Cella's does not have");
      scopes_.back()[proto.output(k)] = results[std::size_t(k)].id;
    }
  }
  /// A sentence of an operation begins with its place in the source, which is one of this library.
  static std::string without_place(std::string_view sentence) {
    const auto end = sentence.find(": ");
    const bool placed =
        end != sentence.npos && end > 0 && sentence.substr(0, end).find(".hpp:") != sentence.npos;
    return std::string(placed ? sentence.substr(end + 2) : sentence);
  }

  static std::string without_quotes(std::string s) {
    std::erase(s, '"');
    return s;
  }

  /// Whether a value follows from constants; if so it is computed.
  bool is_known(node_id x) {
    std::vector<node_id> left{x};
    while (!left.empty()) {
      const node_id n = left.back();
      if (values_.has(n)) {
        left.pop_back();
        continue;
      }
      const node& at = b_.g.nodes[std::size_t(n)];
      if (at.op == &input_info_of || at.op->traits.impure || at.region != 0) return false;
      // What decides upon shapes is small.
      if (at.result_count == 0 && at.type.size() > 1 << 22) return false;
      bool ready = true;
      for (node_id o : b_.g.operands(n)) {
        if (values_.has(o)) continue;
        left.push_back(o);
        ready = false;
      }
      if (!ready) continue;
      values_.evaluate(b_.g, n, &compute);
      left.pop_back();
    }
    return true;
  }

  std::string label_;
  const onnx_settings& settings_;
  const char* kept_file_ = detail::kept_name(without_quotes(label_));
  onnx_tensor_reader tensors_;
  builder b_;
  value_store values_;  ///< of nodes that are known
  std::map<std::string, int> opsets_;
  std::map<std::string, onnx_rule> rules_;
  /// The values by their names, those of graphs that nodes own behind those in reach.
  std::vector<std::unordered_map<std::string, node_id>> scopes_;
};

}  // namespace cella::interop
