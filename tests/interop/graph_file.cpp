#include <doctest/doctest.h>
#include <unistd.h>

#include <bit>
#include <cella/interop/graph_file.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support/every_operation.hpp"
#include "support/sanitized.hpp"
#include "support/scratch_directory.hpp"
#include "support/traced.hpp"

namespace fs = std::filesystem;

using namespace cella;
using namespace cella::test;

namespace {

/// A node with all that it says but its number, or the inputs or outputs of a region.
struct described {
  const op_info* op{};
  attributes options;
  tensor_type type;
  std::vector<tensor_type> results;
  std::vector<std::int64_t> operands;  ///< as positions among all listed nodes
  std::vector<std::uint64_t> values;
  std::array<std::int32_t, 2> regions{};
  std::string cell, place;
  friend bool operator==(const described&, const described&) = default;
};
/// Of the regions that the main one reaches: others are not written.
std::vector<described> describe(const graph& g) {
  std::vector<bool> reached(g.regions.size());
  const std::function<void(int)> reach = [&](int r) {
    if (r < 0 || reached[std::size_t(r)]) return;
    reached[std::size_t(r)] = true;
    for (node_id n : g.regions[std::size_t(r)].nodes)
      for (int q : g.nodes[std::size_t(n)].regions) reach(q);
  };
  reach(0);
  std::vector<described> all;
  std::vector<std::int64_t> number(g.nodes.size(), -1);
  std::vector<std::int32_t> place(g.regions.size(), -1);
  std::int64_t nodes = 0;
  std::int32_t regions = 0;
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    if (!reached[r]) continue;
    place[r] = regions++;
    for (node_id n : g.regions[r].nodes) number[std::size_t(n)] = nodes++;
  }
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    if (!reached[r]) continue;
    for (node_id id : g.regions[r].nodes) {
      const node& n = g.nodes[std::size_t(id)];
      described d{n.op, n.attributes, n.type, {}, {}, {}, {-1, -1}, {}, {}};
      for (int k = 0; k < n.result_count; ++k) d.results.push_back(g.result_type(id, k));
      for (node_id o : g.operands(id)) d.operands.push_back(number[std::size_t(o)]);
      for (std::size_t k = 0; k < 2; ++k)
        if (n.regions[k] >= 0) d.regions[k] = place[std::size_t(n.regions[k])];
      if (n.op->traits.stored) {
        const auto words = g.values_of(id);
        d.values.assign(words.begin(), words.end());
      }
      d.cell = g.view(n.cell);
      const std::string file = n.file;
      if (n.line) d.place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(n.line);
      all.push_back(std::move(d));
    }
    for (const ids* ends : {&g.regions[r].inputs, &g.regions[r].outputs}) {
      all.push_back({});
      for (node_id n : *ends) all.back().operands.push_back(number[std::size_t(n)]);
    }
  }
  return all;
}
void check_same(const graph& read, const graph& g) {
  const auto a = describe(read), b = describe(g);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i] == b[i]);
  }
  REQUIRE(read.inputs.size() == g.inputs.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    CHECK(read.inputs[i].role == g.inputs[i].role);
    CHECK(read.inputs[i].index == g.inputs[i].index);
    CHECK(read.view(read.inputs[i].name) == g.view(g.inputs[i].name));
  }
  REQUIRE(read.outputs.size() == g.outputs.size());
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    CHECK(read.outputs[i].updates == g.outputs[i].updates);
    CHECK(read.view(read.outputs[i].name) == g.view(g.outputs[i].name));
  }
}
/// `g` through both forms, twice: what is read is what was written, and is written as it was.
graph round_trip(const graph& g) {
  const std::string json = graph_to_json(g);
  const graph a = graph_from_json(json);
  CHECK(graph_to_json(a) == json);
  const std::vector<std::byte> bytes = graph_to_bytes(g);
  const graph b = graph_from_bytes(bytes);
  CHECK(graph_to_bytes(b) == bytes);
  CHECK(graph_to_json(b) == json);
  CHECK(bytes.size() < json.size());
  check_same(a, g);
  return b;
}
/// The same, and both graphs compute the same bits.
void check_runs(const traced_function& t, const std::vector<valued_tensor>& in) {
  const graph read = round_trip(t.b.g);
  const auto expected = run_graph(t.b.g, in), found = run_graph(read, in);
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    REQUIRE(found[k].type == expected[k].type);
    REQUIRE(found[k].values.size() == expected[k].values.size());
    CHECK(std::memcmp(found[k].values.data(), expected[k].values.data(),
                      8 * found[k].values.size()) == 0);
  }
}
std::vector<tensor_type> types_of(const std::vector<valued_tensor>& in) {
  std::vector<tensor_type> types;
  for (const valued_tensor& t : in) types.push_back(t.type);
  return types;
}
/// x^n by squaring, n a tensor.
constexpr var power(var x, var n) {
  return cond(
      n < 0.5, [&] { return ones_like(x); },
      [&] {
        const var half = floor(n / 2), root = call<power>(x, half);
        return select(n - 2 * half > 0.5, root * root * x, root * root);
      });
}
/// A function of the first operand, with its value, its gradient and its second derivative.
template <class F>
vars_function with_derivatives(F f) {
  return [f](const vars& x) {
    const auto g = [&](var v) { return sum(f(v, x)); };
    const auto slope = [&](var v) { return sum(sin(grad(g)(v))); };
    return vars{f(x[0], x), grad(g)(x[0]), grad(slope)(x[0])};
  };
}

struct control_case {
  vars_function f;
  std::vector<valued_tensor> in;
};
/// Control flow in all its forms, with what derivatives make of it: bodies, records, recursion.
std::vector<control_case> control_cases() {
  const auto branch = [](var v, const vars&) {
    return cond(
        sum(v) > 0, [&] { return v * exp(v); }, [&] { return sin(v); });
  };
  const auto loop = [](var v, const vars&) {
    return while_loop([](var c) { return sum(c) < 10; }, [](var c) { return c * 1.5; }, v);
  };
  const auto walk = [](var v, const vars& x) {
    const auto [last, all] = scan(
        [](var c, var u) {
          const var next = tanh(c * u) + u;
          return std::pair{next, next * c};
        },
        v, x[1]);
    return last + sum(all);
  };
  const auto recursion = [](var v, const vars& x) { return call<power>(v, x[1]); };
  const auto tree = [](var v, const vars& x) {
    return recursive(
        [](auto self, var y, var n) {
          return cond(
              n > 0.5, [&] { return self(y * 0.9, n - 1) * self(sin(y), n - 2); },
              [&] { return y + 1; });
        },
        {dtype::f64, {}}, v, x[1]);
  };
  const auto own =
      custom_vjp([](var v) { return v * v; }, [](var v, var, var dy) { return 3 * v * dy; });
  const auto custom = [own](var v, const vars&) { return own(v); };
  return {{with_derivatives(branch), {f64({3}, {0.5, -0.25, 2})}},
          {with_derivatives(branch), {f64({3}, {-0.5, -0.25, 0})}},
          {with_derivatives(loop), {f64({2}, {0.5, 0.25})}},
          {with_derivatives(walk), {f64({2}, {0.5, 0.25}), f64({3, 2}, {1, 2, 3, 4, 5, 6})}},
          {with_derivatives(recursion), {scalar(1.5), scalar(5)}},
          {with_derivatives(tree), {scalar(1.5), scalar(4)}},
          {with_derivatives(custom), {f64({2}, {0.5, 0.25})}},
          {[loop](const vars& x) { return vars{vmap([&](var v) { return loop(v, {}); })(x[0])}; },
           {f64({2, 2}, {0.5, 0.25, 3, 4})}}};
}

/// A graph that has a little of everything that a file holds. One node in a statement: compilers
/// differ in which operand of an operator comes first.
graph small_graph() {
  builder b;
  const var x{&b, b.input({dtype::f32, {2, 3}}, input_role::argument, "x")};
  const var w{&b, b.input({dtype::f32, {3, 2}}, input_role::parameter, "w")};
  const var rate{&b, b.input({dtype::f32, {}}, input_role::scalar, "learning_rate")};
  b.attribute_to({"net.cpp", 7});
  b.current_cell(b.g.intern("layer"));
  const var bias = constant(x, std::array{0.5F, -0.5F});
  const var y = matmul(x, w) + bias;
  b.attribute_to({"net.cpp", 8});
  const var z = cond(
      sum(y) > 0, [&] { return y * 2; }, [&] { return -y; });
  b.current_cell({});
  const var exponent = cast(sum(w), dtype::f32);
  const var p = call<power>(sum(z), exponent);
  const var next = w - rate * w;
  b.end(ids{z.id, p.id, next.id});
  b.g.outputs = {{}, {}, {1, b.g.intern("w")}};
  return std::move(b.g);
}
const std::string& small_json() {
  static const std::string json = graph_to_json(small_graph());
  return json;
}

/// An elementwise operation of a user.
struct bump_op : elementwise<bump_op> {
  static constexpr std::string_view name = "bump";
  static constexpr std::string_view formula = "y = x + x^2";
  static constexpr auto apply(auto x) { return x + x * x; }
  static constexpr var partial(node_ref n, int) { return 1 + 2 * n.operand(0); }
};

/// What the reader says of text; empty if it reads it.
std::string refusal(std::string_view json) {
  try {
    (void)graph_from_json(json, "net.json");
  } catch (const file_error& e) { return e.what(); }
  return {};
}
std::string refusal_of_bytes(std::string_view bytes) {
  try {
    (void)graph_from_bytes(std::as_bytes(std::span(bytes)), "net.cgraph");
  } catch (const file_error& e) { return e.what(); }
  return {};
}
/// The small graph with one piece of its text replaced.
std::string replaced(std::string_view piece, std::string_view by) {
  std::string json = small_json();
  const auto at = json.find(piece);
  REQUIRE(at != json.npos);
  return json.replace(at, piece.size(), by);
}
/// Whether the refusal names the file, holds every part, and ends with a remedy.
void check_refused(std::string_view json, std::initializer_list<std::string_view> parts) {
  const std::string said = refusal(json);
  CAPTURE(said);
  CHECK(said.starts_with("\"net.json\""));
  CHECK(said.find("; ") != said.npos);
  for (const auto part : parts) {
    CAPTURE(part);
    CHECK(said.find(part) != said.npos);
  }
}

}  // namespace

TEST_CASE("every operation of the list goes through both forms") {
  builder b;
  build_every_operation(b);
  b.end(ids{});
  std::set<std::string_view> seen;
  const auto note = [&](const graph& g) {
    for (const region& r : g.regions)
      for (node_id n : r.nodes) seen.insert(g.nodes[std::size_t(n)].op->name);
  };
  note(b.g);
  round_trip(b.g);

  // The pointwise ones, on each type that they have a meaning for.
  builder p;
  for (const op_info* op : all_operations::infos) {
    if (!op->pointwise) continue;
    for (dtype t : {dtype::f32, dtype::f64, dtype::i32, dtype::u8, dtype::c64}) {
      if (is_complex(t) ? !op->traits.takes_complex : is_integer(t) && !op->integral) continue;
      ids in;
      for (int k = 0; k < op->operands; ++k) {
        const bool truth = k == 0 && op == &info_of<select_op>;
        in.push_back(p.input({truth ? dtype::boolean : t, {3}}, input_role::argument, "x"));
      }
      p.emit(*op, in, op->options ? op->options->defaults : attributes{});
    }
  }
  p.emit(info_of<random_key_op>, {p.input({dtype::i64, {2}}, input_role::state, "random")},
         random_key_op::options{1, 0, 3});
  p.end(ids{});
  note(p.g);
  round_trip(p.g);

  for (const auto& [f, in] : control_cases()) note(traced_function(f, types_of(in)).b.g);
  for (const op_info* op : all_operations::infos) {
    CAPTURE(op->name);
    CHECK(seen.contains(op->name));
  }
}

TEST_CASE("control flow and its derivatives are read as they were and compute the same bits") {
  for (const auto& [f, in] : control_cases()) {
    const traced_function t(f, types_of(in));
    check_runs(t, in);
    round_trip(optimize(t.b.g));
  }
}

TEST_CASE("constant tensors of all types keep their bits, those of NaNs too") {
  builder b;
  ids outputs;
  // Each sign, infinities, the least numbers, and NaNs with payloads, quiet and signaling.
  const std::uint64_t bits[] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000123,
                                0xfff4000000000001, 0x8000000000000000, 1,
                                0x7fc12345ffa54321, 0x7e017c00fc00ffc1};
  for (int t = 0; t < int(dtype::record); ++t) {
    for (int count : {0, 1, 3, 7}) {
      const tensor_type type{dtype(t), {count}};
      std::vector<std::uint64_t> words(type.bytes() ? std::size_t(type.bytes() + 7) / 8 : 0);
      for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = dtype(t) == dtype::boolean ? 0x0001010001000101 : bits[i % 8];
      // Words are filled up with the first element.
      auto* const bytes = reinterpret_cast<char*>(words.data());
      for (auto i = std::size_t(type.bytes()); i < 8 * words.size(); ++i)
        bytes[i] = bytes[i % size_of(dtype(t))];
      const values_options o{b.g.constants.add(type, words), type.shape, {t}};
      outputs.push_back(b.emit(info_of<values_op>, span<const node_id>{}, o));
      b.g.outputs.push_back({});
    }
  }
  for (std::uint64_t x : bits) {
    const constant_op::options o{std::bit_cast<double>(x), {}, {int(dtype::f64)}};
    outputs.push_back(b.emit(info_of<constant_op>, span<const node_id>{}, o));
    b.g.outputs.push_back({});
  }
  b.end(outputs);
  round_trip(b.g);
}

TEST_CASE("a file is written by its suffix, atomically, and read") {
  const scratch_directory folder("graphs");
  const graph g = small_graph();
  for (const char* name : {"net.json", "net.cgraph"}) {
    save_graph(g, folder / name);
    check_same(load_graph(folder / name), load_graph(folder / "net.json"));
  }
  CHECK(contents(folder / "net.json") == small_json());
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
  CHECK_THROWS_WITH_AS(save_graph(g, "net.bin"),
                       "\"net.bin\" does not say in which form a graph lies in it; end its name in "
                       ".json or .cgraph",
                       file_error);
  CHECK_THROWS_AS(load_graph(folder / "absent.json"), file_error);
  CHECK_THROWS_WITH_AS(load_graph(folder / "net.json", {.bytes = 10}),
                       doctest::Contains("but at most 10 are allowed"), file_error);
  graph broken = small_graph();
  broken.nodes[std::size_t(broken.regions[0].outputs[0])].type.shape = {7};
  CHECK_THROWS_WITH_AS(save_graph(broken, folder / "net.json"),
                       doctest::Contains("the graph does not hold together"), file_error);
  CHECK(contents(folder / "net.json") == small_json());
}

TEST_CASE("files of version 1 are read as long as there are any") {
  const fs::path folder = fs::path(CELLA_SOURCE_DIR) / "tests/interop/graphs";
  const graph g = load_graph(folder / "version1.json");
  check_same(load_graph(folder / "version1.cgraph"), g);
  // The form is that of today, too: else graph_version has to grow.
  CHECK(graph_to_json(g) == contents(folder / "version1.json"));
  const auto bytes = graph_to_bytes(g);
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) ==
        contents(folder / "version1.cgraph"));
  // What it computes, by hand: x w + (1/2, -1/2), which is positive and doubled; its sum to the
  // power sum(w) = 2; and w - rate w.
  const auto y = run_graph(g, {{{dtype::f32, {2, 3}}, {1, 2, 3, 4, 5, 6}},
                               {{dtype::f32, {3, 2}}, {1, 0, 0, 1, 1, -1}},
                               {{dtype::f32, {}}, {0.25}}});
  REQUIRE(y.size() == 3);
  CHECK(y[0].values == reals{9, -3, 21, -3});
  CHECK(y[1].values == reals{24 * 24});
  CHECK(y[2].values == reals{0.75, 0, 0, 0.75, 0.75, -0.75});
}

TEST_CASE("what is wrong in a file is said with the file, the node and the remedy") {
  REQUIRE(refusal(small_json()).empty());
  check_refused("", {"is cut or damaged at its byte"});
  check_refused("{}", {"is not a graph of Cella"});
  check_refused("[1, 2]", {"is not a graph of Cella"});
  check_refused(small_json() + "x", {"is cut or damaged"});
  check_refused(replaced("\"version\":1", "\"version\":7"),
                {"is of version 7, but version 1 is the latest", "read it with a newer Cella"});
  check_refused(replaced("\"version\":1", "\"version\":1.5"), {"\"version\""});
  check_refused(replaced("\"version\":1", "\"version\":1,\"extra\":2"),
                {"unknown field \"extra\""});
  check_refused(replaced("\"version\":1", "\"version\":1,\"version\":1"), {"\"version\" twice"});
  check_refused(replaced("\"op\":\"matmul\"", "\"op\":\"matmuul\""),
                {"node 4 of region 0", "unknown operation \"matmuul\"", "load_graph"});
  check_refused(replaced("\"a\":[0,2]", "\"b\":[0,2]"), {"has the field \"b\" twice"});
  check_refused(replaced("\"a\":[0,2]", "\"c\":[0,2]"),
                {"node 4 of region 0 (matmul)", "unknown field \"c\""});
  check_refused(replaced("\"a\":[0,2]", "\"a\":[0,9]"), {"%4: f32[2,2] = matmul(%0, %1)"});
  check_refused(replaced("\"value\":0.0", "\"value\":\"nan:7\""),
                {"(constant)", "\"value\"", "the value \"nan:7\""});
  check_refused(replaced("[\"f32\",3,2]", "[\"f33\",3,2]"), {"unknown element type \"f33\""});
  check_refused(replaced("[\"f32\",3,2]", "[\"f32\",4,2]"), {"%4: f32[2,2] = matmul(%0, %1)"});
  check_refused(replaced("[\"f32\",3,2]", "[\"f32\",-1]"), {"node 1 of region 0", "\"type\""});
  check_refused(replaced("[\"f32\",3,2]", "[\"f32\",2147483647,2147483647,9]"),
                {"node 1 of region 0", "overflows 63 bits"});
  check_refused(replaced("[\"f32\",3,2]", "[\"f32\",1,1,1,1,1,1,1,1,1]"), {"8 dimensions"});
  check_refused(replaced("\"of\":[0,1]", "\"of\":[0]"), {"matmul(%0)"});
  check_refused(replaced("\"of\":[0,1]", "\"of\":[0,1,1]"), {"matmul(%0, %1, %1)"});
  check_refused(replaced("\"of\":[0,1]", "\"of\":[0,4]"), {"node 4", "no integer from 0 to 3"});
  check_refused(replaced("\"of\":[0,1]", "\"of\":[0,-1]"), {"node 4", "no integer from 0 to 3"});
  check_refused(replaced("\"of\":[0,1]", "\"of\":[0,99999999999999999999]"), {"node 4"});
  check_refused(replaced("\"regions\":[1,2]", "\"regions\":[1,9]"), {"(cond)", "\"regions\""});
  check_refused(replaced("\"regions\":[1,2]", "\"regions\":[1]"), {"= cond("});
  check_refused(replaced("\"role\":\"scalar\"", "\"role\":\"scala\""),
                {"input 2", "unknown role \"scala\""});
  check_refused(replaced("\"updates\":1", "\"updates\":3"), {"output 2", "from 0 to 2"});
  check_refused(replaced("\"updates\":1", "\"updates\":0"), {"does not hold together"});
  check_refused(replaced("0000003f000000bf", "0000003f000000"), {"constant tensor 0", "7 bytes"});
  check_refused(replaced("0000003f000000bf", "0000003f000000bF"), {"hexadecimal digits"});
  check_refused(replaced("[\"f32\",2],\n", "[\"f32\",2147483647],\n"),
                {"8 bytes instead of 8589934588"});
  check_refused(std::string(100'000, '['), {"nested deeper than 16 levels"});
  check_refused(replaced("\"version\":1",
                         "\"version\":1,\"x\":" + std::string(20, '[') + std::string(20, ']')),
                {"nested deeper"});
}

TEST_CASE("a binary file that is cut, longer or without its tag is refused") {
  const auto bytes = graph_to_bytes(small_graph());
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  REQUIRE(refusal_of_bytes(whole).empty());
  // Reading starts over for each: with sanitizers all of them take half a minute.
  for (std::size_t n = 0; n < whole.size(); n += sanitized && n >= 300 ? 11 : 1) {
    CAPTURE(n);
    CHECK(refusal_of_bytes(whole.substr(0, n)).starts_with("\"net.cgraph\" "));
  }
  CHECK_FALSE(refusal_of_bytes(whole + '\0').empty());
  CHECK(refusal_of_bytes(small_json()).find("it does not begin with the tag of CBOR") !=
        std::string::npos);
  // Claims of 2^63 bytes and members, and a tower of lists.
  for (const char* claim :
       {"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff",
        "\xbb\x7f\xff\xff\xff\xff\xff\xff\xff", "\x7b\x7f\xff\xff\xff\xff\xff\xff\xff"})
    CHECK_FALSE(refusal_of_bytes("\xd9\xd9\xf7" + std::string(claim)).empty());
  CHECK(refusal_of_bytes("\xd9\xd9\xf7" + std::string(1'000'000, '\x81')).find("16 levels") !=
        std::string::npos);
}

TEST_CASE("regions may be called in circles, but own themselves never") {
  // Region 1 is the first branch of a cond; it is given a cond that owns region 1.
  const std::string json = small_json();
  std::string text = json;
  const auto at = text.find("\"op\":\"cond\"");
  const auto line = text.rfind('\n', at);
  REQUIRE(line != text.npos);
  const std::string owner = text.substr(line + 1, text.find('\n', at) - line - 1);
  CHECK(refusal(json).empty());  // whose function calls itself
  const auto branch = text.find("{\"op\":\"cond\"", text.find("\"op\":\"call\""));
  REQUIRE(branch != text.npos);
  const auto own = text.find("\"regions\":[", branch) + 11;
  text.replace(own, text.find(']', own) - own, "3,3");
  check_refused(text, {});
}

TEST_CASE("an operation of the user's own is read if it is named") {
  const traced_function t([](const vars& x) { return vars{emit<bump_op>({}, {}, x[0])}; },
                          {{dtype::f64, {2}}});
  const std::string json = graph_to_json(t.b.g);
  check_refused(json, {"unknown operation \"bump\"", "load_graph"});
  const std::array known{&info_of<bump_op>};
  const graph read = graph_from_json(json, "net.json", {.operations = known});
  CHECK(run_graph(read, {f64({2}, {2, 3})})[0].values == reals{6, 12});
}
