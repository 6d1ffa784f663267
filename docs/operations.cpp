// Writes docs/operations.md: a page of all operations, made from their structs.
//
// usage: operations FILE
#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/ops/list.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace cella;

std::string class_name(compute_class c) {
  constexpr std::array names{"source",    "pointwise", "movement",      "contraction",
                             "reduction", "window",    "normalization", "sequential",
                             "indexed",   "random",    "control",       "other"};
  return names[std::size_t(c)];
}

/// The derivative, by its rule.
std::string derivative(const op_info& op) {
  switch (op.kind) {
    case op_kind::leaf:
      return "";
    case op_kind::elementwise:
      return op.zero_derivative ? "zero" : op.vjp ? "by its result" : "elementwise";
    case op_kind::linear:
      return "linear";
    case op_kind::bilinear:
      return "bilinear";
    case op_kind::opaque:
      return op.zero_derivative ? "zero" : op.vjp ? "own" : "none";
    case op_kind::control:
      return "by its regions";
  }
  return "";
}

std::string traits(const op_info& op) {
  const op_traits& t = op.traits;
  std::string s;
  auto add = [&](bool has, std::string_view word) {
    if (has) s += (s.empty() ? "" : ", ") + std::string(word);
  };
  add(t.alias, "alias");
  add(t.rearranges && !t.alias, "rearranges");
  add(t.foldable, "foldable");
  add(t.commutative, "commutative");
  add(op.zero_of || op.zero_where, "keeps zero");
  add(t.nondecreasing && !t.monotone, "nondecreasing");
  add(t.monotone, "monotone");
  add(t.impure, "impure");
  add(t.computed_in_single, "16 bits in f32");
  add(op.integral, "exact on integers");
  add(t.takes_complex, "complex");
  return s;
}

/// The kinds of steps that the CPU has for an operation, from its planner: tried on every operation
/// as if it stood alone, on f32 matrices.
std::string on_the_cpu(const op_info& op) {
  if (op.traits.alias) return "nothing: shares memory";
  if (op.pointwise || &op == &info_of<cast_op>) return "fused";
  switch (op.computes) {
    case compute_class::source:
      if (op.traits.stored) return "read in its place";
      return &op == &info_of<constant_op> ? "fused" : "once, when prepared";
    case compute_class::contraction:
      if (op.kind == op_kind::bilinear) return "`product`";
      break;
    case compute_class::control:
      return "`control`, or straight-line code in registers";
    case compute_class::window:
      if (op.kind == op_kind::bilinear) return "`convolution` and its gradients";
      break;
    default:
      break;
  }
  graph g;
  node x;
  x.op = &op;
  x.type = {dtype::f32, {4, 6}};
  x.operand_count = 2;
  g.operand_pool = {0, 1};
  node value = x, index = x;
  value.op = index.op = &input_info_of;
  index.type = {dtype::i32, {4}};
  if (op.computes == compute_class::random) value.type = {dtype::i64, {2}};
  if (&op == &info_of<one_hot_op>) value.type = index.type;
  if (&op == &info_of<gather_elements_op> || &op == &info_of<scatter_elements_op>)
    index.type.shape = value.type.shape;
  if (&op == &info_of<prod_op>) x.attributes = axes_options{1};
  if (&op == &info_of<convolution_integer_op>) x.attributes = convolution_options{};
  g.nodes = {value, index, x};
  const step_kind alone = cpu::default_kernel(g, 2, dtype::f32);
  if (alone != step_kind::generic) return "`" + std::string(name(alone)) + "`";
  if (&op == &info_of<sum_op> || &op == &info_of<max_op> || &op == &info_of<min_op>)
    return "`reduce`, `rows`";
  if (&op == &info_of<broadcast_op> || &op == &info_of<slice_op> || &op == &info_of<concat_op>)
    return "read or written in its place, or `move`";
  if (&op == &info_of<scatter_slice_op>) return "`move`";
  if (&op == &info_of<batch_norm_op> || &op == &info_of<batch_norm_gradient_op>)
    return "`" + std::string(op.name) + "`";
  if (&op == &info_of<cross_entropy_op>) return "`cross_entropy`";
  return "`generic`";
}

/// Text of a cell of a table.
std::string cell(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '|' || c == '*' || c == '_' || c == '<') out += '\\';
    out += c;
  }
  return out;
}
/// `Gather 1`: the operator, and the opset from which on it means the same.
std::string onnx(const onnx_operator& o) {
  if (o.name.empty()) return "";
  const std::string domain(o.domain);
  return (domain.empty() ? "" : domain + ".") + std::string(o.name) + " " + std::to_string(o.since);
}
std::string code(std::string_view s) { return s.empty() ? "" : "`" + std::string(s) + "`"; }

void write(std::ostream& out) {
  out << "# Operations\n\n"
         "Made from the structs in `include/cella/ops/` by `docs/operations.cpp`; "
         "`cmake --build build/release --target operations` writes\nit again. Other names: what "
         "has the same meaning there, options aside; behind ONNX's the opset from which on it "
         "has.\nThe derivative: which rule gives it. The CPU: the kind of step that runs it, where "
         "no other step takes it in; `generic` is\nthe operation's own computation. "
      << all_operations::size << " operations.\n";
  for (int c = 0; c <= int(compute_class::other); ++c) {
    bool any = false;
    for (const op_info* op : all_operations::infos) {
      if (op->computes != compute_class(c)) continue;
      if (!any)
        out << "\n## " << class_name(compute_class(c))
            << "\n\n| operation | computes | ONNX | NumPy | PyTorch | derivative | traits | CPU |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
      any = true;
      out << "| `" << op->name << "` | " << cell(op->formula) << " | " << onnx(op->onnx) << " | "
          << code(op->numpy) << " | " << code(op->torch) << " | " << derivative(*op) << " | "
          << traits(*op) << " | " << on_the_cpu(*op) << " |\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: operations FILE\n";
    return 2;
  }
  std::ofstream out(argv[1]);
  write(out);
  out.close();
  if (!out) {
    std::cerr << argv[1] << " could not be written\n";
    return 1;
  }
}
