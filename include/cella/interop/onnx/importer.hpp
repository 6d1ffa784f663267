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
#include <cella/interop/onnx/gradients.hpp>
#include <cella/interop/onnx/grid_sampling.hpp>
#include <cella/interop/onnx/images.hpp>
#include <cella/interop/onnx/indexing.hpp>
#include <cella/interop/onnx/inputs.hpp>
#include <cella/interop/onnx/loops.hpp>
#include <cella/interop/onnx/normalization.hpp>
#include <cella/interop/onnx/padding.hpp>
#include <cella/interop/onnx/pools.hpp>
#include <cella/interop/onnx/products.hpp>
#include <cella/interop/onnx/quantization.hpp>
#include <cella/interop/onnx/recurrent.hpp>
#include <cella/interop/onnx/reductions.hpp>
#include <cella/interop/onnx/regions.hpp>
#include <cella/interop/onnx/scattering.hpp>
#include <cella/interop/onnx/sequences.hpp>
#include <cella/interop/onnx/shapes.hpp>
#include <cella/interop/onnx/signals.hpp>
#include <cella/interop/onnx/training.hpp>
#include <cella/interop/onnx/unpooling.hpp>
#include <cella/runtime/interpreter.hpp>
#include <map>
#include <unordered_map>
#include <unordered_set>

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
  each(gradient_rules);
  each(grid_sampling_rules);
  each(image_rules);
  each(indexing_rules);
  each(loop_rules);
  each(normalization_rules);
  each(padding_rules);
  each(pool_rules);
  each(product_rules);
  each(quantization_rules);
  each(recurrent_rules);
  each(reduction_rules);
  each(region_rules);
  each(scattering_rules);
  each(sequence_rules);
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
      rules_.emplace(full_name(std::string(r.domain), std::string(r.op)), r.apply);
    });
  }

  graph read(const ::onnx::ModelProto& model) {
    for (const auto& o : model.opset_import()) opsets_[domain_of(o.domain())] = int(o.version());
    if (!model.has_graph()) throw file_error(label_ + " has no graph; name a file with a model");
    const ::onnx::GraphProto& g = model.graph();
    scopes_.emplace_back();
    read_initializers(g);
    read_inputs(g);
    read_nodes(g);
    ids out;
    for (const auto& o : g.output()) {
      const model_value& v = find(o.name());
      for (std::size_t k = 0; k < v.parts().size(); ++k) {
        const bool element = v.kind() == model_value::sequence;
        out.push_back(v.parts()[k].id);
        b_.g.outputs.push_back(
            {-1, b_.g.intern(element ? name_of_element(o.name(), k) : o.name())});
      }
    }
    b_.end(out);
    return std::move(b_.g);
  }

  static std::string full_name(const std::string& domain, const std::string& op) {
    return domain.empty() ? op : domain + "." + op;
  }

  // ---- onnx_scope

  const model_value& find(const std::string& name) override {
    for (std::size_t k = scopes_.size(); k-- > 0;) {
      const auto found = scopes_[k].find(name);
      if (found != scopes_[k].end()) return found->second;
    }
    throw file_error(label_ + " has no value " + in_quotes(name) + " before it is used; " +
                     "write the model anew, its nodes in the order in which they run");
  }
  const tensor_ref* known(var x) override {
    if (!is_computed(x.id)) return nullptr;
    for (auto& [number, asked] : watched_) asked = asked || is_behind(x.id, number);
    return &values_.value(x.id);
  }
  bool is_known(var x) override {
    return is_computed(x.id) && std::ranges::none_of(watched_, [&](const auto& watched) {
             return is_behind(x.id, watched.first);
           });
  }
  std::string input_of(var x) override {
    std::string name;
    any_behind(x.id, [&](node_id n) {
      const bool found = b_.g.nodes[std::size_t(n)].op == &input_info_of && b_.region_of(n) == 0;
      if (found) name = b_.describe(n).view();
      return found;
    });
    return name;
  }
  model_values trace(const ::onnx::GraphProto& g, const model_values& in) override {
    if (int(in.size()) != g.input_size())
      throw file_error(label_ + ": the graph " + in_quotes(g.name()) + " takes " +
                       std::to_string(g.input_size()) + " values, but gets " +
                       std::to_string(in.size()) + "; check how the model was written");
    count(1);
    const std::size_t nodes = nodes_.size();
    auto& own = scopes_.emplace_back();
    for (int i = 0; i < g.input_size(); ++i) own[g.input(i).name()] = in[std::size_t(i)];
    read_initializers(g);
    read_nodes(g);
    model_values out;
    for (const auto& o : g.output()) out.push_back(find(o.name()));
    scopes_.pop_back();
    nodes_.resize(nodes);
    return out;
  }
  model_value traced_again(const std::string& y, const std::vector<std::string>& names,
                           const list<var>& in) override {
    constexpr std::size_t most = 8;
    if (order_ == most)
      throw onnx_not_supported(label_ + " asks for derivatives of an order above " +
                               std::to_string(most) + ", which Cella does not have");
    ++order_;
    scopes_.emplace_back();
    auto give = [&] {
      for (std::size_t k = 0; k < names.size(); ++k) scopes_.back()[names[k]] = in[k];
    };
    give();
    // What a node in between traces again in turn lies before that node.
    const node_list all = std::exchange(nodes_, {});
    for (std::size_t k : nodes_between(all, {names.begin(), names.end()}, y)) {
      const auto from = all.begin() + std::ptrdiff_t(nodes_.size());
      nodes_.insert(nodes_.end(), from, all.begin() + std::ptrdiff_t(k));
      read_node(*all[k].first, all[k].second);
      give();
    }
    nodes_ = all;
    const model_value made = find(y);
    scopes_.pop_back();
    --order_;
    return made;
  }
  bool is_asked_for(const std::function<void(var)>& f) override {
    const int scratch = b_.begin({});
    const var number =
        emit<identity_op>({}, std::source_location::current(), integers_as_constant(b_, {0}, {}));
    watched_.emplace_back(number.id, false);
    f(number);
    const bool asked = watched_.back().second;
    watched_.pop_back();
    b_.end({});
    b_.discard(scratch);
    return asked;
  }
  bool is_on_trial() const override { return !watched_.empty(); }
  onnx_tensor_reader& tensors() override { return tensors_; }

 private:
  void read_initializers(const ::onnx::GraphProto& g) {
    for (const auto& t : g.initializer()) {
      const std::string where = label_ + ": the initializer " + in_quotes(t.name());
      scopes_.back()[t.name()] = constant_of(b_, tensors_.read(t, where));
    }
    if (g.sparse_initializer_size())
      throw onnx_not_supported(label_ + " has sparse initializers, which Cella does not have");
  }
  void read_inputs(const ::onnx::GraphProto& g) {
    auto& own = scopes_.front();
    onnx_input_reader reader(b_, settings_, label_);
    for (const auto& input : g.input())  // an initializer may be an input that could replace it
      if (!own.contains(input.name())) own[input.name()] = reader.read(input);
    reader.check_settings([&](const std::string& name) { return own.contains(name); });
  }

  void read_nodes(const ::onnx::GraphProto& g) {
    for (int k = 0; k < g.node_size(); ++k) {
      read_node(g.node(k), k);
      nodes_.emplace_back(&g.node(k), k);
    }
  }
  void read_node(const ::onnx::NodeProto& proto, int number) {
    std::string where = label_ + ": node " + std::to_string(number) + " (" + proto.op_type();
    if (!proto.name().empty()) where += " " + in_quotes(proto.name());
    where += ")";
    if (scopes_.size() > 1) count(1);  // the nodes of the main graph are as many as the file has
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
    model_values results;
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
      const bool sequence = results[std::size_t(k)].kind() == model_value::sequence;
      count(sequence ? results[std::size_t(k)].parts().size() : 0);
      scopes_.back()[proto.output(k)] = results[std::size_t(k)];
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

  /// Loops, sequences and gradients make more nodes and values than a file has.
  void count(std::size_t values) {
    constexpr std::size_t most = 1 << 18;
    made_ += values;
    if (made_ > most)
      throw onnx_not_supported(label_ + " makes more than " + std::to_string(most) +
                               " values when its loops, sequences and gradients are written out, " +
                               "which Cella does not do");
  }

  /// The value that an input of a region stands for; none if the region gets it anew in each run.
  node_id outer_of(node_id n) const {
    if (b_.g.nodes[std::size_t(n)].op != &input_info_of) return no_node;
    const region& r = b_.g.regions[std::size_t(b_.region_of(n))];
    const auto declared = std::size_t(r.declared);
    for (std::size_t k = 0; k < r.captured.size(); ++k)
      if (r.inputs[declared + k] == n) return r.captured[k];
    return no_node;
  }
  /// Whether f holds of a node on which x depends, x itself included.
  template <class F>
  bool any_behind(node_id x, F f) const {
    std::vector<node_id> left{x};
    std::unordered_set<node_id> seen;
    while (!left.empty()) {
      const node_id n = left.back();
      left.pop_back();
      if (!seen.insert(n).second) continue;
      if (f(n)) return true;
      if (const node_id outer = outer_of(n); outer >= 0) left.push_back(outer);
      for (node_id o : b_.g.operands(n)) left.push_back(o);
    }
    return false;
  }
  bool is_behind(node_id x, node_id n) const {
    return any_behind(x, [&](node_id other) { return other == n; });
  }
  /// Whether a value follows from constants; if so it is computed.
  bool is_computed(node_id x) {
    std::vector<node_id> left{x};
    while (!left.empty()) {
      const node_id n = left.back();
      if (values_.has(n)) {
        left.pop_back();
        continue;
      }
      const node& at = b_.g.nodes[std::size_t(n)];
      if (at.op == &input_info_of) {
        const node_id outer = outer_of(n);
        if (outer < 0) return false;
        if (values_.has(outer))
          values_.bind(n, values_.value(outer));
        else
          left.push_back(outer);
        continue;
      }
      if (at.op->traits.impure) return false;
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
  std::vector<std::unordered_map<std::string, model_value>> scopes_;
  node_list nodes_;  ///< in reach, in their order: those that a gradient may trace again
  std::size_t order_ = 0;
  std::vector<std::pair<node_id, bool>> watched_;  ///< numbers, and whether they were asked for
  std::size_t made_ = 0;
};

}  // namespace cella::interop
