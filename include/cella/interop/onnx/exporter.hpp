// From a graph to an ONNX model of opset 18: most operations are one node, by what their structs
// say of ONNX; the others are written by the rules below.
#pragma once

#include <onnx/onnx_pb.h>

#include <cella/graph/graph.hpp>
#include <cella/interop/file.hpp>
#include <cella/interop/onnx.hpp>
#include <cella/interop/onnx/model_parts.hpp>
#include <cella/interop/onnx_model.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/list.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace cella::interop {

class onnx_exporter {
 public:
  static constexpr int opset = 18;
  using names = onnx_model_parts::names;
  using integers = onnx_model_parts::integers;

  /// `values` tells the bytes of parameters and states by their names.
  onnx_exporter(const graph& g, const onnx_values& values) : g_(g), find_(values) {
    using e = onnx_exporter;
    for (const auto& [op, write] : std::initializer_list<std::pair<const op_info*, rule>>{
             {&info_of<broadcast_op>, &e::broadcast},
             {&info_of<clamp_op>, &e::clamp},
             {&info_of<constant_op>, &e::constant},
             {&info_of<cumsum_op>, &e::cumsum},
             {&info_of<erfc_op>, &e::erfc},
             {&info_of<expm1_op>, &e::expm1},
             {&info_of<floor_div_op>, &e::floor_div},
             {&info_of<fmod_op>, &e::remainder},
             {&info_of<gelu_op>, &e::gelu},
             {&info_of<gelu_tanh_op>, &e::gelu_tanh},
             {&info_of<iota_op>, &e::computed},
             {&info_of<left_shift_op>, &e::shift},
             {&info_of<log1p_op>, &e::log1p},
             {&info_of<log2_op>, &e::log2},
             {&info_of<matmul_op>, &e::product},
             {&info_of<max_op>, &e::reduction},
             {&info_of<min_op>, &e::reduction},
             {&info_of<not_equal_op>, &e::not_equal},
             {&info_of<one_hot_op>, &e::one_hot},
             {&info_of<prod_op>, &e::reduction},
             {&info_of<reshape_op>, &e::reshape},
             {&info_of<right_shift_op>, &e::shift},
             {&info_of<rsqrt_op>, &e::rsqrt},
             {&info_of<scatter_slice_op>, &e::pad},
             {&info_of<slice_op>, &e::slice},
             {&info_of<square_op>, &e::square},
             {&info_of<stop_gradient_op>, &e::identity},
             {&info_of<straight_through_op>, &e::identity},
             {&info_of<sum_op>, &e::reduction},
             {&info_of<trunc_op>, &e::trunc},
             {&info_of<values_op>, &e::stored},
             {&info_of<cross_entropy_op>, nullptr}})
      rules_[op] = write;
  }

  ::onnx::ModelProto write() {
    names_.resize(g_.nodes.size());
    name_results();
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) write_input(int(i));
    const region& main = g_.regions[0];
    for (node_id n : main.nodes) write_node(n);
    for (std::size_t k = 0; k < main.outputs.size(); ++k) {
      if (g_.outputs[k].updates >= 0) continue;
      const node_id n = main.outputs[k];
      // What is an input, or two results at once, has one name already.
      if (name(n) != results_[k]) to_.add("Identity", {name(n)}, results_[k]);
      to_.describe(*to_.graph().add_output(), results_[k], g_.type(n));
    }
    return to_.take();
  }

 private:
  using rule = void (onnx_exporter::*)(node_id);

  const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  [[noreturn]] void refuse(node_id n, const std::string& why) const {
    const std::string_view cell = g_.view(at(n).cell);
    throw error("save_onnx: the operation \"" + std::string(at(n).op->name) + "\"" +
                (cell.empty() ? "" : " of " + in_quotes(cell)) + " " + why);
  }

  // ---- names and types

  std::string& name(node_id n) { return names_[std::size_t(n)]; }
  /// Results have the names that the graph gives them, or are numbered.
  void name_results() {
    for (const input_info& in : g_.inputs) to_.reserve(g_.view(in.name));
    const region& main = g_.regions[0];
    for (std::size_t k = 0; k < main.outputs.size(); ++k) {
      const std::string_view said = g_.view(g_.outputs[k].name);
      const node_id n = main.outputs[k];
      results_.push_back(g_.outputs[k].updates >= 0 ? std::string()
                         : said.empty()             ? to_.fresh("result" + std::to_string(k))
                                                    : to_.fresh(std::string(said)));
      if (name(n).empty() && at(n).op != &input_info_of) name(n) = results_.back();
    }
  }
  // ---- parts of a model

  void write_input(int i) {
    const node_id n = g_.input(i);
    const std::string label(g_.view(g_.inputs[std::size_t(i)].name));
    name(n) = label;
    const tensor_type t = g_.type(n);
    const input_role role = g_.inputs[std::size_t(i)].role;
    if (!owned_by_cell(role)) return to_.describe(*to_.graph().add_input(), label, t);
    const std::span<const std::byte> bytes = find_ ? find_(label, t) : std::span<const std::byte>{};
    if (bytes.size() != std::size_t(t.bytes()))
      throw error(text() << "save_onnx: the value of " << label << ", " << t
                         << ", is not there; hand over the store of the model's parameters");
    to_.initializer(label, t, bytes);
  }
  /// One number of the element type of node `n`.
  std::string number(node_id n, double value) { return to_.number(value, g_.type(n).element); }
  ::onnx::NodeProto& add(const std::string& op, const names& in, node_id n) {
    auto& x = to_.add(op, in, name(n));
    const std::string cell(g_.view(at(n).cell));
    x.set_name(to_.fresh_node((cell.empty() ? "" : cell + "/") + std::string(at(n).op->name)));
    return x;
  }
  // ---- operations

  void write_node(node_id n) {
    const node& x = at(n);
    if (x.op == &input_info_of) return;
    if (x.op == &get_info_of) {
      const node_id from = g_.operand(n, 0);
      if (x.attributes.as<get_attributes>().result != 0)
        refuse(from, "has a further result, which its operator in ONNX does not have");
      // Named by its reader, or as what it is taken from.
      if (name(n).empty())
        name(n) = name(from);
      else
        to_.add("Identity", {name(from)}, name(n));
      return;
    }
    if (name(n).empty()) name(n) = to_.fresh("v");
    if (onnx_code(x.result_count ? g_.result_type(n, 0).element : x.type.element) < 0)
      refuse(n, "has a result of a type that ONNX does not have");
    const auto found = rules_.find(x.op);
    if (found != rules_.end() && found->second) return (this->*found->second)(n);
    if (found != rules_.end() || x.op->onnx.name.empty() || !x.op->onnx.domain.empty())
      refuse(n,
             "has no counterpart in ONNX; trace the part of the model that is to be saved, "
             "without loops and gradients");
    plain(n);
  }
  names operands(node_id n) {
    names all;
    for (node_id o : g_.operands(n)) all.push_back(name(o));
    return all;
  }
  std::string operand(node_id n, int i = 0) { return name(g_.operand(n, i)); }
  tensor_type operand_type(node_id n, int i = 0) const { return g_.type(g_.operand(n, i)); }
  /// One node, by what the operation's struct says.
  void plain(node_id n) {
    const node& x = at(n);
    list<tensor_type> types;
    for (node_id o : g_.operands(n)) types.push_back(g_.type(o));
    auto& to = add(std::string(x.op->onnx.name), operands(n), n);
    const onnx_attributes all = onnx_attributes_of(*x.op, types, x.attributes);
    for (const onnx_attribute& a : all.values()) to_.set(to, a);
  }
  void identity(node_id n) { add("Identity", {operand(n)}, n); }

  void stored(node_id n) {
    const auto words = g_.values_of(n);
    const auto bytes = std::as_bytes(std::span(words.data(), words.size()));
    to_.initializer(name(n), g_.type(n), bytes.first(std::size_t(g_.type(n).bytes())));
  }
  /// What follows from nothing else is computed.
  void computed(node_id n) {
    const tensor_type t = g_.type(n);
    std::vector<std::byte> bytes(static_cast<std::size_t>(t.bytes()));
    const tensor_ref to{bytes.data(), t};
    compute(*at(n).op, at(n).attributes, {}, {&to, 1});
    to_.initializer(name(n), t, bytes);
  }
  void constant(node_id n) {
    const tensor_type t = g_.type(n);
    if (t.size() <= 16) return computed(n);
    const std::string one =
        to_.number(at(n).attributes.as<constant_op::options>().value, t.element);
    add("Expand", {one, to_.list_of({t.shape.begin(), t.shape.end()})}, n);
  }
  void reshape(node_id n) {
    const shape s = g_.type(n).shape;
    // An extent of 0 is one, and not that of the operand.
    to_.set(add("Reshape", {operand(n), to_.list_of({s.begin(), s.end()})}, n), "allowzero",
            std::int64_t{s.size() == 0});
  }
  void broadcast(node_id n) {
    const auto o = at(n).attributes.as<broadcast_op::options>();
    integers along(std::size_t(o.shape.rank), 1);
    for (int d = 0; d < operand_type(n).rank(); ++d)
      along[std::size_t(o.axes[std::size_t(d)])] = operand_type(n)[d];
    const std::string x = to_.between("Reshape", {operand(n), to_.list_of(along)});
    add("Expand", {x, to_.list_of({o.shape.begin(), o.shape.end()})}, n);
  }
  void reduction(node_id n) {
    const unsigned mask = at(n).attributes.as<axes_options>().axes;
    integers axes;
    for (int d = 0; d < operand_type(n).rank(); ++d)
      if (mask >> d & 1) axes.push_back(d);
    to_.set(add(std::string(at(n).op->onnx.name), {operand(n), to_.list_of(axes)}, n), "keepdims",
            std::int64_t{0});
  }
  void cumsum(node_id n) {
    const auto o = at(n).attributes.as<cumsum_op::options>();
    auto& to = add("CumSum", {operand(n), to_.integer_tensor({o.axis}, {})}, n);
    to_.set(to, "exclusive", std::int64_t{o.exclusive});
    to_.set(to, "reverse", std::int64_t{o.reverse});
  }
  std::string converted(const std::string& x, dtype to) {
    const std::string y = to_.between("Cast", {x});
    to_.set(*to_.graph().mutable_node(to_.graph().node_size() - 1), "to", onnx_code(to));
    return y;
  }
  void one_hot(node_id n) {
    const auto o = at(n).attributes.as<one_hot_op::options>();
    const std::string values = converted(to_.list_of({0, 1}), dtype(o.element));
    // What is below 0 would count from the end: beyond it, it is nowhere, as it is here.
    std::string at = operand(n);
    if (!is_unsigned(operand_type(n).element)) {
      at = converted(at, dtype::i64);
      const std::string below = to_.between("Less", {at, to_.number(0, dtype::i64)});
      at = to_.between("Where", {below, to_.number(o.depth, dtype::i64), at});
    }
    add("OneHot", {at, to_.integer_tensor({o.depth}, {}), values}, n);
  }
  void slice(node_id n) {
    const auto o = at(n).attributes.as<slice_op::options>();
    integers starts, stops, axes, steps;
    for (int d = 0; d < o.shape.rank; ++d) {
      const auto i = std::size_t(d);
      const std::int64_t stop = o.start[i] + std::int64_t{o.shape[d]} * o.step[i];
      starts.push_back(o.start[i]);
      // Below 0 would count from the end: far below is before the first.
      stops.push_back(stop < 0 ? std::numeric_limits<std::int64_t>::min() / 4 : stop);
      axes.push_back(d);
      steps.push_back(o.step[i]);
    }
    add("Slice",
        {operand(n), to_.list_of(starts), to_.list_of(stops), to_.list_of(axes),
         to_.list_of(steps)},
        n);
  }
  void pad(node_id n) {
    const auto o = at(n).attributes.as<scatter_slice_op::options>();
    const shape part = operand_type(n).shape, all = g_.type(n).shape;
    integers before, after;
    for (int d = 0; d < all.rank; ++d) {
      const auto i = std::size_t(d);
      if (o.step[i] != 1 && part[d] > 1) refuse(n, "spreads elements, which ONNX does not");
      before.push_back(o.start[i]);
      after.push_back(all[d] - part[d] - o.start[i]);
    }
    before.insert(before.end(), after.begin(), after.end());
    add("Pad", {operand(n), to_.list_of(before)}, n);
  }
  void clamp(node_id n) {
    const auto o = at(n).attributes.as<clamp_op::options>();
    add("Clip", {operand(n), number(n, o.low), number(n, o.high)}, n);
  }

  // ---- functions of one element

  void square(node_id n) { add("Mul", {operand(n), operand(n)}, n); }
  void rsqrt(node_id n) { add("Reciprocal", {to_.between("Sqrt", {operand(n)})}, n); }
  void expm1(node_id n) { add("Sub", {to_.between("Exp", {operand(n)}), number(n, 1)}, n); }
  void log1p(node_id n) { add("Log", {to_.between("Add", {operand(n), number(n, 1)})}, n); }
  void log2(node_id n) {
    add("Mul", {to_.between("Log", {operand(n)}), number(n, 1 / std::numbers::ln2)}, n);
  }
  void erfc(node_id n) { add("Sub", {number(n, 1), to_.between("Erf", {operand(n)})}, n); }
  void trunc(node_id n) {
    const std::string size = to_.between("Floor", {to_.between("Abs", {operand(n)})});
    add("Mul", {to_.between("Sign", {operand(n)}), size}, n);
  }
  void not_equal(node_id n) { add("Not", {to_.between("Equal", operands(n))}, n); }
  /// 0.5 x (1 + erf(x / sqrt(2))): the operator Gelu is of opset 20.
  void gelu(node_id n) {
    const std::string x = operand(n);
    const std::string inner = to_.between("Mul", {x, number(n, 1 / std::numbers::sqrt2)});
    const std::string one = to_.between("Add", {to_.between("Erf", {inner}), number(n, 1)});
    add("Mul", {to_.between("Mul", {x, number(n, 0.5)}), one}, n);
  }
  /// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  void gelu_tanh(node_id n) {
    const std::string x = operand(n);
    const std::string cube = to_.between("Mul", {to_.between("Mul", {x, x}), x});
    const std::string inner =
        to_.between("Add", {x, to_.between("Mul", {cube, number(n, 0.044715)})});
    const std::string scaled =
        to_.between("Mul", {inner, number(n, std::sqrt(2 / std::numbers::pi))});
    const std::string one = to_.between("Add", {to_.between("Tanh", {scaled}), number(n, 1)});
    add("Mul", {to_.between("Mul", {x, number(n, 0.5)}), one}, n);
  }
  void floor_div(node_id n) {
    if (is_floating(g_.type(n).element))
      return void(add("Floor", {to_.between("Div", operands(n))}, n));
    // What is left of a division has the sign of the divisor there.
    const std::string rest = to_.between("Mod", operands(n));
    add("Div", {to_.between("Sub", {operand(n, 0), rest}), operand(n, 1)}, n);
  }
  void remainder(node_id n) { to_.set(add("Mod", operands(n), n), "fmod", 1); }
  void shift(node_id n) {
    if (!is_unsigned(g_.type(n).element))
      refuse(n, "moves the digits of numbers with a sign, which ONNX does not");
    const char* const way = at(n).op == &info_of<left_shift_op> ? "LEFT" : "RIGHT";
    to_.set(add("BitShift", operands(n), n), {"direction", way});
  }

  // ---- products

  /// The operand with its axes, of these factors, in another order.
  std::string in_order(const std::string& x, const std::vector<int>& factors,
                       const std::vector<int>& order) {
    if (factors == order) return x;
    integers perm;
    for (int f : order) perm.push_back(std::ranges::find(factors, f) - factors.begin());
    const std::string label = to_.fresh("v");
    to_.set(to_.add("Transpose", {x}, label), "perm", perm);
    return label;
  }
  /// A matrix product if the factors of the result are batches, rows and one column; else the sum
  /// of products that it is.
  void product(node_id n) {
    const auto o = at(n).attributes.as<matmul_op::options>();
    auto factors = [](const iteration_space::axes& axes, int rank) {
      return std::vector<int>(axes.begin(), axes.begin() + rank);
    };
    const auto a = factors(o.a, operand_type(n, 0).rank()),
               b = factors(o.b, operand_type(n, 1).rank()),
               result = factors(o.result, g_.type(n).rank());
    auto has = [](const std::vector<int>& all, int f) {
      return std::ranges::find(all, f) != all.end();
    };
    std::vector<int> batches, rows, columns, summed;
    for (int f : result) (has(a, f) ? has(b, f) ? batches : rows : columns).push_back(f);
    for (int f : a)
      if (has(b, f) && !has(result, f)) summed.push_back(f);
    auto joined = [](std::vector<int> x, const std::vector<int>& y) {
      x.insert(x.end(), y.begin(), y.end());
      return x;
    };
    const bool whole = a.size() == batches.size() + rows.size() + summed.size() &&
                       b.size() == batches.size() + columns.size() + summed.size();
    const bool is_matrix =
        batches.empty() ? columns.size() <= 1 : rows.size() == 1 && columns.size() == 1;
    if (whole && is_matrix && summed.size() == 1 &&
        result == joined(joined(batches, rows), columns)) {
      const std::string left = in_order(operand(n, 0), a, joined(joined(batches, rows), summed));
      const std::string right =
          in_order(operand(n, 1), b, joined(joined(batches, summed), columns));
      add("MatMul", {left, right}, n);
      return;
    }
    auto letters = [](const std::vector<int>& all) {
      std::string s;
      for (int f : all) s.push_back(char('a' + f));
      return s;
    };
    const std::string equation = letters(a) + "," + letters(b) + "->" + letters(result);
    to_.set(add("Einsum", operands(n), n), {"equation", equation});
  }

  const cella::graph& g_;
  const onnx_values& find_;
  onnx_model_parts to_{opset};
  std::vector<std::string> names_;    ///< of nodes' results
  std::vector<std::string> results_;  ///< of the model's, empty for those that update inputs
  /// Null: no operator means the same, although the operation names one.
  std::map<const op_info*, rule> rules_;
};

}  // namespace cella::interop
