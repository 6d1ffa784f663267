// Any bytes load as a graph, in both forms, or throw file_error; what loads is well formed, is
// written as it was read, and its rules can be asked. For libFuzzer.
#include <algorithm>
#include <cella/interop/graph_file.hpp>
#include <cella/transform/control.hpp>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/every_operation.hpp"

namespace {

using namespace cella;

void check_read(const graph& g) {
  if (!check(g).empty()) std::abort();
  const std::string json = graph_to_json(g);
  if (graph_to_json(graph_from_json(json)) != json) std::abort();
  const auto bytes = graph_to_bytes(g);
  if (graph_to_bytes(graph_from_bytes(bytes)) != bytes) std::abort();
  for (node_id n = 0; n < node_id(g.nodes.size()); ++n) {
    if (!g.nodes[std::size_t(n)].op->space) continue;
    const iteration_space s = loops_of(g, n);
    for (const iteration_space::walk& w : s.walks)
      if (w.axis < 0 || w.axis >= max_rank || w.factor >= int(s.factors.size())) std::abort();
  }
}
void check_json(std::string_view json) {
  try {
    check_read(graph_from_json(json, "fuzzed"));
  } catch (const file_error&) {}
}
void check_bytes(std::string_view bytes) {
  try {
    check_read(graph_from_bytes(std::as_bytes(std::span(bytes)), "fuzzed"));
  } catch (const file_error&) {}
}

struct forms {
  std::string json, bytes;
};
forms forms_of(const graph& g) {
  const auto bytes = graph_to_bytes(g);
  return {graph_to_json(g), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}
/// Loops and branches, with their regions.
graph control_flow() {
  builder b;
  const var x{&b, b.input({dtype::f64, {2}}, input_role::argument, "x")};
  const var y{&b, b.input({dtype::f64, {3, 2}}, input_role::argument, "y")};
  const var c = cond(
      sum(x) > 0, [&] { return x * 2; }, [&] { return -x; });
  const var l = while_loop([](var v) { return sum(v) < 9; }, [](var v) { return v * 3; }, c);
  const auto [last, all] = scan([](var s, var u) { return std::pair{s + u, s * u}; }, l, y);
  b.end(ids{last.id, all.id});
  b.g.outputs = {{}, {}};
  return std::move(b.g);
}
/// A graph for each application of an operation, and one with control flow.
const std::vector<forms>& graphs() {
  static const auto all = [] {
    builder b;
    test::build_every_operation(b);
    std::vector<forms> made{forms_of(control_flow())};
    for (node_id n : b.g.regions[0].nodes) {
      node x = b.g.nodes[std::size_t(n)];
      if (x.op == &input_info_of || x.op == &get_info_of) continue;
      builder one;
      ids in;
      for (node_id o : b.g.operands(n))
        in.push_back(one.input(b.g.type(o), input_role::argument, "x"));
      one.g.adopt_values(x, b.g.constants);
      one.emit(*x.op, in, x.attributes);
      one.end(ids{});
      made.push_back(forms_of(one.g));
    }
    return made;
  }();
  return all;
}
/// Blind search seldom spells a graph: the input as edits of one, three bytes each, of which two
/// are a place. In text, digits become other digits, so that numbers stay numbers.
std::string edited(std::string s, std::span<const std::uint8_t> edits, bool text) {
  for (; edits.size() >= 3; edits = edits.subspan(3)) {
    const std::size_t at = (std::size_t{edits[0]} | std::size_t{edits[1]} << 8) % s.size();
    std::size_t to = at;
    while (text && to + 1 < s.size() && to < at + 256 && (s[to] < '0' || s[to] > '9')) ++to;
    s[to] = text && edits[2] < 200 ? char('0' + edits[2] % 10) : char(edits[2]);
  }
  return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check_json(input);
  check_bytes("\xd9\xd9\xf7" + input);
  if (size == 0) return 0;
  const forms& graph = graphs()[data[0] % graphs().size()];
  const std::span edits(data + 1, std::min<std::size_t>(size - 1, 12));
  check_json(edited(graph.json, edits, true));
  check_bytes(edited(graph.bytes, edits, false));
  return 0;
}
